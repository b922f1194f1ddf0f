"""The usual time of what was observed, and what of it is kept but not believed until it repeats."""

import math
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.predictor.answering.launch_history import (
    LEAST,
    Claim,
    LaunchHistory,
    Seen,
    bound_launch,
    bound_traffic,
    check_history,
    claim,
)
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.processes import ModelOutcome
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.machine import CacheFacts, MachineDescription, MemoryFacts
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, ObservationFlag, Origin, summarise_runs
from kernelcast.records.problem import LaunchIdentity
from kernelcast.training_data.store import Selection, open_store
from kernelcast.training_data.store.schema import SOUND
from support.fake_executor import make_device, make_problem
from support.observations import make_launch, make_observation

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
SAMPLED = (claim(1.0),)
SOUND_FLAGS = frozenset[ObservationFlag]()
DOUBTED, OUTLIER = (frozenset({one}) for one in (ObservationFlag.DOUBTED, ObservationFlag.OUTLIER))


def see(
    history: LaunchHistory, *times_s: float, after_s: float = 0, apart_s: float = 60
) -> list[frozenset[ObservationFlag]]:
    """Observe times, some seconds apart; give the flags of each."""
    moments = (timedelta(seconds=after_s + n * apart_s) for n in range(len(times_s)))
    return [
        history.add(Seen(seconds=seconds, when=BEGIN + moment))
        for seconds, moment in zip(times_s, moments, strict=True)
    ]


def middle(history: LaunchHistory) -> float:
    usual = history.answer(0.9)
    assert usual is not None
    return usual.seconds


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


def test_what_sticks_out_is_tagged_and_not_counted() -> None:
    """Neither a first launch, which may compile, nor a disturbed run changes anything."""
    history = LaunchHistory()
    first = history.add(Seen(seconds=9.0, is_first=True))
    assert (first, len(history)) == ({ObservationFlag.FIRST_LAUNCH}, 0)
    assert not any(see(history, 1.0, 1.01, 0.99, 1.0, 1.02))
    before = history.answer(0.9)
    assert see(history, 3.0) == [OUTLIER]
    assert history.answer(0.9) == before
    assert see(history, 1.01) == [SOUND_FLAGS]


@pytest.mark.parametrize(
    ("times_s", "shifts", "usual_s"),
    [
        ((1.5, 1.5), 0, 1.0),
        ((1.5, 1.5, 1.5), 1, 1.5),
        ((1.5, 2.5, 0.5, 1.5, 1.0, 1.5, 1.5), 0, 1.0),
        ((1.5, 2.5, 0.5, 1.5, 1.0, 1.5, 1.5, 1.45), 1, 1.5),
    ],
)
def test_a_lasting_shift_replaces_what_was_before(
    times_s: Sequence[float], shifts: int, usual_s: float
) -> None:
    """Three runs that agree, and none between them that fits, say that it takes another time."""
    history = LaunchHistory()
    see(history, *(1.0 + 0.01 * math.sin(number) for number in range(20)), *times_s)
    assert history.shifts == shifts
    assert middle(history) == pytest.approx(usual_s, rel=0.02)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=40))
def test_never_answers_nonsense(times_s: list[float]) -> None:
    """Whatever is observed, the answer is ordered, finite, and lies among the observations."""
    history = LaunchHistory()
    see(history, *times_s)
    usual = history.answer(0.9)
    assert usual is not None
    assert 0 < usual.low <= usual.seconds <= usual.high < math.inf
    assert min(times_s) <= usual.seconds <= max(times_s)


@given(
    others=st.lists(st.floats(0.97, 1.03), min_size=3, max_size=12),
    exponent=st.floats(-6, 6),
    place=st.floats(0, 1),
)
def test_a_poisoned_observation_moves_an_answer_by_less_than_its_interval(
    others: list[float], exponent: float, place: float
) -> None:
    """Wherever it comes among others of which none sticks out, and however wrong it is."""
    clean, poisoned = LaunchHistory(), LaunchHistory()
    see(clean, *others)
    where = round(place * len(others))
    see(poisoned, *others[:where], 10**exponent, *others[where:])
    found = poisoned.answer(0.9)
    assert found is not None
    moved = abs(math.log(found.seconds / middle(clean)))
    assert moved < math.log(found.high / found.seconds)


@pytest.mark.parametrize("wrong_s", [1e-9, 1e-3, 0.2, 5.0, 1e6])
def test_one_that_contradicts_samples_answers_nothing(wrong_s: float) -> None:
    """It is told with its reason, and is one observation however often it is told."""
    history = LaunchHistory(known=SAMPLED)
    for number in range(5):
        when = BEGIN + timedelta(minutes=number)
        assert history.add(Seen(seconds=wrong_s, when=when, key="k" * 64)) == DOUBTED
    assert history.answer(0.9) is None
    (aside,) = history.describe().set_aside
    assert (aside.seconds, aside.key, aside.when) == (wrong_s, "k" * 64, BEGIN)
    assert aside.reason == history.find_doubt("k" * 64)
    assert "1 s" in aside.reason or "impossible" in aside.reason


