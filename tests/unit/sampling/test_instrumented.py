"""What traces and logs tell."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.work_group_trace import Staircase
from kernelcast.sampling.instrumented import (
    Counted,
    average_active,
    count_active,
    find_concurrency,
    find_p_sat,
    find_staircase,
    find_steps,
    find_waves,
    pack_lanes,
    place_work_items,
    read_log,
)

# Starts and ends, of pairs of start and length.
times_of_groups = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=30
).map(lambda pairs: np.cumsum(np.array(pairs, dtype=np.float64), axis=1).T)


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
def test_lanes_hold_no_overlap_and_activity_adds_up(times: npt.NDArray[np.float64]) -> None:
    """Uses no more lanes than needed; ends with nothing active, averages hold all of the work."""
    starts, finishes = times
    lanes = pack_lanes(starts, finishes)
    for lane in np.unique(lanes):
        inside = np.flatnonzero(lanes == lane)
        order = inside[np.lexsort((finishes[inside], starts[inside]))]
        assert (finishes[order][:-1] <= starts[order][1:]).all()
    # A work-group shorter than a tick occupies a lane and counts as active nowhere.
    if (finishes > starts).all():
        assert lanes.max() + 1 == find_concurrency(starts, finishes)
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
        [1.0 * n for n in range(1, 17)],
        [1.0 + 0.01 * (n % 3) for n in range(16)],  # overhead only
        [2.0 - 0.05 * n for n in range(16)],
        [1.0],
        [1.0, 3.0],
    ],
)
def test_no_steps_are_made_up(times: list[float]) -> None:
    """Claims no steps where there are none to see."""
    assert find_steps(list(range(1, len(times) + 1)), times) == (1, False)


NDRANGE = NDRange(global_size=(8, 2), local_size=(2, 2))
BOXES = (GroupBox(start=(0, 0), shape=(1, 1)), GroupBox(start=(2, 0), shape=(2, 1)))
COLUMNS = ("sites", "groups", "local_ids", "sequences", "offsets_bytes")
Row = tuple[int, int, int, int, int]


@st.composite
def logs(draw: st.DrawFn) -> list[Counted]:
    capacity = draw(st.integers(1, 6))
    counted = []
    for box in BOXES:
        items = 4 * box.work_group_count
        counts = draw(st.lists(st.integers(0, 8), min_size=items, max_size=items))
        # Where the buffer is not known, drivers give addresses up to the last of 64 bits.
        # Sites beyond those that are sorted by digits are counted alike.
        sites = st.integers(0, 5) | st.sampled_from([2**16, 2**40])
        words = st.tuples(sites, st.integers(0, 40) | st.just(2**64 - 16))
        log = draw(st.lists(words, min_size=items * capacity, max_size=items * capacity))
        entries = np.array(log, dtype=np.uint64).reshape(items, capacity, 2)
        counted.append((box, np.array([[7] * items, counts], dtype=np.uint32), entries))
    return counted


def read_slowly(counted: Sequence[Counted]) -> list[Row]:
    found: list[Row] = []
    for box, counts, log in counted:
        before: Counter[tuple[int, int]] = Counter()
        groups, items = place_work_items(NDRANGE, box)
        for row, (group, item) in enumerate(zip(groups.tolist(), items.tolist(), strict=True)):
            used = min(int(counts[1, row]), log.shape[1])
            for site, address in log[row, :used].astype(np.int64).tolist():
                found.append((site, group, item, before[row, site], address))
                before[row, site] += 1
    return found


@given(logs())
def test_logs_are_read_as_entry_by_entry(counted: list[Counted]) -> None:
    """Whatever was written: sites, repetitions and offsets are those of a plain loop."""
    found = read_log(NDRANGE, counted)
    columns = [getattr(found, name) for name in COLUMNS]
    assert list(zip(*(one.tolist() for one in columns), strict=True)) == read_slowly(counted)
    assert (found.work_groups, found.work_items) == ((0, 2, 3), (4, 4, 4))
    assert {one.dtype for one in columns} == {np.dtype(np.int64)}
