import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.linear import LaunchArrays, fit_intercept_of_few

LAUNCHES = st.lists(st.tuples(st.floats(1e-2, 1e6), st.floats(1e-6, 10.0)), min_size=1, max_size=9)


def arrays(launches: list[tuple[float, float]]) -> LaunchArrays:
    """Make launches of so many work-groups that took so many seconds."""
    counts, times = (np.array(column) for column in zip(*launches, strict=True))
    return LaunchArrays(counts=counts, times=times, windows=np.zeros(len(launches), dtype=np.int64))


@given(launches=LAUNCHES, overhead_s=st.floats(0.0, 10.0))
def test_every_launch_has_paid_it(launches: list[tuple[float, float]], overhead_s: float) -> None:
    """Is never negative, and always less than the shortest launch; its error is positive."""
    intercept, error = fit_intercept_of_few(arrays(launches), overhead_s)
    assert 0 <= intercept < min(seconds for _, seconds in launches)
    assert error > 0


@given(overhead=st.floats(0.0, 0.2), count=st.integers(1, 5))
def test_launches_of_one_size_tell_nothing(overhead: float, count: int) -> None:
    """Gives what was taken for it where launches of one size, 1 s each, say nothing else."""
    intercept, error = fit_intercept_of_few(arrays([(8.0, 1.0)] * count), overhead)
    assert intercept == pytest.approx(overhead, abs=1e-6)
    assert error == pytest.approx(0.25, rel=1e-3)


def test_two_places_are_not_taken_at_their_word() -> None:
    """Leaves what differs between two launches of eight and of four work-groups to their work."""
    # Their line would have 9.6 of the shorter one's 10 ms paid once.
    intercept, _ = fit_intercept_of_few(arrays([(4.0, 10e-3), (8.0, 10.4e-3)]), 0.4e-3)
    assert intercept < 0.7 * 10e-3


@given(factor=st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(factor: float) -> None:
    """Gives k times as much where all take k times as long."""
    launches = [(4.0, 3e-3), (8.0, 5e-3), (30.0, 20e-3)]
    plain = fit_intercept_of_few(arrays(launches), 1e-3)
    scaled = fit_intercept_of_few(arrays([(n, t * factor) for n, t in launches]), 1e-3 * factor)
    assert scaled == pytest.approx([factor * one for one in plain])
