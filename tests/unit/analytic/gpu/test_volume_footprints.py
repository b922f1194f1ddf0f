"""Footprints of work-groups against enumeration."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.analytic.gpu.volumes.affine import Grid, GroupRange, bind_sizes, to_box
from kernelcast.analytic.gpu.volumes.boxes import count_per_group, list_classes
from kernelcast.analytic.gpu.volumes.footprints import Footprint
from kernelcast.expressions import less
from kernelcast.expressions.accesses import AccessKind, ModelledLaunch
from support.accesses import K, X, Y, make_access, make_launch, make_loop
from support.address_sets import bind_group, enumerate_offsets
from support.stencils import make_star


def loads_of(launch: ModelledLaunch) -> Footprint:
    bound = bind_sizes(launch)
    found = [
        to_box(one, launch, bound, {}) for one in launch.accesses if one.kind is AccessKind.LOAD
    ]
    assert all(one is not None for one in found)
    return Footprint(boxes=tuple(filter(None, found)), grid=Grid.of(launch.ndrange))


def list_groups(launch: ModelledLaunch, box: GroupRange) -> list[int]:
    counts = (*launch.ndrange.group_counts, 1, 1)
    x, y, z = (
        range(max(low, 0), min(end, count)) for (low, end), count in zip(box, counts, strict=False)
    )
    return [one + counts[0] * (two + counts[1] * three) for three in z for two in y for one in x]


def whole(launch: ModelledLaunch) -> GroupRange:
    x, y, z = (*launch.ndrange.group_counts, 1, 1)[:3]
    return (0, x), (0, y), (0, z)


def enumerate_sectors(launch: ModelledLaunch, groups: Iterable[int], granularity: int) -> int:
    """Count sectors of the loads one address at a time."""
    found = set()
    for access in launch.accesses:
        if access.kind is AccessKind.LOAD:
            shift = launch.alignments.get(access.buffer or "", 0)
            for group in groups:
                bound = bind_group(launch.ndrange, group, launch.scalars)
                for offset in enumerate_offsets(access, bound):
                    first, last = offset + shift, offset + shift + access.bytes - 1
                    found |= {
                        (access.buffer, sector)
                        for sector in range(first // granularity, last // granularity + 1)
                    }
    return len(found)


@given(
    local=st.tuples(st.integers(1, 12), st.integers(1, 5), st.integers(1, 3)),
    fold=st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 2)),
    granularity=st.sampled_from([32, 64, 128]),
    start=st.tuples(*(st.integers(0, 3),) * 3),
    alignment=st.sampled_from([0, 8, 40]),
)
@settings(max_examples=15, deadline=None)
def test_stencil_footprint_equals_enumeration(
    local: tuple[int, int, int],
    fold: tuple[int, int, int],
    granularity: int,
    start: tuple[int, int, int],
    alignment: int,
) -> None:
    """Any box of work-groups of any shape, folding and alignment is counted exactly."""
    # Rows are 256 bytes of which the stencil uses 208: gaps keep seams apart.
    launch = make_star(
        array=(32, 16, 12), radius=2, local_size=local, fold=fold, interior=(22, 5, 4),
        alignment_bytes=alignment,
    )  # fmt: skip
    x, y, z = (
        (min(one, count - 1), min(one + 2, count))
        for one, (_, count) in zip(start, whole(launch), strict=True)
    )
    counted = loads_of(launch).count_box((x, y, z), granularity)
    groups = list_groups(launch, (x, y, z))
    assert counted == granularity * enumerate_sectors(launch, groups, granularity)


@given(
    pitch=st.sampled_from([400, 416, 420]),
    local=st.tuples(st.sampled_from([1, 2, 3, 9, 27]), st.sampled_from([1, 3, 7])),
)
@settings(max_examples=8, deadline=None)
def test_rows_that_are_no_multiple_of_a_sector(pitch: int, local: tuple[int, int]) -> None:
    """Rows whose alignments differ are counted by alignment."""
    places = ((0, 0), (1, 0), (7, 0), (3, 2))
    accesses = (make_access("a", pitch * (Y + by) + 4 * (X + bx)) for bx, by in places)
    launch = make_launch(*accesses, items=(54, 21), local=local)
    counted = loads_of(launch).count_box(whole(launch), 32)
    assert counted == 32 * enumerate_sectors(launch, range(launch.ndrange.work_group_count), 32)


def test_mean_work_group_counts_every_alignment_and_edge() -> None:
    """The mean over work-groups equals the mean of all of them, one by one."""
    launch = make_star(array=(70, 20), radius=1, local_size=(6, 5), alignment_bytes=8)
    footprint = loads_of(launch)
    classes = list_classes(footprint.boxes, footprint.grid)
    mean = count_per_group(footprint.boxes, classes, footprint.grid, 32)
    count = launch.ndrange.work_group_count
    singles = [enumerate_sectors(launch, range(one, one + 1), 32) for one in range(count)]
    assert mean == pytest.approx(np.mean(singles))


def test_what_is_no_box_is_left_to_enumeration() -> None:
    """Products of variables, guards across axes and loops of varying length make no box."""
    cases = [
        make_access("a", 4 * X * Y),
        make_access("a", 4 * X, guard=less(X, Y)),
        make_access("a", 4 * K, loops=(make_loop(X),)),
    ]
    launch = make_launch(*cases, items=(8, 8), local=(4, 4))
    bound = bind_sizes(launch)
    assert [to_box(one, launch, bound, {}) for one in cases] == [None, None, None]


def test_guards_do_not_hide_that_accesses_share_data() -> None:
    """Counts what translates under different guards touch together once."""
    launch = make_launch(
        make_access("a", 4 * (X + 48 * Y)),
        make_access("a", 4 * (X + 1 + 48 * Y), guard=less(X, 30)),
        make_access("a", 4 * (X + 48 * (Y + 1)), guard=less(3, Y)),
        items=(40, 24), local=(8, 4),
    )  # fmt: skip
    footprint = loads_of(launch)
    assert len(footprint.by_buffer[0]) == 1
    for box in (((0, 5), (0, 6), (0, 1)), ((1, 4), (2, 4), (0, 1)), ((4, 5), (5, 6), (0, 1))):
        expected = 64 * enumerate_sectors(launch, list_groups(launch, box), 64)
        assert footprint.count_box(box, 64) == expected


def test_one_buffer_is_counted_up_to_its_ends() -> None:
    """Bounds families that overlap by what lies between the first and the last address."""
    both = make_access("a", 4 * X), make_access("a", 4 * K, trips=256)
    launch = make_launch(*both, items=(256,), local=(64,))
    assert loads_of(launch).count_box(whole(launch), 64) == 1024
