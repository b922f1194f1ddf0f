import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.predictor.answering.memory import Memory
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import summarise_runs
from kernelcast.training_data.store import open_store
from support.observations import make_launch, make_observation

OUTLIER = frozenset({ObservationFlag.OUTLIER})
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def see(history: LaunchHistory, *times_s: float) -> list[frozenset[ObservationFlag]]:
    """Observe times; give the flags of each."""
    return [history.add(Seen(seconds=one)) for one in times_s]


def test_answers_the_median_with_an_interval() -> None:
    """The usual time is the median; its interval holds the next run as often as was asked for."""
    rng = random.Random(1)
    inside = 0
    for _ in range(300):
        history = LaunchHistory()
        see(history, *(math.exp(rng.gauss(0, 0.03)) for _ in range(8)))
        usual = history.answer(0.9)
        assert usual is not None
        inside += usual.low <= math.exp(rng.gauss(0, 0.03)) <= usual.high
    assert inside > 0.88 * 300


def test_first_launches_are_kept_apart() -> None:
    """Compilation in a first launch never becomes the usual time."""
    history = LaunchHistory()
    flags = history.add(Seen(seconds=9.0, is_first=True))
    assert flags == {ObservationFlag.FIRST_LAUNCH}
    assert len(history) == 0


def test_what_sticks_out_is_tagged_and_not_counted() -> None:
    """A disturbed run changes nothing, however far out it is."""
    history = LaunchHistory()
    assert not any(see(history, 1.0, 1.01, 0.99, 1.0, 1.02))
    before = history.answer(0.9)
    assert see(history, 3.0) == [OUTLIER]
    assert history.answer(0.9) == before
    assert see(history, 1.01) == [frozenset()]


def test_a_lasting_shift_replaces_what_was_before() -> None:
    """Three disturbed runs in a row are no accident: the newest times are the usual ones then."""
    history = LaunchHistory()
    see(history, *(1.0 + 0.01 * math.sin(number) for number in range(20)))
    assert see(history, 1.5, 1.5, 1.5) == [OUTLIER, OUTLIER, frozenset()]
    assert history.shifts == 1
    usual = history.answer(0.9)
    assert usual is not None
    assert usual.seconds == pytest.approx(1.5, rel=0.01)


def test_times_that_stick_out_to_all_sides_are_no_shift() -> None:
    """Only those that agree say that a launch takes another time, and none in between that fits."""
    history = LaunchHistory()
    see(history, *(1.0 + 0.01 * math.sin(number) for number in range(20)))
    see(history, 1.5, 2.5, 0.5, 1.5, 1.0, 1.5, 1.5)
    assert not history.shifts
    see(history, 1.45)
    assert history.shifts == 1


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=40))
def test_never_answers_nonsense(times_s: list[float]) -> None:
    """Whatever is observed, the answer is ordered, finite, and lies among the observations."""
    history = LaunchHistory()
    see(history, *times_s)
    usual = history.answer(0.9)
    assert usual is not None
    assert 0 < usual.low <= usual.seconds <= usual.high < math.inf
    assert min(times_s) <= usual.seconds <= max(times_s)


def observe(
    identity: LaunchIdentity, seconds: float, number: int, **changes: object
) -> Observation:
    """Make an observation of a launch."""
    made = replace(
        make_observation(0),
        launch=identity,
        runs=summarise_runs([seconds]),
        samples=(),
        origin=Origin.OBSERVED,
        measurement=str(number),
        measured_at=BEGIN + timedelta(minutes=number),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


def test_recalls_the_very_same_launch(tmp_path: Path) -> None:
    """Sound observations of the launch count; imported and disturbed ones, and others, do not."""
    identity = make_launch(1)
    other = replace(identity, device=replace(identity.device, driver="2.0"))
    with open_store(tmp_path / "rows.sqlite") as store:
        store.add_many([
            *(observe(identity, 0.2 + 0.001 * number, number) for number in range(5)),
            observe(identity, 0.4, 10, origin=Origin.COLLECTED),
            observe(identity, 9.0, 11, origin=Origin.IMPORTED, source="somebody"),
            observe(identity, 8.0, 12, flags=frozenset({ObservationFlag.CONTAMINATED})),
            observe(identity, 7.0, 13, flags=frozenset({ObservationFlag.FIRST_LAUNCH})),
            observe(other, 6.0, 14),
        ])  # fmt: skip
        history = Memory(store).recall(identity)
        assert len(Memory(store).recall(other)) == 1
    usual = history.answer(0.9)
    assert usual is not None
    assert usual.seconds == pytest.approx(0.202, rel=0.01)
    facts = history.describe()
    assert facts.observations == 5
    assert facts.first == BEGIN
