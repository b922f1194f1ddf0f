import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.models.persistence import ModelRegistry
from kernelcast.models.protocol import FittedModel
from kernelcast.predictor.answering.asking import LaunchRow
from kernelcast.predictor.known_launches import KnownLaunches
from kernelcast.predictor.predictor import Predictor
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.predictor.settings import EstimateSettings
from kernelcast.records.arguments import BufferArgument, ElementType, Init
from kernelcast.records.errors import DeviceError, InputError, KernelRunError
from kernelcast.records.estimates import Estimate, Tier
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.problem import Problem
from kernelcast.testing.fake_asker import (
    FakeAsker,
    make_analytic,
    make_device,
    make_problem,
)
from kernelcast.training_data.store import Store, open_store

DEVICE = make_device()
FIRST = frozenset({ObservationFlag.FIRST_LAUNCH})
PROBLEM = make_problem()


class Clock:
    """Tells the time that a test sets."""

    now_s = 1.0

    def __call__(self) -> float:
        """Give it."""
        return self.now_s


@pytest.fixture
def asker() -> FakeAsker:
    """Give a device that takes 0.5 s for the problem."""
    return FakeAsker()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give an empty store."""
    with open_store(tmp_path / "rows.sqlite") as found:
        yield found


def make_predictor(
    asker: FakeAsker, store: Store, registry: str = "", *, clock: Clock | None = None,
    settings: EstimateSettings | None = None, **more: object,
) -> Predictor:  # fmt: skip
    """Make a predictor of the fake device."""
    options = PredictorOptions(
        asker=asker, clock=clock or Clock(), settings=settings or EstimateSettings()
    )
    return Predictor(
        [DEVICE], store=store, registry=registry or str(Path(store.where).parent / "none"),
        options=options, **more,  # type: ignore[arg-type]  # methods and shadow by name
    )  # fmt: skip


def observe(predictor: Predictor, launch: Estimate, *times_s: float) -> None:
    """Observe a first launch, which is kept apart, and others."""
    predictor.observe(launch, 9.0, is_first=True)
    for one in times_s:
        predictor.observe(launch, one, is_first=False)


def test_samples_once_and_answers_from_memory(asker: FakeAsker, store: Store) -> None:
    """The second answer is the first one's very object, also to an equal problem."""
    predictor = make_predictor(asker, store)
    first = predictor.estimate(PROBLEM, DEVICE.id)
    assert first.tier is Tier.LINEAR
    assert first.seconds == pytest.approx(0.5, rel=0.01)
    assert predictor.estimate(PROBLEM, DEVICE) is first
    assert predictor.estimate(make_problem(), "fake") is first
    assert len(asker.tasks) == 1
    explained = first.explain()
    assert "no learned model" in explained.missing["hybrid"]
    assert "not observed" in explained.missing["history"]
    assert explained.linear is not None
    assert explained.methods_s["linear"] == first.seconds
    assert first.warnings == ()


@pytest.mark.parametrize(
    "other",
    [
        make_problem(1),
        make_problem(options=("-DN=1",)),
        make_problem(local_size=(32,)),
        make_problem(work_groups=50_000),
    ],
    ids=["source", "options", "local size", "sizes"],
)
def test_another_launch_is_sampled(asker: FakeAsker, store: Store, other: Problem) -> None:
    """Neither answers nor observations of one launch serve one that differs in anything."""
    predictor = make_predictor(asker, store)
    observe(predictor, predictor.estimate(PROBLEM, DEVICE.id), 0.7, 0.7)
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.HISTORY
    assert predictor.estimate(other, DEVICE.id).tier is Tier.LINEAR
    assert len(asker.tasks) == 2


