"""Copies of a buffer become one by what each device changed."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelcast.balancing.launch_buffers import merge_changes


@given(
    hnp.arrays(np.uint32, st.integers(1, 50)),
    st.integers(1, 4),
    st.data(),
)
def test_disjoint_changes_all_arrive(
    before: npt.NDArray[np.uint32], devices: int, data: st.DataObject
) -> None:
    """Each element changed by one device has that device's value, all others the old one."""
    owner = data.draw(hnp.arrays(np.int64, before.size, elements=st.integers(-1, devices - 1)))
    after = data.draw(hnp.arrays(np.uint32, before.size))
    copies = [np.where(owner == n, after, before) for n in range(devices)]
    expected = np.where(owner >= 0, after, before)
    views = [one.view(np.uint8) for one in copies]
    conflicts = merge_changes(before.view(np.uint8), views, 4)
    assert conflicts == 0
    assert np.array_equal(copies[0], expected)


def test_content_is_compared_bit_by_bit() -> None:
    """A NaN equals itself, and -0.0 differs from 0.0; only different changes are conflicts."""
    before = np.array([np.nan, 0.0, 1.0, 2.0, 3.0])
    one, other = before.copy(), before.copy()
    one[1:] = (-0.0, 1.0, 7.0, 8.0)
    other[2:] = (5.0, 7.0, 9.0)
    views = [one.view(np.uint8), other.view(np.uint8)]
    assert merge_changes(before.view(np.uint8), views, 8) == 1
    assert np.isnan(one[0])
    assert np.signbit(one[1])
    assert one[2:4].tolist() == [5.0, 7.0]
