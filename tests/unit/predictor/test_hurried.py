"""Callers who wait so long and no longer get the best that is known by then."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import EstimateOutcome, EstimateTask, ReportProgress
from kernelcast.predictor.predictor import Predictor
from kernelcast.records.errors import InputError, KernelRunError, NoAnswerYetError
from kernelcast.records.estimates import Estimate, Tier
from kernelcast.training_data.store import Store
from support.fake_executor import (
    DEVICE,
    PROBLEM,
    FakeExecutor,
    answer,
    make_analytic,
    make_predictor,
    make_problem,
)

_PATIENT_S = 20.0
_HASTY_S = 0.2


@dataclass(slots=True)
class SlowExecutor(FakeExecutor):
    gate: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        self.begun.set()
        try:
            report("building the kernel")
            assert self.gate.wait(_PATIENT_S)
            return FakeExecutor.sample(self, task, timeout_s=timeout_s, report=report)
        finally:
            self.ended.set()


@pytest.fixture
def slow() -> Iterator[SlowExecutor]:
    found = SlowExecutor(analytic=make_analytic(10.0))
    yield found
    found.gate.set()


@pytest.fixture
def predictor(slow: SlowExecutor, store: Store) -> Iterator[Predictor]:
    with make_predictor(slow, store) as found:
        yield found
        slow.gate.set()


def test_what_is_known_answers_when_time_is_over(slow: SlowExecutor, predictor: Predictor) -> None:
    """The analytic model does, and the answer says at which stage; the next question samples."""
    found = predictor.estimate(PROBLEM, DEVICE.id, within_s=_HASTY_S)
    assert found.tier is Tier.ANALYTIC
    (told,) = [one for one in found.warnings if "not sampled" in one]
    assert told.endswith("0.2 s were over at the stage: building the kernel")
    assert "building the kernel" in found.explain().missing["linear"]
    slow.gate.set()
    assert slow.ended.wait(_PATIENT_S)
    assert slow.tasks == []  # it has ended at its next step
    sampled = predictor.estimate(PROBLEM, DEVICE.id, within_s=_PATIENT_S)
    assert sampled.tier is Tier.LINEAR
    assert not any("not sampled" in one for one in sampled.warnings)
    assert predictor.estimate(PROBLEM, DEVICE.id).interval == sampled.interval


def test_nothing_known_is_no_answer(slow: SlowExecutor, predictor: Predictor) -> None:
    """The error says so; wrong numbers and failures are told as ever, and not remembered."""
    slow.analytic = None
    with pytest.raises(NoAnswerYetError, match=r"stage: building the kernel, and nothing else"):
        predictor.estimate(PROBLEM, DEVICE.id, within_s=_HASTY_S)
    with pytest.raises(InputError, match="within"):
        predictor.estimate(PROBLEM, DEVICE.id, within_s=-1.0)
    slow.gate.set()
    slow.error = KernelRunError("it crashed")
    with pytest.raises(KernelRunError, match="it crashed"):
        predictor.estimate(PROBLEM, DEVICE.id, within_s=_PATIENT_S)
    slow.error = None
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.LINEAR


def test_no_one_waits_for_another_estimate(slow: SlowExecutor, predictor: Predictor) -> None:
    """Neither of the same launch nor of another one on the device; the answer says what it was."""
    other = threading.Thread(target=predictor.estimate, args=(PROBLEM, DEVICE.id))
    other.start()
    assert slow.begun.wait(_PATIENT_S)
    for problem in (PROBLEM, make_problem(1)):
        found = predictor.estimate(problem, DEVICE.id, within_s=_HASTY_S)
        assert found.tier is Tier.ANALYTIC
        assert "waiting for another estimate on the device" in found.warnings[0]
    slow.gate.set()
    other.join(_PATIENT_S)
    assert len(slow.tasks) == 1


def test_a_launch_that_is_shorter_than_its_samples_is_not_sampled(
    slow: SlowExecutor, predictor: Predictor
) -> None:
    """The answer says that a run of it tells more; who wants samples nevertheless gets them."""
    slow.gate.set()
    slow.analytic = make_analytic(1e-4)
    found = predictor.estimate(PROBLEM, DEVICE.id, within_s=_PATIENT_S)
    assert (found.tier, slow.tasks) == (Tier.ANALYTIC, [])
    assert "run it, and tell `observe` what it took" in found.warnings[0]
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.LINEAR
    policy = Policy(settings=EstimateSettings(least_gain=0.0, within_s=_PATIENT_S))
    found = predictor.estimate(make_problem(1), DEVICE.id, policy=policy)
    assert found.list_pieces()[0].kind == "samples"


def test_time_is_that_of_all_entries(slow: SlowExecutor, predictor: Predictor) -> None:
    """Each has an answer or says why not."""
    slow.gate.set()
    known = predictor.estimate(PROBLEM, DEVICE.id)
    slow.gate.clear()
    began_s = time.monotonic()
    problems = [PROBLEM, make_problem(1), make_problem(2)]
    entries = predictor.estimate_many(problems, within_s=_HASTY_S)
    assert time.monotonic() - began_s < _PATIENT_S / 2
    assert [one.problem for one in entries] == ["triad0", "triad1", "triad2"]
    told = [one.estimate for one in entries]
    assert getattr(told[0], "interval", None) == known.interval
    assert [one and one.tier for one in told[1:]] == [Tier.ANALYTIC] * 2
    slow.analytic = None
    (refused,) = predictor.estimate_many([make_problem(3)], within_s=_HASTY_S)
    assert isinstance(refused.error, NoAnswerYetError)
    assert (refused.problem, refused.device_id) == ("triad3", DEVICE.id)
    with pytest.raises(InputError, match="give a sequence of Problem"):
        predictor.estimate_many(PROBLEM, within_s=_HASTY_S)  # type: ignore[arg-type]  # refused


def test_an_answer_without_samples_can_be_made_better(
    slow: SlowExecutor, predictor: Predictor
) -> None:
    """By who keeps answers, when there is time."""
    policy = Policy(settings=EstimateSettings(within_s=_HASTY_S))
    first = answer(predictor, policy=policy)
    assert (first.estimate.tier, first.recording) == (Tier.ANALYTIC, None)
    assert first.refine is not None
    slow.gate.set()
    better = first.refine()
    assert better.estimate.tier is Tier.LINEAR
    assert better.recording is not None


def test_an_interrupt_loses_nothing(slow: SlowExecutor, predictor: Predictor, store: Store) -> None:
    """The caller is interrupted at once, sampling ends at its next step, observations are kept."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # drivers may have put theirs there
    slow.gate.set()
    first: Estimate = predictor.estimate(make_problem(1), DEVICE.id)
    predictor.observe(first, 0.4, is_first=False)
    slow.gate.clear()
    slow.begun.clear()

    def interrupt() -> None:
        assert slow.begun.wait(_PATIENT_S)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        predictor.estimate(PROBLEM, DEVICE.id, within_s=_PATIENT_S, in_background=True)
    slow.gate.set()
    predictor.close()
    assert len(slow.tasks) == 1
    assert [one.seconds for one in store.find()] == [0.4]
