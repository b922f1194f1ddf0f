"""Observations that contradict what is known are kept, and not believed until they repeat."""

import math
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.predictor.answering.launch_history import (
    LEAST,
    LaunchHistory,
    Seen,
    bound_launch,
    bound_traffic,
    check_history,
    claim,
)
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.processes import ReportProgress
from kernelcast.predictor.answering.tasks import ModelOutcome, ModelTask
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.machine import CacheFacts, MachineDescription, MemoryFacts
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import summarise_runs
from kernelcast.training_data.store import Selection, open_store
from kernelcast.training_data.store.schema import SOUND
from support.fake_executor import FakeExecutor, make_device, make_problem
from support.observations import make_launch, make_observation

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
SAMPLED = (claim(1.0),)
DOUBTED = frozenset({ObservationFlag.DOUBTED})


def see(history: LaunchHistory, *times_s: float, after_s: float = 0, apart_s: float = 60) -> None:
    """Observe times, some seconds apart."""
    for number, seconds in enumerate(times_s):
        when = BEGIN + timedelta(seconds=after_s + number * apart_s)
        history.add(Seen(seconds=seconds, when=when))


def middle(history: LaunchHistory) -> float:
    """Give the usual time."""
    usual = history.answer(0.9)
    assert usual is not None
    return usual.seconds


@given(
    others=st.lists(st.floats(0.95, 1.05), min_size=3, max_size=12),
    exponent=st.floats(-6, 6),
    place=st.floats(0, 1),
)
def test_a_poisoned_observation_moves_an_answer_by_less_than_its_interval(
    others: list[float], exponent: float, place: float
) -> None:
    """Wherever it comes among others, and however wrong it is."""
    clean, poisoned = LaunchHistory(), LaunchHistory()
    see(clean, *others)
    where = round(place * len(others))
    see(poisoned, *others[:where], 10**exponent, *others[where:])
    usual, found = clean.answer(0.9), poisoned.answer(0.9)
    assert usual is not None
    assert found is not None
    moved = abs(math.log(found.seconds / usual.seconds))
    assert moved < math.log(found.high / found.seconds)


@pytest.mark.parametrize("wrong_s", [1e-9, 1e-3, 0.2, 5.0, 1e6])
def test_one_that_contradicts_samples_answers_nothing(wrong_s: float) -> None:
    """Alone it is no history; it is told with its reason."""
    history = LaunchHistory(known=SAMPLED)
    assert history.add(Seen(seconds=wrong_s, when=BEGIN, key="k" * 64)) == DOUBTED
    assert history.answer(0.9) is None
    (aside,) = history.describe().set_aside
    assert (aside.seconds, aside.key, aside.when) == (wrong_s, "k" * 64, BEGIN)
    assert aside.reason == history.find_doubt("k" * 64)
    assert "1 s" in aside.reason or "impossible" in aside.reason


def test_samples_that_come_later_unseat_a_lone_observation() -> None:
    """It is judged anew by what is known now, and believed again when that goes."""
    history = LaunchHistory()
    see(history, 1e-3)
    assert middle(history) == 1e-3
    history.hold_against(SAMPLED)
    assert history.answer(0.9) is None
    history.hold_against([claim(2e-3)])
    assert middle(history) == 1e-3


def test_what_is_impossible_is_never_believed() -> None:
    """However often it repeats; neither is what is far below samples where events are wrong."""
    for wrong_s, known in (
        (1e-9, ()),
        (1e-3, (*SAMPLED, bound_traffic(1e12, make_device(), None))),
        (1e-3, (claim(1.0, by_clock=True),)),
    ):
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
    assert history.answer(0.9) is None
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


def test_a_repeated_key_is_no_repeat() -> None:
    """What is told twice is one observation, and as doubtful the second time."""
    history = LaunchHistory(known=SAMPLED)
    for number in range(5):
        when = BEGIN + timedelta(minutes=number)
        assert history.add(Seen(seconds=1e-3, when=when, key="same")) == DOUBTED
    assert history.answer(0.9) is None


def test_nothing_is_faster_than_physics() -> None:
    """A launch that does nothing, work-items and bytes need their time; peaks where known."""
    device = make_device()
    assert bound_launch(device, NDRange(global_size=(64,), local_size=(64,))) == LEAST
    many = NDRange(global_size=(1 << 30,), local_size=(64,))
    assert bound_launch(device, many).low_s > 1e-5
    loose = bound_traffic(50e6, device, None).low_s
    memory = MemoryFacts(
        space="global", load_bytes_per_s={4: Trait(value=20e9, source=TraitSource.MEASURED)}
    )
    cache = CacheFacts(name="L3", size_bytes=Trait(value=10_000_000, source=TraitSource.MEASURED))
    units = max(device.compute_units, os.cpu_count() or 1)
    machine = MachineDescription(
        id="x", name="x", kind=DeviceKind.CPU, memories=(memory,),
        caches=(replace(cache, shared_by=Trait(value=units, source=TraitSource.MEASURED)),),
    )  # fmt: skip
    assert loose == pytest.approx(50e6 / (1e12 * units))
    assert bound_traffic(50e6, device, machine).low_s == pytest.approx(1e-3)
    assert bound_traffic(9e6, device, machine).low_s < loose


def test_the_source_is_read_only_where_an_observation_is_suspect() -> None:
    """A plausible time asks nobody; a time too short for the buffers asks what is touched."""
    asked: list[ModelTask] = []

    class Executor(FakeExecutor):
        def model(
            self, task: ModelTask, *, timeout_s: float, report: ReportProgress
        ) -> ModelOutcome:
            asked.append(task)
            found = super().model(task, timeout_s=timeout_s, report=report)
            return replace(found, touched_bytes=2.5e7)

    problem, device = make_problem(), make_device()
    history = LaunchHistory()
    see(history, 1e-3)
    check_history(history, problem, device, Executor())
    assert not asked
    assert len(history) == 1
    history = LaunchHistory()
    see(history, 2e-6)  # more than work-items need
    check_history(history, problem, device, Executor())
    assert len(asked) == 1
    assert asked[0].wants_bytes
    assert len(history) == 0
    assert "25 MB" in history.describe().set_aside[0].reason


def test_the_store_tells_who_was_doubted_and_what_was_sampled(tmp_path: Path) -> None:
    """A process that knows no samples does not believe what contradicted them elsewhere."""
    identity = make_launch(1)

    def observe(
        seconds: float, number: int, flags: frozenset[ObservationFlag] = frozenset()
    ) -> Observation:
        return replace(
            make_observation(0), launch=identity, runs=summarise_runs([seconds]), samples=(),
            origin=Origin.OBSERVED, measurement=str(number), flags=flags,
            measured_at=BEGIN + timedelta(minutes=number),
        )  # fmt: skip

    with open_store(tmp_path / "rows.sqlite") as store:
        store.add(observe(1e-3, 0, DOUBTED))
        assert Memory(store).recall(identity).answer(0.9) is None
        assert store.count(SOUND) == 0  # nothing learns from it
        store.add(replace(observe(1e-3, 1), samples=make_observation(0).samples))
        assert Memory(store).recall(identity).answer(0.9) is None  # 0.1 s by its own samples
        store.add_many([observe(0.1, 2), observe(0.11, 3)])
        assert middle(Memory(store).recall(identity)) == pytest.approx(0.105, rel=0.01)
        assert store.count(Selection(with_flags=DOUBTED)) == 1
