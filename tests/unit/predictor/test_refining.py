"""Launches that were asked for are sampled again, and their next answer is better."""

import time

import pytest

from kernelcast.predictor import background
from kernelcast.predictor.answering.processes import MOST_MOMENTS, EstimateOutcome, EstimateTask
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.errors import KernelRunError
from kernelcast.training_data.store import Store
from support.fake_executor import DEVICE, PROBLEM, FakeExecutor
from support.running_service import wait_until


@pytest.fixture
def predictor(executor: FakeExecutor, store: Store, monkeypatch: pytest.MonkeyPatch) -> Predictor:
    """Give a predictor that refines without a pause."""
    monkeypatch.setattr(background, "_SHARE", 1.0)
    monkeypatch.setattr(background, "_APART_S", 0.001)
    options = PredictorOptions(executor=executor)
    return Predictor([DEVICE], store=store, registry="", refines=True, options=options)


def test_moments_follow_until_they_are_enough(predictor: Predictor, executor: FakeExecutor) -> None:
    """Samples at one moment after the other, and answers surer by all of them."""
    with predictor:
        first = predictor.estimate(PROBLEM, DEVICE.id)
        begun = len(first.list_pieces())
        found = wait_until(
            lambda: predictor.estimate(PROBLEM, DEVICE.id),
            lambda one: len(one.list_pieces()) == MOST_MOMENTS,
        )
    assert len(executor.tasks) == 1 + MOST_MOMENTS - begun
    assert {one.moment for one in found.list_pieces()} == {
        str(number) for number in range(1, MOST_MOMENTS + 1)
    }
    assert found.high / found.low < first.high / first.low
    assert found.sampling_seconds > first.sampling_seconds
    plans = [one.settings.plan for one in executor.tasks]
    assert len({one.seed for one in plans}) == len(plans)
    assert all(one.moments == 1 for one in plans[1:])


def test_what_fails_is_left_alone(
    predictor: Predictor, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeps the answer there is, tries no more, and ends when the predictor does."""
    sample = FakeExecutor._sample

    def fail_later(self: FakeExecutor, task: EstimateTask) -> EstimateOutcome:
        if len(self.tasks) > 1:
            raise KernelRunError("the driver crashed")
        return sample(self, task)

    monkeypatch.setattr(FakeExecutor, "_sample", fail_later)
    with predictor:
        first = predictor.estimate(PROBLEM, DEVICE.id)
        wait_until(lambda: executor.tasks[1:], bool)
        time.sleep(0.05)
        assert predictor.estimate(PROBLEM, DEVICE.id) is first
    assert len(executor.tasks) == 2