@pytest.mark.parametrize(
    "other", [make_device(driver="2"), make_device("fake-device-1111")], ids=["driver", "device"]
)
def test_another_driver_or_device_is_sampled(asker: FakeAsker, store: Store, other: object) -> None:
    """Observations of another driver or device do not count."""
    first = make_predictor(asker, store)
    observe(first, first.estimate(PROBLEM, DEVICE.id), 0.7, 0.7)
    first.flush()
    asker.driver = other.driver  # type: ignore[attr-defined]
    options = PredictorOptions(asker=asker, clock=Clock())
    second = Predictor([other], store=store, registry="none", options=options)  # type: ignore[list-item]
    assert second.estimate(PROBLEM, other.id).tier is Tier.LINEAR  # type: ignore[attr-defined]


def test_a_driver_that_changed_meanwhile_is_noticed(asker: FakeAsker, store: Store) -> None:
    """When the device that sampled has another driver, what the old one did is forgotten."""
    predictor = make_predictor(asker, store)
    observe(predictor, predictor.estimate(PROBLEM, DEVICE.id), 0.7, 0.7)
    asker.driver = "2"
    found = predictor.estimate(make_problem(1), DEVICE.id)
    assert found.identity is not None
    assert found.identity.device.driver == "2"
    assert predictor.devices()[0].driver == "2"
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.LINEAR


def test_a_changed_input_file_is_another_launch(
    asker: FakeAsker, store: Store, tmp_path: Path
) -> None:
    """The content of a buffer's file belongs to the launch, also where the problem is the same."""
    path = tmp_path / "values.npy"
    np.save(path, np.zeros(8))
    argument = BufferArgument(element=ElementType("float64"), count=8, init=Init.FILE, path=path)
    problem = replace(PROBLEM, arguments=(argument,))
    predictor = make_predictor(asker, store)
    first = predictor.estimate(problem, DEVICE.id)
    assert predictor.estimate(problem, DEVICE.id) is first
    np.save(path, np.arange(16))
    assert predictor.estimate(problem, DEVICE.id) is not first
    path.unlink()
    asker.error = InputError("values.npy cannot be read")
    with pytest.raises(InputError, match="cannot be read"):
        predictor.estimate(problem, DEVICE.id)


def test_the_devices_choice_of_local_size_is_the_same_launch(
    asker: FakeAsker, store: Store
) -> None:
    """A launch whose local size the device chose is that with the size given."""
    predictor = make_predictor(asker, store)
    chosen = predictor.estimate(make_problem(local_size=None), DEVICE.id)
    assert chosen.ndrange.local_size == (64,)
    assert predictor.estimate(PROBLEM, DEVICE.id) is chosen
    assert len(asker.tasks) == 1


def test_repeats_are_answered_from_history(asker: FakeAsker, store: Store) -> None:
    """An observed launch takes what it took; a new process asks the store, and samples nothing."""
    predictor = make_predictor(asker, store)
    sampled = predictor.estimate(PROBLEM, DEVICE.id)
    observe(predictor, sampled, 0.6, 0.61, 0.62)
    known = predictor.estimate(PROBLEM, DEVICE.id)
    assert known.tier is Tier.HISTORY
    assert known.seconds == 0.61
    assert known.low < 0.61 < known.high
    assert known.estimates_s["linear"] == sampled.seconds
    assert known.estimates_s["history"] == 0.61
    predictor.flush()
    fresh = FakeAsker()
    again = make_predictor(fresh, store).estimate(PROBLEM, DEVICE.id)
    assert (again.tier, again.seconds) == (Tier.HISTORY, 0.61)
    assert fresh.tasks == []
    facts = again.explain().history
    assert facts is not None
    assert facts.observations == 3
    assert facts.first is not None
    stored = list(store.find())
    assert sorted(one.seconds for one in stored) == [0.6, 0.61, 0.62, 9.0]
    assert [one.flags for one in stored if one.seconds == 9.0] == [FIRST]


def test_history_may_be_refused(asker: FakeAsker, store: Store) -> None:
    """Without history, and where whole runs are measured, repeats are sampled."""
    first = make_predictor(asker, store)
    observe(first, first.estimate(PROBLEM, DEVICE.id), 0.7, 0.7)
    first.flush()
    unwanted = make_predictor(asker, store, settings=EstimateSettings(uses_history=False))
    found = unwanted.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert "not asked" in found.explain().missing["history"]
    measuring = make_predictor(
        asker, store, settings=EstimateSettings(measure=True, measured_runs=1)
    )
    measured = measuring.estimate(PROBLEM, DEVICE.id)
    assert measured.tier is Tier.LINEAR
    assert measured.estimates_s["history"] == 0.7


