"""Volumes of whole launches: what must hold for any kernel, and where addresses are listed."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.gpu.machine import GpuMachine, read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions import Expr, floor_div, floor_mod, maximum, minimum
from kernelcast.expressions.accesses import AccessKind, MemoryAccess, ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.records.errors import InputError
from kernelcast.training_data import corpus
from support.accesses import K, X, Y, make_access, make_launch, record
from support.stencils import make_star

V100, MI210 = (read_machine(find_machine(name)) for name in ("v100", "mi210"))
STORE = AccessKind.STORE
COUNT, LOCAL = 1 << 16, 128


def model(
    *accesses: MemoryAccess, items: tuple[int, ...] = (COUNT,), local: tuple[int, ...] = (LOCAL,),
    machine: GpuMachine = V100, **more: object,
) -> GpuVolumes:  # fmt: skip
    return compute_volumes(make_launch(*accesses, items=items, local=local, **more), machine)


@pytest.mark.parametrize("name", ["v100", "a100", "mi210", "mi300x", "rx-6900-xt"])
def test_streaming_moves_every_byte_once(name: str) -> None:
    """A triad loads two arrays and stores one, on every architecture."""
    count = 1 << 22
    volumes = model(
        make_access("a", 4 * X), make_access("b", 4 * X),
        make_access("c", 4 * X, STORE), items=(count,), local=(256,),
        machine=read_machine(find_machine(name)),
    )  # fmt: skip
    assert volumes.per_update() == pytest.approx(
        {"L2_to_L1": 8, "L1_to_L2": 4, "DRAM_to_L2": 8, "L2_to_DRAM": 4}
    )


def test_matrix_product_reuses_operands_across_iterations() -> None:
    """Loops reuse lines from iteration to iteration, and work-groups of a unit share its L1."""
    size, local = 2048, 16
    volumes = model(
        make_access("a", 4 * (Y * size + K), trips=size),
        make_access("b", 4 * (K * size + X), trips=size),
        make_access("c", 4 * (Y * size + X), STORE),
        items=(size, size), local=(local, local),
    )  # fmt: skip
    moved = volumes.per_update()
    own = 2 * 4 * size / local
    compulsory = volumes.l1.compulsory_bytes / local**2
    assert compulsory == pytest.approx(own, rel=0.05)
    # Operands of the same rows are there already, those of the same columns hardly ever.
    assert 0.6 * own < moved["L2_to_L1"] < 0.9 * own
    assert 8 < moved["DRAM_to_L2"] < 4 * size / local * 1.05
    assert moved["L2_to_DRAM"] == pytest.approx(4)


def test_one_unit_loads_what_its_work_groups_share_once() -> None:
    """On a GPU of one unit, the work-groups of a wave that read one row load it together."""
    volumes = model(
        make_access("a", 4 * Y), make_access("c", 4 * (64 * Y + X), STORE),
        items=(64, 64), local=(16, 8), machine=replace(V100, compute_units=1),
    )  # fmt: skip
    assert volumes.l1.neighbour_bytes == pytest.approx(0.75 * volumes.l1.compulsory_bytes, rel=0.02)


def test_rows_per_work_item_thrash_the_first_cache() -> None:
    """Work-items that walk rows of their own load lines again, as resident work-groups add up."""
    size = 4096
    walk = model(make_access("a", 4 * (X * size + K), trips=size), items=(size,), local=(256,))
    assert walk.l2_load_bytes > 2 * 4 * size**2
    assert walk.l1.oversubscription > 1


def test_transposed_stores_write_whole_sectors_for_words() -> None:
    """Each word of a column is a sector of its own on the way to L2, merged before DRAM."""
    size = 1024
    moved = model(
        make_access("a", 4 * (Y * size + X)),
        make_access("b", 4 * (X * size + Y), STORE), items=(size, size), local=(32, 8),
    ).per_update()  # fmt: skip
    assert moved["L1_to_L2"] == pytest.approx(32)
    assert moved["L2_to_DRAM"] == pytest.approx(4, rel=0.01)


def make_stencil(*local_size: int) -> ModelledLaunch:
    return make_star(array=(640, 512, 512), radius=4, local_size=local_size, registers=40)


@pytest.mark.parametrize(("x", "y", "z"), [(16, 1, 64), (2, 8, 64), (8, 8, 16), (64, 4, 4)])
def test_a_work_group_uses_a_page_for_each_layer(x: int, y: int, z: int) -> None:
    """Layers of 640 x 512 numbers are longer than a page: those that are loaded, those stored."""
    volumes = compute_volumes(make_stencil(x, y, z), V100)
    assert volumes.group_pages == pytest.approx(2 * z + 8, abs=3)


@pytest.mark.parametrize(("local_size", "lines"), [((32, 8, 4), 2.94), ((16, 8, 8), 3.88)])
def test_rows_of_a_warp_touch_lines(local_size: tuple[int, ...], lines: float) -> None:
    """Counts 8 n - 8 bytes over lines of 128 more than one for each row, mean of alignments."""
    l1 = compute_volumes(make_stencil(*local_size), V100).l1
    assert l1.load_lines / l1.load_requests == pytest.approx(lines, rel=0.03)


def gather(offsets: np.ndarray, groups: tuple[int, int], size: int) -> GpuVolumes:
    """Compute the volumes of loads at places that were recorded of two work-groups."""
    recorded = record(offsets, groups, size=LOCAL)
    walk = make_access("a", None, sources=("a",))
    return model(walk, recorded=recorded, buffers={"a": size})


@pytest.mark.parametrize(
    ("size", "l2", "dram"), [(1 << 28, (31.7, 32.3), (62.7, 65.3)), (1 << 18, (0, 32), (3.6, 6.4))]
)
def test_random_addresses_fetch_a_sector_each(
    size: int, l2: tuple[float, float], dram: tuple[float, float]
) -> None:
    """Each work-item fetches a sector; a buffer that fits into the cache is loaded about once."""
    offsets = np.random.default_rng(1).integers(0, size // 4, 2 * LOCAL) * 4
    volumes = gather(offsets, (10, 11), size)
    assert l2[0] < volumes.l2_load_bytes / COUNT < l2[1]
    assert dram[0] < volumes.dram_load_bytes / COUNT < dram[1]
    assert any("some work-groups" in one for one in volumes.notes)


def test_indirect_without_samples_names_the_access() -> None:
    """What is neither known nor recorded is an error that says which access and what to do."""
    with pytest.raises(InputError, match=r"line 3: the address of idx\[i\] depends on data in"):
        model(make_access("idx", None, reason="depends on a"))


def test_atomics_count_as_load_and_store() -> None:
    volumes = model(make_access("a", 4 * X, AccessKind.ATOMIC))
    assert volumes.l2_load_bytes == volumes.l2_store_bytes == 4 * COUNT


@pytest.mark.parametrize(
    ("index", "loaded"),
    [
        (minimum(maximum(X - 3, 0), COUNT - 1), 4 * COUNT),
        (floor_mod(X, COUNT // 8), COUNT // 2),
        (floor_div(X, 256) * 256 + floor_mod(X + 0, 256), 4 * COUNT),  # it is not simplified
    ],
    ids=["clamped", "wrapped", "divided"],
)
def test_indirections_load_their_buffer_once(index: Expr, loaded: int) -> None:
    """Counts every byte of a clamped or divided row, and once what a remainder repeats."""
    volumes = model(make_access("a", 4 * index), buffers={"a": loaded})
    assert volumes.l2_load_bytes == pytest.approx(4 * COUNT, rel=0.07)  # rows begin anywhere
    assert volumes.dram_load_bytes == pytest.approx(loaded, rel=0.01)


@pytest.mark.parametrize("size", [1 << 22, 1 << 26, 1 << 28])
def test_random_walk_misses_as_much_as_the_cache_cannot_hold(size: int) -> None:
    """Misses, beside the first touch, by the share of the buffer that L2 does not hold."""
    steps = 32
    offsets = np.random.default_rng(2).integers(0, size // 4, 2 * LOCAL * steps) * 4
    volumes = gather(offsets, (3, 200), size)
    fetches = COUNT * steps * 64
    first = size * -np.expm1(-fetches / size)
    held = min(1.0, V100.l2_bytes / size)
    expected = first + (fetches - first) * (1 - held)
    assert volumes.dram_load_bytes == pytest.approx(expected, rel=0.1)


def test_data_dependent_stream_is_no_random_walk() -> None:
    """Loads a buffer once whose parts the work-groups read one by one, as rows of a matrix."""
    groups = (2, 300)
    offsets = 4 * np.concatenate([one * LOCAL + np.arange(LOCAL) for one in groups])
    volumes = gather(offsets, groups, 4 * COUNT)
    assert volumes.dram_load_bytes == pytest.approx(4 * COUNT, rel=0.01)


SIDE = 512
INTERIOR_BYTES = 8 * (SIDE - 2) ** 3


def make_laplacian(*, is_ascending: bool) -> ModelledLaunch:
    """Make a 7-point stencil that begins with the layer before, or with its own."""
    star = make_star(array=(SIDE,) * 3, radius=1, local_size=(256, 1, 1), is_rounded=True)
    loads = [one for one in star.accesses if one.kind is AccessKind.LOAD]
    stores = [one for one in star.accesses if one.kind is AccessKind.STORE]
    by_place = sorted(loads, key=lambda one: one.offset_bytes.constant_term)
    below, *middle, above = by_place
    ordered = by_place if is_ascending else [*middle, below, above]
    return replace(star, accesses=(*ordered, *stores))


def test_the_order_of_loads_decides_what_is_lost() -> None:
    """Loads most of the next but one layer again if the own one comes first, and little else;
    NVIDIA's loads begin together, so that there is no order."""
    (ascending, scattered), (one, other) = (
        [compute_volumes(make_laplacian(is_ascending=way), machine) for way in (True, False)]
        for machine in (MI210, V100)
    )
    assert one.dram_load_bytes == pytest.approx(other.dram_load_bytes)
    assert INTERIOR_BYTES < ascending.dram_load_bytes < 1.2 * INTERIOR_BYTES
    assert 1.5 * INTERIOR_BYTES < scattered.dram_load_bytes < 2.2 * INTERIOR_BYTES
    assert ascending.dram_store_bytes == scattered.dram_store_bytes


