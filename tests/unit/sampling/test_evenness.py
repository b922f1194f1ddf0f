import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.sampling.evenness import is_even


@given(count=st.integers(1, 12), light=st.floats(0.001, 0.2), where=st.integers(0, 11))
def test_next_to_no_work_at_one_place_is_not_even(count: int, light: float, where: int) -> None:
    """Nothing shortens a launch: one place of next to no work is enough."""
    rates = np.insert(np.linspace(1.0, 1.1, count), min(where, count), light)
    assert not is_even(rates)


@given(count=st.integers(4, 12), slow=st.floats(2.0, 100.0))
def test_one_disturbed_launch_leaves_work_even(count: int, slow: float) -> None:
    """Other programs lengthen one launch in five or more, however much."""
    assert is_even(np.append(np.linspace(1.0, 1.1, count), slow))
