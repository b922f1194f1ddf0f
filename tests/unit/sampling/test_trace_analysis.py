import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.work_group_trace import Staircase
from kernelcast.sampling.instrumented import (
    average_active,
    count_active,
    find_concurrency,
    find_p_sat,
    find_staircase,
    find_steps,
    find_waves,
    pack_lanes,
)

Times = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


times_of_groups = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=30
).map(
    lambda pairs: (
        np.array([float(start) for start, _ in pairs]),
        np.array([float(start + length) for start, length in pairs]),
    )
)


@pytest.mark.parametrize(
    ("waves", "units", "expected", "p_sat"),
    [
        # The paper's Fig. 5: a micro-kernel on 16 compute units, and n-body, whose third work-group
        # takes almost twice as long as the first.
        ([[1.0] * 32] * 3, 16, Staircase.NO, 2),
        ([[1.0] * 16 + [1.4] * 16 + [1.9] * 16] * 2, 16, Staircase.YES, 3),
        # Mere unevenness is none: later numbers must end later.
        (np.random.default_rng(7).uniform(1, 3, (9, 32)).tolist(), 16, Staircase.NO, 2),
        ([[1.0, 2.0]] * 4, 2, Staircase.NOT_APPLICABLE, 1),
    ],
)
def test_waves_and_staircases(
    waves: list[list[float]], units: int, expected: Staircase, p_sat: int
) -> None:
    """Tells how many work-groups run at once, and whether some numbers are favoured."""
    durations = np.array(waves)  # each wave begins when the longest of the one before has ended
    begins = np.concatenate([[0.0], np.cumsum(durations.max(axis=1))[:-1]])[:, np.newaxis]
    starts, finishes = (begins + 0 * durations).ravel(), (begins + durations).ravel()
    found, ran_on = find_waves(starts, finishes), np.arange(len(starts)) % units
    assert find_concurrency(starts, finishes) == len(waves[0])
    assert np.bincount(found).tolist() == [len(one) for one in waves]
    for known in (ran_on, None) if expected is Staircase.YES else (ran_on,):
        assert find_staircase(starts, finishes, found, known) is expected
    for knows_units in (True, False):
        told = find_p_sat(starts, finishes, ran_on, compute_units=units, knows_units=knows_units)
        assert told == p_sat


@given(times_of_groups)
def test_lanes_hold_no_overlap(times: Times) -> None:
    """Never puts two work-groups on one lane at once, and uses no more lanes than needed."""
    starts, finishes = times
    lanes = pack_lanes(starts, finishes)
    for lane in np.unique(lanes):
        inside = np.flatnonzero(lanes == lane)
        order = inside[np.lexsort((finishes[inside], starts[inside]))]
        assert (finishes[order][:-1] <= starts[order][1:]).all()
    # A work-group shorter than a tick occupies a lane and counts as active nowhere.
    if (finishes > starts).all():
        assert lanes.max() + 1 == find_concurrency(starts, finishes)


@given(times_of_groups)
def test_activity_adds_up(times: Times) -> None:
    """Ends with nothing active; averages hold the same work as the work-groups."""
    starts, finishes = times
    _, active = count_active(starts, finishes)
    assert active[-1] == 0
    edges, mean = average_active(starts, finishes, bins=7)
    assert np.sum(mean * np.diff(edges)) == pytest.approx(np.sum(finishes - starts), rel=1e-6)


@pytest.mark.parametrize("width", [2, 3, 5, 8])
def test_steps_are_found_through_noise(width: int) -> None:
    """Finds the width of steps under 3 % of noise and a constant overhead."""
    counts = np.arange(1, 25)
    noise = np.random.default_rng(width).normal(1, 0.03, len(counts))
    times = (0.2 + np.ceil(counts / width)) * noise
    assert find_steps(counts.tolist(), times.tolist()) == (width, True)


@pytest.mark.parametrize(
    "times",
    [
        pytest.param([1.0 * n for n in range(1, 17)], id="a line"),
        pytest.param([1.0 + 0.01 * (n % 3) for n in range(16)], id="overhead only"),
        pytest.param([2.0 - 0.05 * n for n in range(16)], id="falling"),
        pytest.param([1.0], id="one launch"),
        pytest.param([1.0, 3.0], id="two launches"),
    ],
)
def test_no_steps_are_made_up(times: list[float]) -> None:
    """Claims no steps where there are none to see."""
    assert find_steps(list(range(1, len(times) + 1)), times) == (1, False)
