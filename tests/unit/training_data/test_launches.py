"""Launches of a store: marked by every change, summed up by the database."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import RunTimes
from kernelcast.training_data.store import Selection, Store, open_store
from kernelcast.training_data.store.launches import (
    SUMMED,
    find_newest_samples,
    read_newest_times,
    sum_up_launches,
)
from support.observations import make_observation

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = Selection(
    origins=(Origin.COLLECTED, Origin.OBSERVED),
    without_flags=frozenset({ObservationFlag.CONTAMINATED}),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give an empty store."""
    with open_store(tmp_path / "rows.sqlite") as found:
        yield found


def observe(number: int, count: int, *, seconds: float = 0.1) -> list[Observation]:
    """Observe the launch of a number several times, a second apart; a bit longer each time."""
    first = replace(make_observation(number), samples=(), features=None, origin=Origin.OBSERVED)
    return [
        replace(
            first,
            measurement=str(place),
            runs=RunTimes(median_s=seconds * (1 + 0.001 * place)),
            measured_at=BEGIN + timedelta(seconds=place),
        )
        for place in range(count)
    ]


@settings(max_examples=20)
@given(
    times=st.lists(
        st.tuples(st.floats(1e-6, 1e3), st.none() | st.integers(0, 10**9), st.booleans()),
        min_size=1,
        max_size=60,
        unique_by=(lambda one: one[0], lambda one: object() if one[1] is None else one[1]),
    )
)
def test_the_sum_is_of_the_newest_that_count(
    tmp_path_factory: pytest.TempPathFactory, times: list[tuple[float, int | None, bool]]
) -> None:
    """Their number, median and newest time; rows without a time are the oldest and all count."""
    first = observe(1, 1)[0]
    rows = [
        replace(
            first,
            measurement=str(place),
            runs=RunTimes(median_s=seconds),
            measured_at=None if moment is None else BEGIN + timedelta(seconds=moment),
            flags=frozenset({ObservationFlag.CONTAMINATED} if is_busy else ()),
        )
        for place, (seconds, moment, is_busy) in enumerate(times)
    ]
    sound = [one for one in times if not one[2]]
    dated = sorted((one for one in sound if one[1] is not None), key=lambda one: -(one[1] or 0))
    newest = dated[:SUMMED] if len(dated) >= SUMMED else sound
    with open_store(tmp_path_factory.mktemp("rows") / "rows.sqlite") as store:
        store.add_many(rows)
        found = sum_up_launches(store, [first.launch.key], WANTED)
        read = read_newest_times(store, [first.launch.key], WANTED, most=SUMMED)
    if not sound:
        assert not found
        return
    (one,) = found
    assert one.observations == len(newest)
    assert one.seconds == pytest.approx(float(np.median([seconds for seconds, *_ in newest])))
    assert one.low_s <= one.seconds <= one.high_s
    assert sorted(row.seconds for row in read) == sorted(seconds for seconds, *_ in newest)
    moments = [row.measured_at_us or 0 for row in read]
    assert moments == sorted(moments)


def test_the_samples_of_a_launch_that_was_observed_often_since(store: Store) -> None:
    """Are those of its newest sampled observation, however often it was observed since."""
    sampled = make_observation(1)
    store.add_many([sampled, *observe(1, 100)])
    (one,) = find_newest_samples(store, [sampled.launch.key], WANTED)
    assert (one.key, one.launch_key) == (sampled.key, sampled.launch.key)
    assert one.linear_s == sampled.samples[0].linear_s


def _count_steps(store: Store, key: str) -> int:
    """Count thousands of steps of SQLite's machine that it takes to sum a launch up."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with store._read() as connection:
        raw = connection.connection.dbapi_connection
        assert raw is not None
        raw.set_progress_handler(count, 1000)  # the pool gives the same connection again
    sum_up_launches(store, [key], WANTED)
    read_newest_times(store, [key], WANTED, most=12)
    find_newest_samples(store, [key], WANTED)
    raw.set_progress_handler(None, 0)
    return steps


def test_a_flood_of_observations_is_not_read(store: Store) -> None:
    """To sum up a launch takes as long with 5,000 observations as with 50."""
    rows = observe(1, 5000)
    key = rows[0].launch.key
    store.add_many(rows[:50])
    before = _count_steps(store, key)
    store.add_many(rows[50:])
    assert 0 < _count_steps(store, key) <= 2 * before