def test_first_observation_of_a_kernel_is_its_first_launch(asker: FakeAsker, store: Store) -> None:
    """Unless told otherwise, what is observed first may hold compilation and is kept apart."""
    predictor = make_predictor(asker, store)
    sampled = predictor.estimate(PROBLEM, DEVICE.id)
    assert predictor.observe(sampled, 0.9) == FIRST
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.LINEAR
    assert predictor.observe(sampled, 0.6) == frozenset()
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.HISTORY


def test_equal_keys_count_once(asker: FakeAsker, store: Store) -> None:
    """An observation that is told twice changes nothing the second time."""
    predictor = make_predictor(asker, store)
    sampled = predictor.estimate(PROBLEM, DEVICE.id)
    for _ in range(3):
        predictor.observe(sampled, 0.6, is_first=False, key="request-1")
    predictor.flush()
    assert store.count() == 1
    facts = predictor.estimate(PROBLEM, DEVICE.id).explain().history
    assert facts is not None
    assert facts.observations == 1


def test_observing_what_was_never_asked_for(asker: FakeAsker, store: Store) -> None:
    """Observations of an identity serve a later estimate."""
    identity = make_predictor(asker, store).estimate(PROBLEM, DEVICE.id).identity
    assert identity is not None
    predictor = make_predictor(asker, store)
    for one in (9.0, 0.6, 0.6):
        predictor.observe(identity, one)
    assert predictor.estimate(PROBLEM, DEVICE.id).seconds == 0.6
    with pytest.raises(InputError, match="positive"):
        predictor.observe(identity, float("nan"))
    anonymous = replace(predictor.estimate(PROBLEM, DEVICE.id), identity=None)
    with pytest.raises(InputError, match="no identity"):
        predictor.observe(anonymous, 1.0)


def test_shifted_times_are_sampled_anew_and_widen_the_interval(
    asker: FakeAsker, store: Store
) -> None:
    """When times drift off, the next estimate samples, warns, and holds both in its interval."""
    predictor = make_predictor(asker, store)
    sampled = predictor.estimate(PROBLEM, DEVICE.id)
    observe(predictor, sampled, *(0.5 + 0.001 * number for number in range(10)))
    narrow = predictor.estimate(PROBLEM, DEVICE.id)
    asker.work_group_s = 1.8e-5
    for _ in range(3):
        predictor.observe(sampled, 2.0)
    assert len(asker.tasks) == 1
    shifted = predictor.estimate(PROBLEM, DEVICE.id)
    assert len(asker.tasks) == 2
    assert shifted.tier is Tier.LINEAR
    assert shifted.seconds == pytest.approx(1.8, rel=0.01)
    assert shifted.low < 1.8 < 2.0 < shifted.high
    assert shifted.high / shifted.low > narrow.high / narrow.low
    assert any("sampled anew" in one for one in shifted.warnings)
    assert predictor.estimate(PROBLEM, DEVICE.id) is shifted
    predictor.observe(sampled, 1.9)
    usual = predictor.estimate(PROBLEM, DEVICE.id)
    assert (usual.tier, usual.seconds) == (Tier.HISTORY, 2.0)


def test_shifted_times_without_sampling(asker: FakeAsker, store: Store) -> None:
    """Where nothing may be sampled, the interval holds what was answered and what is observed."""
    asker.analytic = make_analytic(0.4)
    predictor = make_predictor(asker, store, settings=EstimateSettings(samples=False))
    asked = predictor.estimate(PROBLEM, DEVICE.id)
    observe(predictor, asked, *(0.5 + 0.001 * number for number in range(10)))
    for _ in range(3):
        predictor.observe(asked, 2.0)
    shifted = predictor.estimate(PROBLEM, DEVICE.id)
    assert shifted.tier is Tier.HISTORY
    assert shifted.low < 0.5
    assert shifted.high > 2.0
    assert shifted.warnings


