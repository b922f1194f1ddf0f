import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import NDRangeError
from kernelcast.records.ndrange import GroupBox, NDRange
from support import strategies


@given(ndrange=strategies.ndranges(uniform=True) | strategies.ndranges(uniform=False))
def test_remainder_counts_as_a_work_group(ndrange: NDRange) -> None:
    """Counts a cut work-group as one, so that full ones would hold more than the space does."""
    in_full_groups = ndrange.work_group_count * ndrange.work_group_size
    assert (in_full_groups == ndrange.work_item_count) == ndrange.is_uniform
    assert in_full_groups >= ndrange.work_item_count
    assert all(
        (count - 1) * local < size <= count * local
        for count, local, size in zip(
            ndrange.group_counts, ndrange.known_local_size, ndrange.global_size, strict=True
        )
    )


@given(data=st.data(), ndrange=strategies.ndranges())
def test_splitting_the_space_loses_nothing(data: st.DataObject, ndrange: NDRange) -> None:
    """Gives the parts of a split index space all of its work-items, each once."""
    axis = data.draw(st.integers(0, ndrange.dimensions - 1))
    count = ndrange.group_counts[axis]
    cut = data.draw(st.integers(0, count))
    zero = (0,) * ndrange.dimensions
    parts = [
        GroupBox(
            start=(*zero[:axis], first, *zero[axis + 1 :]),
            shape=(*ndrange.group_counts[:axis], extent, *ndrange.group_counts[axis + 1 :]),
        )
        for first, extent in ((0, cut), (cut, count - cut))
        if extent
    ]
    launches = [ndrange.work_items_of(part) for part in parts]
    assert sum(math.prod(size) for _, size in launches) == ndrange.work_item_count
    assert launches[0][0] == ndrange.global_offset
    if len(launches) == 2:
        (first_offset, first_size), (second_offset, _) = launches
        assert first_offset[axis] + first_size[axis] == second_offset[axis]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"global_size": (1, 1, 1, 1)}, r"has 4 dimensions; give one to three"),
        ({"global_size": (2**30, 2**20, 2**20)}, r"more than 2\*\*62 work-items"),
        ({"global_size": (8,), "local_size": (-2,)}, r"axis 0: local size is -2"),
        ({"global_size": (8,), "global_offset": (-1,)}, r"axis 0: global offset is -1"),
    ],
)  # fmt: skip
def test_refuses_what_is_no_index_space(
    arguments: dict[str, tuple[int, ...]], message: str
) -> None:
    """Refuses sizes that make no index space, naming the axis and what to give."""
    with pytest.raises(NDRangeError, match=message):
        NDRange(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("start", "shape"), [((0, 2), (1, 1)), ((-1, 0), (1, 1)), ((0, 0), (0, 1)), ((3, 0), (2, 1))]
)
def test_refuses_boxes_outside(start: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuses a box that leaves the index space or is empty, saying which work-groups there are."""
    ndrange = NDRange(global_size=(32, 5), local_size=(8, 3))
    with pytest.raises(NDRangeError, match=r"axis [01]: work-groups .* the index space has 0 to"):
        ndrange.work_items_of(GroupBox(start=start, shape=shape))