@pytest.mark.parametrize(
    ("wrong_s", "known"),
    [
        (1e-9, ()),
        (1e-3, (*SAMPLED, bound_traffic(1e12, make_device(), None))),
        (1e-3, (claim(1.0, by_clock=True),)),
    ],
)
def test_what_is_impossible_is_never_believed(wrong_s: float, known: tuple[Claim, ...]) -> None:
    """However often it repeats; neither is what is far below samples where events are wrong."""
    history = LaunchHistory(known=known)
    see(history, *[wrong_s] * 10)
    assert history.answer(0.9) is None
    assert len(history.describe().set_aside) == 10
    see(history, 1.0, *[wrong_s] * 10, after_s=1000)
    assert middle(history) == 1.0
    history.hold_against(())
    history.hold_against(known)
    assert middle(history) == 1.0


def test_a_batch_does_not_confirm_itself() -> None:
    """A hundred of the same wrong value within a second are one; three moments make a belief."""
    history = LaunchHistory(known=SAMPLED)
    see(history, *[1e-3] * 100, apart_s=0.009)
    see(history, 1e-3, after_s=60)
    assert history.answer(0.9) is None
    see(history, 1.05e-3, after_s=120)
    assert middle(history) == pytest.approx(1e-3, rel=0.05)
    assert history.describe().contradiction == "samples of the launch say 1 s"
    assert history.describe().set_aside == ()


def test_the_first_may_be_the_wrong_one() -> None:
    """Where only observations are known, those of more moments count; the other is told."""
    history = LaunchHistory()
    see(history, 1e-5, 1.0)
    assert middle(history) == 1e-5
    see(history, 1.01, after_s=120)
    assert middle(history) == pytest.approx(1.0, rel=0.01)
    assert [one.seconds for one in history.describe().set_aside] == [1e-5]


def test_nothing_is_faster_than_physics() -> None:
    """A launch that does nothing, work-items and bytes need their time; peaks where known."""
    device = make_device()
    assert bound_launch(device, NDRange(global_size=(64,), local_size=(64,))) == LEAST
    many = NDRange(global_size=(1 << 30,), local_size=(64,))
    assert bound_launch(device, many).low_s > 1e-5
    units = max(device.compute_units, os.cpu_count() or 1)
    rate, size, shared = (
        Trait(value=one, source=TraitSource.MEASURED) for one in (20e9, 10_000_000, units)
    )
    machine = MachineDescription(
        id="x", name="x", kind=DeviceKind.CPU,
        memories=(MemoryFacts(space="global", load_bytes_per_s={4: rate}),),
        caches=(CacheFacts(name="L3", size_bytes=size, shared_by=shared),),
    )  # fmt: skip
    loose_s = bound_traffic(50e6, device, None).low_s
    assert loose_s == pytest.approx(50e6 / (1e12 * units))
    assert bound_traffic(50e6, device, machine).low_s == pytest.approx(1e-3)
    assert bound_traffic(9e6, device, machine).low_s < loose_s


def test_the_source_is_read_only_where_an_observation_is_suspect() -> None:
    """A plausible time asks nobody; a time too short for the buffers asks what is touched."""
    problem, executor = make_problem(), Mock()
    executor.model.return_value = ModelOutcome(
        analytic=None, ndrange=problem.ndrange, touched_bytes=2.5e7
    )
    # The second is more than work-items need.
    for seconds, tasks in ((1e-3, 0), (2e-6, 1)):
        history = LaunchHistory()
        see(history, seconds)
        check_history(history, problem, make_device(), executor)
        assert (executor.model.call_count, len(history)) == (tasks, 1 - tasks)
    assert executor.model.call_args.args[0].wants_bytes
    assert "25 MB" in history.describe().set_aside[0].reason


def observe(
    identity: LaunchIdentity, seconds: float, number: int, **changes: object
) -> Observation:
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
    """Sound ones count, whatever the kernel is called; imported, disturbed and others do not."""
    identity = make_launch(1)
    other = replace(identity, device=replace(identity.device, driver="2.0"))
    renamed = replace(identity, kernel=replace(identity.kernel, name="collected"))
    with open_store(tmp_path / "rows.sqlite") as store:
        store.add_many([
            *(observe(identity, 0.2 + 0.001 * number, number) for number in range(5)),
            observe(renamed, 0.206, 10, origin=Origin.COLLECTED),
            observe(identity, 9.0, 11, origin=Origin.IMPORTED, source="somebody"),
            observe(identity, 8.0, 12, flags=frozenset({ObservationFlag.CONTAMINATED})),
            observe(identity, 7.0, 13, flags=frozenset({ObservationFlag.FIRST_LAUNCH})),
            observe(other, 6.0, 14),
        ])  # fmt: skip
        history = Memory(store).recall(identity)
        assert len(Memory(store).recall(other)) == 1
    assert middle(history) == pytest.approx(0.202, rel=0.01)
    assert (history.describe().observations, history.describe().first) == (6, BEGIN)


def test_the_store_tells_who_was_doubted_and_what_was_sampled(tmp_path: Path) -> None:
    """A process that knows no samples does not believe what contradicted them elsewhere."""
    identity = make_launch(1)
    with open_store(tmp_path / "rows.sqlite") as store:
        store.add(observe(identity, 1e-3, 0, flags=DOUBTED))
        assert Memory(store).recall(identity).answer(0.9) is None
        assert store.count(SOUND) == 0  # nothing learns from it
        store.add(observe(identity, 1e-3, 1, samples=make_observation(0).samples))
        assert Memory(store).recall(identity).answer(0.9) is None  # 0.1 s by its own samples
        store.add_many([observe(identity, 0.1, 2), observe(identity, 0.11, 3)])
        assert middle(Memory(store).recall(identity)) == pytest.approx(0.105, rel=0.01)
        assert store.count(Selection(with_flags=DOUBTED)) == 1