def test_the_hybrid_answers_in_its_domain(
    store: Store, registry: ModelRegistry, hybrid: FittedModel, known_row: LaunchRow
) -> None:
    """A model of the device corrects the samples, with the interval of its own errors."""
    asker = FakeAsker(row=known_row, work_group_s=known_row.linear_s / 100_000)
    predictor = make_predictor(asker, store, registry.url)
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.HYBRID
    assert found.in_domain
    assert {"linear", "pooled_rate", "hybrid"} <= set(found.estimates_s)
    assert found.seconds == found.estimates_s["hybrid"]
    explained = found.explain()
    assert explained.model is not None
    assert explained.model.data_digest == hybrid.describe()["data_digest"]
    assert "conformal" in explained.interval
    assert explained.tier is Tier.HYBRID
    assert not found.warnings


def test_outside_the_domain_the_linear_model_answers(
    store: Store, registry: ModelRegistry, known_row: LaunchRow
) -> None:
    """A strange launch steps down, with the wider interval and a warning that says why."""
    values = {name: 1e6 * (one + 1) for name, one in known_row.vector.as_dict().items()}
    vector = replace(known_row.vector, values=tuple(values.values()))
    asker = FakeAsker(row=replace(known_row, vector=vector))
    found = make_predictor(asker, store, registry.url).estimate(PROBLEM, DEVICE.id)
    alone = make_predictor(asker, store).estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert found.seconds == alone.seconds
    assert found.low <= alone.low
    assert found.high >= alone.high
    assert not found.in_domain
    assert "hybrid" in found.estimates_s
    assert any("unlike" in one for one in found.warnings)


@pytest.mark.parametrize("failure", ["counting crashed", ""])
def test_a_failing_hybrid_never_costs_the_answer(
    store: Store, registry: ModelRegistry, failure: str
) -> None:
    """Where features cannot be had, the linear answer stands; a failure is a warning."""
    asker = FakeAsker(row_failure=failure)
    predictor = make_predictor(asker, store, registry.url)
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert [one for one in found.warnings if "counting crashed" in one] == (
        [f"no learned correction: {failure}"] if failure else []
    )


def test_what_crashed_once_is_not_tried_again(store: Store, registry: ModelRegistry) -> None:
    """A launch whose counting failed is sampled without it the next time."""
    asker = FakeAsker(row_failure="the driver crashed")
    predictor = make_predictor(asker, store, registry.url)
    sampled = predictor.estimate(PROBLEM, DEVICE.id)
    observe(predictor, sampled, *[0.5] * 6, *[5.0] * 3)
    again = predictor.estimate(PROBLEM, DEVICE.id)
    assert [one.wants_row for one in asker.tasks] == [True, False]
    assert any("the driver crashed" in one for one in again.warnings)


def test_counters_are_found_once(
    store: Store, registry: ModelRegistry, known_row: LaunchRow
) -> None:
    """A launch that is sampled again is given its counters and features."""
    asker = FakeAsker(row=known_row)
    predictor = make_predictor(asker, store, registry.url)
    sampled = predictor.estimate(PROBLEM, DEVICE.id)
    observe(predictor, sampled, *[0.5] * 6, *[5.0] * 3)
    predictor.estimate(PROBLEM, DEVICE.id)
    assert [one.facts is None for one in asker.tasks] == [True, False]


def test_a_new_model_answers_without_sampling_again(
    store: Store, registry: ModelRegistry, hybrid: FittedModel, known_row: LaunchRow
) -> None:
    """Cached answers are made anew of kept features when another version is published."""
    clock = Clock()
    asker = FakeAsker(row=known_row)
    predictor = make_predictor(asker, store, registry.url, clock=clock)
    first = predictor.estimate(PROBLEM, DEVICE.id)
    version = registry.publish(f"hybrid/{DEVICE.id}", hybrid, known_row.vector.schema)
    assert predictor.estimate(PROBLEM, DEVICE.id) is first
    clock.now_s = 20.0
    second = predictor.estimate(PROBLEM, DEVICE.id)
    model = second.explain().model
    assert model is not None
    assert model.version == version
    assert len(asker.tasks) == 1


