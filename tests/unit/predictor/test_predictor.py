from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Tier
from kernelcast.records.observation import ObservationFlag
from kernelcast.training_data.store import Store
from support.fake_executor import (
    DEVICE,
    PROBLEM,
    FakeExecutor,
    make_predictor,
    make_problem,
    observe,
)


def test_samples_once_and_answers_from_memory(executor: FakeExecutor, store: Store) -> None:
    """The second answer is the first one's very object, also to an equal problem."""
    predictor = make_predictor(executor, store)
    first = predictor.estimate(PROBLEM, DEVICE.id)
    assert first.tier is Tier.LINEAR
    assert first.seconds == pytest.approx(0.5, rel=0.01)
    assert predictor.estimate(PROBLEM, DEVICE) is first
    assert predictor.estimate(make_problem(), "fake") is first
    assert len(executor.tasks) == 1
    explained = first.explain()
    assert "no correction" in explained.missing["hybrid"]
    assert "not observed" in explained.missing["history"]
    assert explained.linear is not None
    assert explained.methods_s["linear"] == pytest.approx(first.seconds, rel=1e-4)
    assert first.warnings == ()


def test_another_launch_is_sampled(executor: FakeExecutor, store: Store) -> None:
    """Neither answers nor observations of one launch serve one that differs in anything."""
    predictor = make_predictor(executor, store)
    observe(predictor, predictor.estimate(PROBLEM, DEVICE.id), 0.7, 0.7)
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.HISTORY
    others = [
        make_problem(1),
        make_problem(options=("-DN=1",)),
        make_problem(local_size=(32,)),
        make_problem(work_groups=50_000),
    ]
    for count, other in enumerate(others, 2):
        assert predictor.estimate(other, DEVICE.id).tier is Tier.LINEAR
        assert len(executor.tasks) == count


def test_a_driver_that_changed_meanwhile_is_noticed(executor: FakeExecutor, store: Store) -> None:
    """When the device that sampled has another driver, what the old one did is forgotten."""
    predictor = make_predictor(executor, store)
    observe(predictor, predictor.estimate(PROBLEM, DEVICE.id), 0.7, 0.7)
    executor.driver = "2"
    found = predictor.estimate(make_problem(1), DEVICE.id)
    assert found.identity is not None
    assert found.identity.device.driver == "2"
    assert predictor.devices()[0].driver == "2"
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.LINEAR


def test_the_devices_choice_of_local_size_is_the_same_launch(
    executor: FakeExecutor, store: Store
) -> None:
    """A launch whose local size the device chose is that with the size given."""
    predictor = make_predictor(executor, store)
    chosen = predictor.estimate(make_problem(local_size=None), DEVICE.id)
    assert chosen.ndrange.local_size == (64,)
    assert predictor.estimate(PROBLEM, DEVICE.id) is chosen
    assert len(executor.tasks) == 1


def test_history_may_be_refused(executor: FakeExecutor, store: Store) -> None:
    """Without history, and where whole runs are measured, repeats are sampled."""
    first = make_predictor(executor, store)
    observe(first, first.estimate(PROBLEM, DEVICE.id), 0.7, 0.7)
    first.flush()
    choices = EstimateSettings(uses_history=False), EstimateSettings(measure=True, measured_runs=1)
    unwanted, measured = (
        make_predictor(executor, store, settings=one).estimate(PROBLEM, DEVICE.id)
        for one in choices
    )
    assert unwanted.tier is measured.tier is Tier.LINEAR
    assert "not asked" in unwanted.explain().missing["history"]
    assert measured.estimates_s["history"] == 0.7


def test_observing_what_was_never_asked_for(executor: FakeExecutor, store: Store) -> None:
    """Observations of an identity serve a later estimate; the first of a kernel is kept apart, for
    it may hold compilation."""
    identity = make_predictor(executor, store).estimate(PROBLEM, DEVICE.id).identity
    assert identity is not None
    predictor = make_predictor(executor, store)
    assert predictor.observe(identity, 9.0) == {ObservationFlag.FIRST_LAUNCH}
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.LINEAR
    assert predictor.observe(identity, 0.6) == frozenset()
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert (found.tier, found.seconds) == (Tier.HISTORY, pytest.approx(0.6, rel=0.05))
    with pytest.raises(InputError, match="positive"):
        predictor.observe(identity, float("nan"))
    with pytest.raises(InputError, match="no identity"):
        predictor.observe(replace(found, identity=None), 1.0)


def test_threads_lose_no_observation(executor: FakeExecutor, store: Store) -> None:
    """Eight threads that ask and tell at once get right answers, and all they tell is stored."""
    predictor = make_predictor(executor, store)
    problems = [make_problem(number) for number in range(4)]

    def work(thread: int) -> None:
        for turn in range(400):
            problem = problems[(turn + thread) % len(problems)]
            found = predictor.estimate(problem, DEVICE.id)
            assert found.identity is not None
            assert found.identity.kernel.digest == problem.kernel.digest
            predictor.observe(found, 0.5 + 0.0001 * (turn % 10))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    predictor.close()
    assert store.count() == 3200
    assert len(executor.tasks) == len(problems)
    assert predictor.estimate(problems[0], DEVICE.id).seconds == pytest.approx(0.5, rel=0.01)


def test_a_wrong_observation_is_kept_and_not_believed(executor: FakeExecutor, store: Store) -> None:
    """It changes no answer but its warnings, here and in the next process; samples stay."""
    predictor = make_predictor(executor, store)
    sampled = predictor.estimate(PROBLEM, DEVICE.id)
    assert predictor.observe(sampled, 1e-4, is_first=False) == {ObservationFlag.DOUBTED}
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert (found.tier, found.interval) == (Tier.LINEAR, sampled.interval)
    (warning,) = found.warnings
    assert "0.0001 s" in warning
    assert "samples of the launch say" in warning
    for _ in range(20):
        predictor.observe(sampled, 1e-4, is_first=False)
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.LINEAR
    predictor.observe(sampled, 0.6, is_first=False)
    usual = predictor.estimate(PROBLEM, DEVICE.id)
    assert (usual.tier, usual.seconds) == (Tier.HISTORY, pytest.approx(0.6, rel=0.05))
    assert "not believed" in usual.warnings[0]
    predictor.flush()
    again = make_predictor(FakeExecutor(), store).estimate(PROBLEM, DEVICE.id)
    assert (again.tier, again.seconds) == (Tier.HISTORY, pytest.approx(0.6))
