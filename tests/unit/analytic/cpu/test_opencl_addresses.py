"""Addresses and lines of sampled work-groups are those of each work-item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.cpu.opencl.addresses import ABSENT, GroupAddresses, list_distinct
from kernelcast.analytic.cpu.opencl.patterns import find_patterns
from support.opencl_cpu import make_launch


@given(
    st.sampled_from([(1, 1), (40, 1), (64, 16), (512, 3)]),
    st.sampled_from([0, 1, 4, 4096, 1 << 20]),
    st.sampled_from([0, 4, 100, 1 << 24]),
    st.integers(-(1 << 40), 1 << 40),
)
def test_lists_each_line_once(shape: tuple[int, int], across: int, down: int, first: int) -> None:
    """Gives the same lines, whether they lie together, in streets, or far apart."""
    rows, columns = (np.arange(size) for size in shape)
    values = first + across * rows[:, None] + down * columns
    assert list_distinct(values).tolist() == np.unique(values).tolist()


def test_an_access_over_two_lines_touches_both() -> None:
    """Counts the lines of first and last bytes, and none of those that are not executed."""
    table = np.full((1024, 1), ABSENT)
    table[7], table[8] = 60, 128
    assert GroupAddresses(table, count=2).list_lines(8, 64).tolist() == [0, 1, 2]


@pytest.mark.parametrize("distance", [0, 1, 3, -2])
def test_accesses_that_are_moved_are_where_they_were_written(distance: int) -> None:
    """Gives each access its own addresses, also where another one differs by a number only."""
    launch = make_launch(["a:float32:4096"], loads=["a[x+4]", f"a[x+{4 + distance}]"])
    one, other = find_patterns(launch, 16)
    assert one.lanes == other.lanes
    for place, table in one.groups.items():
        moved = other.groups[place].table - table.table
        assert (moved == 4 * distance).all()
