from dataclasses import replace

import numpy as np
import pytest

from kernelcast.analytic.gpu.limiters.demands import bind_lanes, count_pages, find_offsets
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions import Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.records.ndrange import NDRange
from support.stencils import make_star

MACHINE = read_machine(find_machine("v100"))
PAGE_BYTES = 2**21


def make_volumes(launch: ModelledLaunch) -> GpuVolumes:
    """Compute volumes on a V100."""
    return compute_volumes(launch, MACHINE)


def make_stencil(*local_size: int, reach: int = 4) -> ModelledLaunch:
    """Make the launch of a star stencil on 640 x 512 x 512 numbers."""
    return make_star(array=(640, 512, 512), radius=reach, local_size=local_size, registers=40)


def list_pages(launch: ModelledLaunch) -> int:
    """Count the pages of the middle work-group, work-item by work-item."""
    size = launch.ndrange.work_group_size
    ids = bind_lanes(launch, np.arange(size), 1)
    found = set()
    for one in launch.accesses:
        offsets = find_offsets(one, ids)
        assert offsets is not None
        found |= {(one.buffer, page) for page in (offsets // PAGE_BYTES).ravel().tolist()}
    return len(found)


@pytest.mark.parametrize(
    "local_size", [(16, 1, 64), (2, 8, 64), (8, 8, 16), (64, 4, 4), (8, 128, 1)]
)
def test_pages_are_those_of_the_middle_work_group(local_size: tuple[int, ...]) -> None:
    """Is what every work-item's addresses say, from the corners alone."""
    launch = make_stencil(*local_size)
    assert count_pages(launch, make_volumes(launch), 0) == list_pages(launch)


def test_pages_that_cannot_matter_are_not_counted() -> None:
    """Answers with the bound where it is low enough."""
    launch = make_stencil(16, 1, 64)
    volumes = make_volumes(launch)
    assert count_pages(launch, volumes, 1000) == volumes.wave.tlb_pages > 72 + 64


def test_pages_of_unknown_addresses_are_left_out() -> None:
    """Counts the pages of what walks through memory in order only."""
    launch = make_stencil(16, 1, 64)
    volumes = make_volumes(launch)
    stores = tuple(
        replace(one, offset_bytes=one.offset_bytes if one.kind is AccessKind.STORE else None)
        for one in launch.accesses
    )
    assert count_pages(replace(launch, accesses=stores), volumes, 0) == 64


def test_pages_between_corners_give_the_bound() -> None:
    """Trusts no corners where work-items lie pages apart."""
    launch = make_star(array=(2**20, 512), radius=1, local_size=(2, 256), registers=32)
    volumes = make_volumes(launch)
    sectors = (volumes.l1.compulsory_bytes + volumes.l1.stored_bytes) / 32
    assert count_pages(launch, volumes, 0) == min(volumes.wave.tlb_pages, sectors)


@pytest.mark.parametrize(("local_size", "lines"), [((32, 8, 4), 2.94), ((16, 8, 8), 3.88)])
def test_rows_of_a_warp_touch_lines(local_size: tuple[int, ...], lines: float) -> None:
    """Counts 8 n - 8 bytes over lines of 128 more than one for each row, mean of alignments."""
    launch = make_stencil(*local_size)
    volumes = make_volumes(launch)
    per_request = volumes.l1.load_lines / volumes.l1.load_requests
    assert per_request == pytest.approx(lines, rel=0.03)


def test_lanes_know_their_ids() -> None:
    """Binds local, group and global ids of neighbouring work-groups in the middle."""
    ndrange = NDRange(global_size=(64, 8), local_size=(8, 2), global_offset=(100, 0))
    launch = ModelledLaunch(kernel="k", ndrange=ndrange, accesses=(), scalars={"n": 5})
    ids = bind_lanes(launch, np.arange(16), 2)
    first = np.asarray(ids[Symbol(SymbolKind.GLOBAL_ID, axis=0)])
    assert first.shape == (2, 16)
    assert first[:, 0].tolist() == [100 + 4 * 8, 100 + 5 * 8]
    assert np.asarray(ids[Symbol(SymbolKind.LOCAL_ID, axis=1)]).ravel()[[0, 7, 8]].tolist() == [
        0,
        0,
        1,
    ]
    assert ids[Symbol(SymbolKind.SCALAR, "n")] == 5
