"""Loads in the order of the program on GPUs that spread them over a work-item's life."""

from dataclasses import replace
from itertools import product

import pytest

from kernelcast.analytic.gpu.machine import GpuMachine, read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.records.arguments import BufferArgument, ElementType
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from support.stencils import make_star

SIDE = 512
INTERIOR_BYTES = 8 * (SIDE - 2) ** 2 * (SIDE - 2)


@pytest.fixture
def machine() -> GpuMachine:
    """Give a GPU of AMD's, whose loads spread."""
    return read_machine(find_machine("mi210"))


def make_laplacian(*, is_ascending: bool) -> ModelledLaunch:
    """Make a 7-point stencil that begins with the layer before, or with its own."""
    star = make_star(array=(SIDE,) * 3, radius=1, local_size=(256, 1, 1), is_rounded=True)
    loads = [one for one in star.accesses if one.kind is AccessKind.LOAD]
    stores = [one for one in star.accesses if one.kind is AccessKind.STORE]
    by_place = sorted(loads, key=lambda one: one.offset_bytes.constant_term)
    below, *middle, above = by_place
    ordered = by_place if is_ascending else [*middle, below, above]
    return replace(star, accesses=(*ordered, *stores))


def test_the_order_of_loads_decides_what_is_lost(machine: GpuMachine) -> None:
    """Loads most of the next but one layer again if the own one comes first, and little else."""
    ascending, scattered = (
        compute_volumes(make_laplacian(is_ascending=one), machine) for one in (True, False)
    )
    assert INTERIOR_BYTES < ascending.dram_load_bytes < 1.2 * INTERIOR_BYTES
    assert 1.5 * INTERIOR_BYTES < scattered.dram_load_bytes < 2.2 * INTERIOR_BYTES
    assert ascending.dram_store_bytes == scattered.dram_store_bytes


def test_no_other_gpu_asks_for_the_order() -> None:
    """Gives NVIDIA's the same volumes in either order: their loads begin together."""
    v100 = read_machine(find_machine("v100"))
    one, other = (compute_volumes(make_laplacian(is_ascending=way), v100) for way in (True, False))
    assert one.dram_load_bytes == pytest.approx(other.dram_load_bytes)


def make_window(width: int, height: int) -> ModelledLaunch:
    """Make a 3x3 box whose loads all fall into a window."""
    pitch = 4096
    places = [dy * pitch + dx for dy, dx in product((-1, 0, 1), repeat=2)]
    total = " + ".join(f"a[p + ({place})]" for place in places)
    source = (
        "kernel void box(global const float *restrict a, global float *restrict b) {"
        f" int x = get_global_id(0) % {width} + 64, y = get_global_id(1) % {height} + 64;"
        f" int p = y * {pitch} + x;"
        f" b[get_global_id(1) * {pitch} + get_global_id(0)] = {total}; }}"
    )
    buffer = BufferArgument(element=ElementType.parse("float32"), count=pitch * pitch)
    return model_launch(
        Problem(
            name="box",
            kernel=Kernel(name="box", source=source),
            ndrange=NDRange(global_size=(pitch, pitch), local_size=(32, 8)),
            arguments=(buffer, buffer),
        )
    )


def test_l1_keeps_a_window_that_all_work_groups_read() -> None:
    """Loads it once per compute unit where L1 has room for it, and else by every work-group."""
    v100 = read_machine(find_machine("v100"))
    small, large = (compute_volumes(make_window(*one), v100) for one in ((64, 64), (1024, 512)))
    window = 4 * 66 * 66
    assert small.l1.compulsory_bytes * small.work_groups < 2 * window * v100.compute_units
    assert small.l2_load_bytes < 0.2 * large.l2_load_bytes
    # DRAM sends either window about once, not the whole buffer.
    assert small.dram_load_bytes < 3 * window
    assert large.dram_load_bytes < 2 * 4 * 1026 * 514


@pytest.mark.parametrize(
    ("radius", "array", "local_size", "element_bytes", "replayed"),
    [
        (4, (260, 300, 30), (16, 16, 1), 4, 37.1),
        (3, (260, 300, 28), (128, 1, 2), 4, 16.4),
        (3, (260, 256, 28), (100, 3, 1), 8, 57.5),
        (1, (400, 350, 24), (256, 1, 1), 8, 24.2),
    ],
)
def test_wide_stars_lose_what_a_replay_of_their_loads_loses(
    machine: GpuMachine,
    radius: int,
    array: tuple[int, int, int],
    local_size: tuple[int, int, int],
    element_bytes: int,
    replayed: float,
) -> None:
    """Comes within 8 % of DRAM loads that a replay, load by load, on a third of the GPU counts.

    Neighbours along x are the same data however long the rows, and ghost layers are no one's.
    """
    third = replace(machine, compute_units=32, l2_bytes=1_935_360, l2_units=32)
    star = make_star(
        array=array, radius=radius, local_size=local_size, element_bytes=element_bytes,
        registers=None,
    )  # fmt: skip
    volumes = compute_volumes(star, third)
    assert volumes.dram_load_bytes / volumes.updates == pytest.approx(replayed, rel=0.08)
