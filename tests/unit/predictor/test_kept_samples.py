"""Samples that another process has taken are evidence for this one."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import LaunchRow
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.arguments import BufferArgument, ElementType, Init
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate, Tier
from kernelcast.records.problem import Problem
from kernelcast.training_data.store import Store
from support.fake_executor import DEVICE, PROBLEM, FakeExecutor, answer, make_device, make_predictor

# Seconds of a work-group: a launch of 1 ms, one that models know, and one of an hour.
SHORT_S, USUAL_S, LONG_S = 1e-8, 5e-6, 3.6e-2
# Of what a moment has to gain: what sampling takes here depends on the machine that tests run on.
NEVER_PAYS = 1e9


@pytest.fixture(autouse=True)
def _data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))


@pytest.fixture
def executor() -> FakeExecutor:
    return FakeExecutor(work_group_s=SHORT_S, samples_here=True)


@pytest.fixture
def ask(executor: FakeExecutor, store: Store) -> Callable[..., Estimate]:
    """Ask as a new process does."""

    def ask(problem: Problem = PROBLEM, **settings: Any) -> Estimate:  # noqa: ANN401
        chosen = EstimateSettings(**{"least_gain": NEVER_PAYS, **settings})
        return make_predictor(executor, store, settings=chosen).estimate(problem, DEVICE.id)

    return ask


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    later_s = time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: later_s)


def count_moments(estimate: Estimate) -> int:
    return sum(one.kind == "samples" for one in estimate.list_pieces())


def test_the_next_process_has_the_samples(
    ask: Callable[..., Estimate], executor: FakeExecutor
) -> None:
    """Answers as the first did, runs nothing, costs nothing, and says when samples were taken."""
    first, second = ask(), ask()
    assert len(executor.tasks) == 1
    assert second.interval == first.interval
    assert second.list_pieces() == first.list_pieces()
    assert None not in {one.measured_at for one in second.list_pieces()}
    assert (first.cost.total_s > 0, second.cost.total_s) == (True, 0)


def test_long_launches_become_better_each_time(
    ask: Callable[..., Estimate], executor: FakeExecutor
) -> None:
    """A moment more pays for a launch of an hour; it is taken elsewhere, and stands beside."""
    executor.work_group_s = LONG_S
    first, second = ask(least_gain=0.1), ask(least_gain=0.1)
    assert count_moments(second) > count_moments(first)
    assert second.high / second.low < first.high / first.low
    assert second.cost.sampling_s > 0
    seeds = [one.settings.plan.seed for one in executor.tasks]
    assert len({*seeds}) == len(seeds)


@pytest.mark.parametrize("settings", [{"uses_history": False}, {"measure": True}])
def test_who_wants_nothing_old_gets_samples_of_now(
    ask: Callable[..., Estimate], executor: FakeExecutor, settings: dict[str, bool]
) -> None:
    """And the next process has the new ones."""
    ask()
    executor.work_group_s = 2 * SHORT_S
    second = ask(**settings)
    assert len(executor.tasks) == 2
    assert count_moments(second) == 1
    third = ask()
    assert len(executor.tasks) == 2
    assert third.seconds == pytest.approx(second.seconds)


def test_an_answer_that_is_to_be_made_anew_is(executor: FakeExecutor, store: Store) -> None:
    """Samples are taken, unless the policy spares them, or there are none of the driver."""
    predictor = make_predictor(executor, store)
    for _ in range(2):
        assert answer(predictor).recording is not None
    assert len(executor.tasks) == 2
    settings = EstimateSettings(least_gain=NEVER_PAYS)
    spared = answer(predictor, policy=Policy(settings=settings, spares_samples=True))
    assert len(executor.tasks) == 2
    assert spared.recording is None
    assert spared.refine is not None
    executor.driver = "2"
    options = PredictorOptions(executor=executor)
    with Predictor([make_device(driver="2")], store=store, options=options) as another:
        another.estimate(PROBLEM, DEVICE.id)
    assert len(executor.tasks) == 3


def test_samples_fade(
    ask: Callable[..., Estimate], executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute widens the interval; after more than an hour the launch is sampled again."""
    executor.work_group_s = USUAL_S
    first = ask()
    pass_time(monkeypatch, 60.0)
    second = ask()
    assert len(executor.tasks) == 1
    assert second.high / second.low > first.high / first.low
    pass_time(monkeypatch, 4000.0)
    third = ask()
    assert len(executor.tasks) == 2
    assert third.high / third.low < second.high / second.low


def test_another_file_of_data_is_sampled(
    ask: Callable[..., Estimate],
    executor: FakeExecutor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Contents belong to the launch: the same file answers, a changed one does not; each answer
    reads it once."""
    read: list[str] = []
    digest = hashlib.file_digest
    monkeypatch.setattr(
        "hashlib.file_digest", lambda file, name: read.append(name) or digest(file, name)
    )
    path = tmp_path / "data.npy"
    argument = BufferArgument(element=ElementType("float32"), count=64, init=Init.FILE, path=path)
    problem = replace(PROBLEM, arguments=(argument,))
    np.save(path, np.zeros(64, dtype=np.float32))
    ask(problem)
    ask(problem)
    assert (len(executor.tasks), len(read)) == (1, 2)
    np.save(path, np.ones(64, dtype=np.float32))
    ask(problem)
    assert len(executor.tasks) == 2
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        ask(problem)


@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_damaged_files_cost_no_answer(
    ask: Callable[..., Estimate], executor: FakeExecutor, tmp_path: Path, text: str
) -> None:
    """The launch is sampled, and kept again."""
    ask()
    [path] = tmp_path.rglob("data/samples/*/*.json")
    path.write_text(text)
    for _ in range(2):
        ask()
        assert len(executor.tasks) == 2


def test_refined_answers_are_kept(executor: FakeExecutor, store: Store) -> None:
    """The next process begins where refinement has ended."""
    policy = Policy(spares_samples=True)
    refine = answer(make_predictor(executor, store), policy=policy).refine
    assert refine is not None
    refined = refine()
    found = make_predictor(executor, store).estimate(PROBLEM, DEVICE.id)
    assert len(executor.tasks) == 2
    assert found.interval == refined.estimate.interval


def test_samples_without_features_do_not_answer_where_a_model_waits_for_them(
    executor: FakeExecutor, store: Store, registry: VersionedFiles, known_row: LaunchRow
) -> None:
    """A model that was trained meanwhile corrects the next answer."""
    executor.work_group_s = known_row.columns["linear_s"] / 100_000
    first = make_predictor(executor, store).estimate(PROBLEM, DEVICE.id)
    executor.row = known_row
    second = make_predictor(executor, store, registry.url).estimate(PROBLEM, DEVICE.id)
    assert (first.tier, second.tier) == (Tier.LINEAR, Tier.HYBRID)
    assert len(executor.tasks) == 2
