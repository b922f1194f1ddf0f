from dataclasses import replace

import numpy as np
import pytest

from kernelcast.analytic.gpu.limiters.demands import bind_lanes, count_pages, find_offsets
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
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


def test_pages_of_unknown_addresses_are_left_out() -> None:
    """Counts the pages of what walks through memory in order only."""
    launch = make_stencil(16, 1, 64)
    volumes = make_volumes(launch)
    stores = tuple(
        replace(one, offset_bytes=one.offset_bytes if one.kind is AccessKind.STORE else None)
        for one in launch.accesses
    )
    assert count_pages(replace(launch, accesses=stores), volumes, 0) == 64


@pytest.mark.parametrize(("local_size", "lines"), [((32, 8, 4), 2.94), ((16, 8, 8), 3.88)])
def test_rows_of_a_warp_touch_lines(local_size: tuple[int, ...], lines: float) -> None:
    """Counts 8 n - 8 bytes over lines of 128 more than one for each row, mean of alignments."""
    launch = make_stencil(*local_size)
    volumes = make_volumes(launch)
    per_request = volumes.l1.load_lines / volumes.l1.load_requests
    assert per_request == pytest.approx(lines, rel=0.03)