def make_window(width: int, height: int) -> ModelledLaunch:
    """Make a 3x3 box whose loads all fall into a window."""
    pitch = 4096
    middle = (floor_mod(Y, height) + 64) * pitch + floor_mod(X, width) + 64
    places = [dy * pitch + dx for dy, dx in product((-1, 0, 1), repeat=2)]
    return make_launch(
        *(make_access("a", 4 * (middle + place)) for place in places),
        make_access("b", 4 * (Y * pitch + X), STORE),
        items=(pitch, pitch), local=(32, 8),
        buffers={"a": 4 * pitch**2, "b": 4 * pitch**2},
    )  # fmt: skip


def test_l1_keeps_a_window_that_all_work_groups_read() -> None:
    """Loads it once per compute unit where L1 has room for it, and else by every work-group."""
    small, large = (compute_volumes(make_window(*one), V100) for one in ((64, 64), (1024, 512)))
    window = 4 * 66 * 66
    assert small.l1.compulsory_bytes * small.work_groups < 2 * window * V100.compute_units
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
    radius: int,
    array: tuple[int, int, int],
    local_size: tuple[int, int, int],
    element_bytes: int,
    replayed: float,
) -> None:
    """Comes within 8 % of DRAM loads that a replay, load by load, on a third of the GPU counts.

    Neighbours along x are the same data however long the rows, and ghost layers are no one's.
    """
    third = replace(MI210, compute_units=32, l2_bytes=1_935_360, l2_units=32)
    star = make_star(
        array=array, radius=radius, local_size=local_size, element_bytes=element_bytes,
        registers=None,
    )  # fmt: skip
    volumes = compute_volumes(star, third)
    assert volumes.dram_load_bytes / volumes.updates == pytest.approx(replayed, rel=0.08)


