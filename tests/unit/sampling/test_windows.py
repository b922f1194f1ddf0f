import math

from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.windows import box_near, cut_box, find_free_box, position_of

COUNTS = st.lists(st.integers(1, 300), min_size=1, max_size=3).map(tuple)


def is_inside(box: GroupBox, counts: tuple[int, ...]) -> bool:
    """Tell whether a box lies in a grid of work-groups and is not empty."""
    return all(
        first >= 0 and extent >= 1 and first + extent <= count
        for first, extent, count in zip(box.start, box.shape, counts, strict=True)
    )


@given(data=st.data(), counts=COUNTS)
def test_runs_begin_where_they_are_asked_to(data: st.DataObject, counts: tuple[int, ...]) -> None:
    """Begins a single work-group's box at the place asked for, whose number it gives back."""
    position = data.draw(st.integers(0, math.prod(counts) - 1))
    box = box_near(position, 1, counts)
    assert box.work_group_count == 1
    assert position_of(box, counts) == position


@given(data=st.data(), counts=COUNTS)
def test_free_boxes_never_overlap(data: st.DataObject, counts: tuple[int, ...]) -> None:
    """Gives boxes inside the index space that share no work-group, however often it is asked."""
    total = math.prod(counts)
    taken: list[GroupBox] = []
    for _ in range(data.draw(st.integers(1, 12))):
        position = data.draw(st.integers(0, total - 1))
        work_groups = data.draw(st.integers(1, max(1, total // 6)))
        box = find_free_box(position, work_groups, counts, taken)
        if box is None:
            continue
        assert is_inside(box, counts)
        assert not any(box.overlaps(other) for other in taken)
        taken.append(box)
    assert taken


@given(extent=st.integers(1, 40), width=st.integers(1, 6), grain=st.integers(1, 16))
def test_a_warm_up_fills_the_device(extent: int, width: int, grain: int) -> None:
    """Is a multiple of what runs at once, at most half of the box, and the rest is behind it."""
    first, rest = cut_box(GroupBox(start=(3, 5), shape=(width, extent)), grain)
    count = 0 if first is None else first.work_group_count
    assert count + rest.work_group_count == width * extent
    assert count % grain == 0
    assert count <= rest.work_group_count