def test_the_first_model_is_used_as_soon_as_it_is_there(
    store: Store, tmp_path: Path, hybrid: FittedModel, known_row: LaunchRow
) -> None:
    """Answers made without a model are made anew, features this time, once there is one."""
    clock = Clock()
    asker = FakeAsker(row=known_row)
    url = str(tmp_path / "later")
    predictor = make_predictor(asker, store, url, clock=clock)
    assert predictor.estimate(PROBLEM, DEVICE.id).estimates_s.get("hybrid") is None
    ModelRegistry(url=url).publish("hybrid_pooled", hybrid, known_row.vector.schema)
    clock.now_s = 20.0
    assert "hybrid" in predictor.estimate(PROBLEM, DEVICE.id).estimates_s
    assert [one.wants_row for one in asker.tasks] == [False, True]


def test_methods_choose_who_answers(
    store: Store, registry: ModelRegistry, known_row: LaunchRow
) -> None:
    """Only wanted methods answer and stand side by side; nobody to answer is an error."""
    asker = FakeAsker(row=known_row)
    only = make_predictor(asker, store, registry.url, methods=("linear", "two_point"))
    found = only.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert set(found.estimates_s) <= {"linear", "two_point"}
    assert not asker.tasks[0].wants_row
    with pytest.raises(InputError, match="at least one of"):
        make_predictor(asker, store, methods=("two_point",))


def test_other_models_stand_side_by_side(
    store: Store, registry: ModelRegistry, hybrid: FittedModel, known_row: LaunchRow
) -> None:
    """A model of the registry that is named is asked too, and does not answer."""
    registry.publish(f"ridge/{DEVICE.id}", hybrid, known_row.vector.schema)
    asker = FakeAsker(row=known_row)
    predictor = make_predictor(asker, store, registry.url, methods=("linear", "hybrid", "ridge"))
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert found.estimates_s["ridge"] == pytest.approx(found.estimates_s["hybrid"])


def test_the_shadow_is_recorded_and_not_shown(
    store: Store, registry: ModelRegistry, known_row: LaunchRow
) -> None:
    """A method in the shadow says nothing, and its errors are known afterwards."""
    asker = FakeAsker(row=known_row)
    predictor = make_predictor(asker, store, registry.url, methods=("linear",), shadow="hybrid")
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert "hybrid" not in found.estimates_s
    observe(predictor, found, 0.25)
    (record,) = predictor.shadow_records()
    assert record.method == "hybrid"
    assert record.measured_s == 0.25
    assert record.answered_error == pytest.approx(found.seconds / 0.25 - 1)
    assert record.shadow_s != record.answered_s


def test_without_sampling_the_analytic_model_answers(asker: FakeAsker, store: Store) -> None:
    """Nothing runs; the interval says that it is assumed where no errors are known."""
    asker.analytic = make_analytic(0.4)
    predictor = make_predictor(asker, store, settings=EstimateSettings(samples=False))
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.ANALYTIC
    assert (found.seconds, found.low, found.high) == pytest.approx((0.4, 0.4 / 3, 1.2))
    assert any("assumed" in one for one in found.warnings)
    assert "assumed" in found.explain().interval
    assert found.explain().limiters["DRAM"] == 0.4
    assert asker.tasks == []
    assert predictor.estimate(PROBLEM, DEVICE.id) is found


def test_without_sampling_and_calibration_there_is_no_answer(
    asker: FakeAsker, store: Store
) -> None:
    """The error says what is missing: a calibration, or leave to sample."""
    predictor = make_predictor(asker, store, settings=EstimateSettings(samples=False))
    with pytest.raises(DeviceError, match=r"kernelcast calibrate --device.*allow sampling"):
        predictor.estimate(PROBLEM, DEVICE.id)
    with pytest.raises(InputError, match="measured"):
        EstimateSettings(samples=False, measure=True)


