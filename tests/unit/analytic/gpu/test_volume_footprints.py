"""Footprints of work-groups against enumeration."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid, GroupRange, bind_sizes, to_box
from kernelcast.analytic.gpu.volumes.boxes import count_per_group, list_classes
from kernelcast.analytic.gpu.volumes.footprints import Footprint
from kernelcast.expressions import Expr, Symbol, SymbolKind, less
from kernelcast.expressions.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace
from support.address_sets import bind_group, enumerate_offsets
from support.stencils import make_star

X, Y = (Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis)) for axis in (0, 1))
K = Expr.symbol(Symbol(SymbolKind.LOOP, "k"))


def load(buffer: str, address: Expr, size: int = 4, **more: object) -> MemoryAccess:
    """Make a load of `size` bytes."""
    return MemoryAccess(
        site=0, block=0, line=1, text=buffer, kind=AccessKind.LOAD, space=MemorySpace.GLOBAL,
        buffer=buffer, bytes=size, offset_bytes=address, pattern=AddressPattern.QUASI_AFFINE,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def loop(trips: int) -> LoopFacts:
    """Make a loop of a fixed length."""
    return LoopFacts(
        name="k", line=1, condition=less(K, trips), trip_count=Expr.constant(trips), is_exact=True
    )


def boxes_of(launch: ModelledLaunch) -> tuple[BoxAccess, ...]:
    """Turn all accesses of a launch into boxes."""
    bound = bind_sizes(launch)
    found = [to_box(one, launch, bound, {}) for one in launch.accesses]
    assert all(one is not None for one in found)
    return tuple(one for one in found if one is not None)


def loads_of(launch: ModelledLaunch) -> Footprint:
    """Give the footprint of a launch's loads."""
    kept = tuple(one for one in boxes_of(launch) if one.access.kind is AccessKind.LOAD)
    return Footprint(boxes=kept, grid=Grid.of(launch.ndrange))


def list_groups(launch: ModelledLaunch, box: GroupRange) -> list[int]:
    """List the work-groups of a box of the grid."""
    counts = (*launch.ndrange.group_counts, 1, 1)
    x, y, z = (
        range(max(low, 0), min(end, count)) for (low, end), count in zip(box, counts, strict=False)
    )
    return [one + counts[0] * (two + counts[1] * three) for three in z for two in y for one in x]


def whole(launch: ModelledLaunch) -> GroupRange:
    """Give the box of all work-groups."""
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
    launch = ModelledLaunch(
        kernel="k",
        ndrange=NDRange(global_size=(54, 21), local_size=local),
        accesses=tuple(load("a", pitch * (Y + by) + 4 * (X + bx)) for bx, by in
                       ((0, 0), (1, 0), (7, 0), (3, 2))),
    )  # fmt: skip
    counted = loads_of(launch).count_box(whole(launch), 32)
    assert counted == 32 * enumerate_sectors(launch, range(launch.ndrange.work_group_count), 32)


def test_matrix_product_in_loops() -> None:
    """Operands inside a loop are counted, rows once for a row of work-groups."""
    launch = ModelledLaunch(
        kernel="product",
        ndrange=NDRange(global_size=(64, 32), local_size=(16, 8)),
        accesses=(
            load("a", 4 * (Y * 128 + K), loops=(loop(128),)),
            load("b", 4 * (K * 64 + X), loops=(loop(128),)),
        ),
    )
    footprint = loads_of(launch)
    assert footprint.count_box(((0, 4), (0, 1), (0, 1)), 32) == (8 * 128 + 128 * 64) * 4
    part = (1, 3), (0, 2), (0, 1)
    sectors = enumerate_sectors(launch, list_groups(launch, part), 64)
    assert footprint.count_box(part, 64) == 64 * sectors
    assert len(footprint.list_levels(wave=2, granularity=32)) == 2


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
        load("a", 4 * X * Y),
        load("a", 4 * X, guard=less(X, Y)),
        load("a", 4 * K, loops=(LoopFacts(
            name="k", line=1, condition=less(K, X), trip_count=X, is_exact=True),)),
    ]  # fmt: skip
    launch = ModelledLaunch(
        kernel="k", ndrange=NDRange(global_size=(8, 8), local_size=(4, 4)), accesses=tuple(cases)
    )
    bound = bind_sizes(launch)
    assert [to_box(one, launch, bound, {}) for one in cases] == [None, None, None]


def test_guards_do_not_hide_that_accesses_share_data() -> None:
    """Counts what translates under different guards touch together once."""
    launch = ModelledLaunch(
        kernel="k",
        ndrange=NDRange(global_size=(40, 24), local_size=(8, 4)),
        accesses=(
            load("a", 4 * (X + 48 * Y)),
            load("a", 4 * (X + 1 + 48 * Y), guard=less(X, 30)),
            load("a", 4 * (X + 48 * (Y + 1)), guard=less(3, Y)),
        ),
    )
    footprint = loads_of(launch)
    assert len(footprint.by_buffer[0]) == 1
    for box in (((0, 5), (0, 6), (0, 1)), ((1, 4), (2, 4), (0, 1)), ((4, 5), (5, 6), (0, 1))):
        expected = 64 * enumerate_sectors(launch, list_groups(launch, box), 64)
        assert footprint.count_box(box, 64) == expected


def test_one_buffer_is_counted_up_to_its_ends() -> None:
    """Bounds families that overlap by what lies between the first and the last address."""
    launch = ModelledLaunch(
        kernel="k",
        ndrange=NDRange(global_size=(256,), local_size=(64,)),
        accesses=(load("a", 4 * X), load("a", 4 * K, loops=(loop(256),))),
    )
    assert loads_of(launch).count_box(whole(launch), 64) == 1024
