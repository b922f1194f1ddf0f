import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kernelcast.records.device import DispatchOrder
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.mapped_windows import (
    can_map,
    choose_rows,
    find_row_width,
    is_full,
    measure_scale,
)
from kernelcast.sampling.windows import box_near, tile_of

COUNTS = st.lists(st.integers(2, 300), min_size=2, max_size=2).map(tuple)
SPACE = NDRange(global_size=(512, 512), local_size=(8, 8))
WIDTH = tile_of(SPACE.group_counts)[0]

# Traced on Intel's runtime with two threads: which work-groups run one after another.
TRACED = {
    (512, 2048): (128, 64),
    (512, 64): (16, 16),
    (512, 20): (8, 10),
    (512, 4): (4, 4),
    (512, 2): (4, 2),
    (100, 300): (13, 19),
    (300, 220): (19, 28),
    (640, 480): (40, 60),
    (1000, 10): (8, 10),
    (1, 1000): (1, 1000),
    (20, 40, 30): (5, 5, 8),
    (128, 8, 64): (8, 8, 8),
    (1, 128, 64): (1, 8, 8),
    (256, 128, 2): (16, 16, 2),
    (400, 300, 20): (25, 38, 20),
}


@pytest.mark.parametrize(("counts", "tile"), TRACED.items(), ids=str)
def test_tiles_are_those_that_were_traced(counts: tuple[int, ...], tile: tuple[int, ...]) -> None:
    """Cuts index spaces as the runtime was seen to cut them."""
    assert tile_of(counts) == tile


@given(data=st.data(), counts=COUNTS)
def test_windows_of_several_rows_can_be_mapped(
    data: st.DataObject, counts: tuple[int, ...]
) -> None:
    """Chooses boxes that a row of work-groups can be mapped to, up to an eighth of a launch."""
    work_groups = data.draw(st.integers(1, max(1, math.prod(counts) // 8)))
    box = box_near(math.prod(counts) // 2, work_groups, counts, DispatchOrder.TILE_ROWS)
    assume(sum(extent > 1 for extent in box.shape) > 1)
    ndrange = NDRange(global_size=counts, local_size=(1,) * len(counts))
    width = tile_of(counts)[0]
    assert can_map(box, ndrange, width) or box.shape[0] > width


@given(data=st.data(), counts=COUNTS)
def test_a_mapped_row_has_the_work_groups_of_its_box(
    data: st.DataObject, counts: tuple[int, ...]
) -> None:
    """Numbers exactly the box's work-groups by the formulas of the prelude."""
    work_groups = data.draw(st.integers(1, min(2000, math.prod(counts))))
    box = box_near(math.prod(counts) // 2, work_groups, counts, DispatchOrder.TILE_ROWS)
    ndrange, width = NDRange(global_size=counts, local_size=(1, 1)), tile_of(counts)[0]
    assume(can_map(box, ndrange, width))
    places = {(g % width, g // width) for g in range(box.work_group_count)}
    assert places == {(x, y) for x in range(box.shape[0]) for y in range(box.shape[1])}


def test_smaller_work_groups_are_never_mapped() -> None:
    """Launches a box as it is where its last work-groups are cut off."""
    ndrange = NDRange(global_size=(512, 508), local_size=(8, 8))
    box = GroupBox(start=(0, 60), shape=(WIDTH, 4))
    assert not can_map(box, ndrange, WIDTH)
    assert can_map(GroupBox(start=(0, 59), shape=(WIDTH, 4)), ndrange, WIDTH)
    assert all(is_full(row, ndrange) for row in choose_rows(ndrange, WIDTH))


@pytest.mark.parametrize("order", DispatchOrder)
def test_only_tiles_need_mapping(order: DispatchOrder) -> None:
    """Maps nothing where rows are dispatched, or where there are not two dimensions."""
    assert bool(find_row_width(SPACE, order)) == (order is DispatchOrder.TILES)
    assert not find_row_width(NDRange(global_size=(512, 1), local_size=(8, 1)), order)
    assert not find_row_width(NDRange(global_size=(64, 64, 64), local_size=(8, 8, 4)), order)


@pytest.mark.parametrize(
    ("factor", "scale"),
    [(1.0, 1.0), (1.1, 1.0), (1.25, 0.8), (0.8, 1.25), (3.0, None), (0.3, None)],
)
def test_other_code_is_scaled_or_dropped(factor: float, scale: float | None) -> None:
    """Believes mapped windows as far as both forms take the same on the same work-groups."""

    def time_boxes(boxes: Sequence[tuple[GroupBox, bool]]) -> list[float]:
        return [1e-5 + 1e-4 * (factor if is_mapped else 1.0) for _, is_mapped in boxes]

    found = measure_scale(choose_rows(SPACE, WIDTH), time_boxes, launch_overhead_s=1e-5)
    assert found == (pytest.approx(scale, rel=0.05) if scale else scale)


def test_short_launches_tell_nothing() -> None:
    """Believes mapped windows where a row's piece takes no longer than an empty launch."""
    found = measure_scale(
        choose_rows(SPACE, WIDTH), lambda boxes: [1.1e-5 for _ in boxes], launch_overhead_s=1e-5
    )
    assert found == 1.0


def test_a_form_that_takes_next_to_nothing_contradicts_a_slow_one() -> None:
    """Drops mapped windows that take long where the plain ones are as short as an empty launch."""

    def time_boxes(boxes: Sequence[tuple[GroupBox, bool]]) -> list[float]:
        return [1.3e-5 if is_mapped else 1.1e-6 for _, is_mapped in boxes]

    for overhead_s in (0.0, 1e-6, 1e-5):
        rows = choose_rows(SPACE, WIDTH)
        assert measure_scale(rows, time_boxes, launch_overhead_s=overhead_s) is None