def test_failures_are_not_remembered(asker: FakeAsker, store: Store) -> None:
    """A device that fails raises its error, and is asked again the next time."""
    predictor = make_predictor(asker, store)
    asker.error = KernelRunError("the driver crashed")
    with pytest.raises(KernelRunError):
        predictor.estimate(PROBLEM, DEVICE.id)
    asker.error = None
    assert predictor.estimate(PROBLEM, DEVICE.id).tier is Tier.LINEAR


def test_many_launches_on_many_devices(
    store: Store, registry: ModelRegistry, known_row: LaunchRow
) -> None:
    """One entry per pair, in order; a pair that fails says so in its entry."""
    asker = FakeAsker(row=known_row)
    problems = [make_problem(number) for number in range(3)]
    predictor = make_predictor(asker, store, registry.url)
    found = predictor.estimate_many(problems, [DEVICE, make_device("fake-device-1111")])
    assert [(one.problem, one.device_id) for one in found] == [
        (problem.name, device) for problem in problems for device in (DEVICE.id, "fake-device-1111")
    ]
    ours, others = found[::2], found[1::2]
    assert all(one.estimate and "hybrid" in one.estimate.estimates_s for one in ours)
    assert all(one.estimate and one.estimate.tier is Tier.LINEAR for one in others)
    assert all(one.launch_s == pytest.approx(2e-6) for one in found)
    assert all(one.to_device_s is None and one.total_s == one.kernel_s for one in found)
    assert predictor.estimate(problems[1], DEVICE.id) is ours[1].estimate
    asker.error = KernelRunError("the driver crashed")
    (one,) = predictor.estimate_many([make_problem(9)])
    assert one.estimate is None
    assert one.total_s is None
    assert isinstance(one.error, KernelRunError)


def test_faster_compares_intervals(asker: FakeAsker, store: Store) -> None:
    """The probability follows from both intervals, and adds up to one."""
    predictor = make_predictor(asker, store)
    slow = predictor.estimate(PROBLEM, DEVICE.id)
    quick = predictor.estimate(make_problem(work_groups=90_000), DEVICE.id)
    share = predictor.faster(quick, slow)
    assert 0.5 < share < 1
    assert share + predictor.faster(slow, quick) == pytest.approx(1.0)
    assert predictor.faster(slow, slow) == 0.5


def test_threads_lose_no_observation(asker: FakeAsker, store: Store) -> None:
    """Eight threads that ask and tell at once get right answers, and all they tell is stored."""
    predictor = make_predictor(asker, store)
    problems = [make_problem(number) for number in range(4)]
    wrong: list[str] = []

    def work(thread: int) -> None:
        for turn in range(400):
            problem = problems[(turn + thread) % len(problems)]
            found = predictor.estimate(problem, DEVICE.id)
            if found.identity is None or found.identity.kernel.digest != problem.kernel.digest:
                wrong.append(problem.name)
            predictor.observe(found, 0.5 + 0.0001 * (turn % 10))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    predictor.close()
    assert not wrong
    assert store.count() == 3200
    assert len(asker.tasks) == len(problems)
    assert predictor.estimate(problems[0], DEVICE.id).seconds == pytest.approx(0.5, rel=0.01)


def test_oldest_launches_are_forgotten(monkeypatch: pytest.MonkeyPatch, asker: FakeAsker,
                                       store: Store) -> None:  # fmt: skip
    """Memory is bounded: what was forgotten is sampled again."""
    monkeypatch.setattr("kernelcast.predictor.known_launches._MOST_LAUNCHES", 3)
    predictor = make_predictor(asker, store)
    for number in (0, 1, 2, 3, 0):
        predictor.estimate(make_problem(number), DEVICE.id)
    assert len(asker.tasks) == 5
    assert len(KnownLaunches()) == 0