MACHINES = (
    "v100", "a100", "a40", "l40", "h100-pcie", "gh200", "mi100", "mi210", "mi300x", "rx-6900-xt",
)  # fmt: skip
FOLDS = ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 1, 4), (1, 1, 8), (1, 4, 1), (2, 2, 2))
LOCAL_SIZES = ((32, 4, 1), (64, 2, 2), (16, 8, 2), (128, 1, 1), (8, 8, 4), (256, 1, 1), (32, 2, 4))
BYTES = 8
# Cut rows and guards are counted by means over alignments.
SLACK = 1.001
# Arguments of `make_star`, small enough to be shown where they fail.
stencils = st.fixed_dictionaries({
    "array": st.tuples(st.integers(20, 700), st.integers(20, 300), st.integers(20, 200)),
    "radius": st.integers(1, 4),
    "local_size": st.sampled_from(LOCAL_SIZES),
    "fold": st.sampled_from(FOLDS),
    "registers": st.sampled_from([None, 32, 64, 128]),
    "alignment_bytes": st.integers(0, 15).map(lambda one: BYTES * one),
})  # fmt: skip
machines = st.sampled_from(MACHINES)


@given(stencils, machines)
def test_volumes_lie_between_what_is_needed_and_what_is_asked_for(
    stencil: dict[str, Any], name: str
) -> None:
    """Moves at least each datum once, and at most what all warps ask for."""
    machine = read_machine(find_machine(name))
    found = compute_volumes(make_star(**stencil), machine)
    needed = BYTES * math.prod(n - 2 * stencil["radius"] for n in stencil["array"])
    most = found.l1.requested_bytes * found.work_groups
    fetches = max(1.0, machine.dram_fetch_bytes / machine.l1_sector_bytes)
    assert needed <= SLACK * found.dram_load_bytes
    assert needed <= SLACK * found.l2_load_bytes
    assert needed <= SLACK * found.dram_store_bytes
    assert found.l2_load_bytes <= SLACK * most
    # Sectors that are written in parts are read to be completed.
    completed = found.wave.partial_store_bytes * found.wave.waves
    assert found.dram_load_bytes <= SLACK * (most * fetches + completed)
    assert found.dram_store_bytes <= SLACK * found.l2_written_bytes
    assert all(math.isfinite(one) for one in found.per_update().values())


@given(stencils, machines, st.integers(2, 8))
def test_larger_caches_never_move_more(stencil: dict[str, Any], name: str, times: int) -> None:
    """Loads no more from L2 with a larger L1, and no more from DRAM with a larger L2."""
    launch, machine = make_star(**stencil), read_machine(find_machine(name))
    base = compute_volumes(launch, machine)
    wide = compute_volumes(launch, replace(machine, l1_bytes=times * machine.l1_bytes))
    deep = compute_volumes(launch, replace(machine, l2_bytes=times * machine.l2_bytes))
    assert wide.l2_load_bytes <= SLACK * base.l2_load_bytes
    assert deep.dram_load_bytes <= SLACK * base.dram_load_bytes


WIDE = [(64, 4, 2), (32, 4, 4), (64, 1, 8), (128, 2, 2), (512, 1, 1), (32, 16, 1), (16, 8, 4)]
NARROW = [(1, 64, 8), (2, 32, 8), (2, 256, 1)]


def test_narrow_shapes_are_the_worst() -> None:
    """About 150 bytes an update come from DRAM, 120 of them distributions, and DRAM bounds the
    time; narrow shapes load partial lines again, and miss on the rest of sectors that they stored
    in part."""
    path = Path(corpus.__file__).parent / "lbm" / "track_interface.yaml"
    source = read_launch_source(path, parameters={"NX": 512, "NY": 512, "NZ": 256})
    wide, narrow = (
        [configure(source, find_machine("a100"), one) for one in shapes]
        for shapes in (WIDE, NARROW)
    )
    for found in wide:
        assert 120 < found.volumes.per_update()["DRAM_to_L2"] < 165
        assert found.volumes.per_update()["L2_to_DRAM"] == pytest.approx(128, rel=0.02)
        assert found.estimate.limiter == "DRAM"
    for found in narrow:
        assert found.volumes.per_update()["DRAM_to_L2"] > 1.2 * 150
        assert found.volumes.wave.partial_store_bytes > 0
        assert found.estimate.seconds > 1.3 * max(one.estimate.seconds for one in wide)
