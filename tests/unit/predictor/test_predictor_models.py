from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.time_models import FittedModel, make_model
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.processes import LaunchRow
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Tier
from kernelcast.records.training_table import TrainingTable
from kernelcast.training_data.store import Store
from support.corrections import publish_correction, publish_model
from support.fake_executor import (
    DEVICE,
    PROBLEM,
    FakeExecutor,
    SettableClock,
    make_analytic,
    make_predictor,
)


def test_the_hybrid_answers_in_its_domain(
    store: Store, registry: VersionedFiles, hybrid: FittedModel, known_row: LaunchRow
) -> None:
    """A model of the device corrects the samples, with the interval of its own errors."""
    executor = FakeExecutor(row=known_row, work_group_s=known_row.columns["linear_s"] / 100_000)
    predictor = make_predictor(executor, store, registry.url)
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.HYBRID
    assert found.in_domain
    assert {"linear", "pooled_rate", "hybrid"} <= set(found.estimates_s)
    assert found.seconds == found.estimates_s["hybrid"]
    explained = found.explain()
    assert explained.model is not None
    assert explained.model.data_digest == hybrid.describe()["data_digest"]
    assert len(explained.influences) > 0
    assert explained.tier is Tier.HYBRID
    assert not found.warnings


def test_outside_the_domain_the_linear_model_answers(
    store: Store, registry: VersionedFiles, known_row: LaunchRow
) -> None:
    """A strange launch is hardly corrected, and a warning says why."""
    values = {name: 1e6 * (one + 1) for name, one in known_row.vector.as_dict().items()}
    vector = replace(known_row.vector, values=values)
    executor = FakeExecutor(row=replace(known_row, vector=vector))
    found = make_predictor(executor, store, registry.url).estimate(PROBLEM, DEVICE.id)
    alone = make_predictor(executor, store).estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert found.seconds == pytest.approx(alone.seconds, rel=0.05)
    assert found.high / found.low > (alone.high / alone.low) ** 1.2
    assert not found.in_domain
    assert "hybrid" in found.estimates_s
    assert any("unlike" in one for one in found.warnings)


@pytest.mark.parametrize("failure", ["counting crashed", ""])
def test_a_failing_hybrid_never_costs_the_answer(
    store: Store, registry: VersionedFiles, failure: str
) -> None:
    """Where features cannot be had, the linear answer stands; a failure is a warning."""
    predictor = make_predictor(FakeExecutor(row_failure=failure), store, registry.url)
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert [one for one in found.warnings if "counting crashed" in one] == (
        [f"no learned correction: {failure}"] if failure else []
    )


def test_counting_copies_are_built_where_a_model_gains_from_counters(
    store: Store,
    registry: VersionedFiles,
    tmp_path: Path,
    known_row: LaunchRow,
    synthetic_table: TrainingTable,
) -> None:
    """Of no CPU device; of others unless their model takes no counters."""
    executor = FakeExecutor(row=known_row)
    make_predictor(executor, store, registry.url).estimate(PROBLEM, DEVICE.id)
    assert [(one.wants_row, one.wants_counts) for one in executor.tasks] == [(True, False)]
    gpu = replace(DEVICE, kind=DeviceKind.GPU)
    assert TrainedModels(registry.url, shipped="").takes_counters(gpu)
    plain = VersionedFiles(url=str(tmp_path / "plain"))
    publish_correction(plain, make_model("hybrid_without_counters").fit(synthetic_table))
    assert not TrainedModels(plain.url, shipped="").takes_counters(gpu)


def test_models_answer_as_soon_as_they_are_there(
    store: Store, tmp_path: Path, hybrid: FittedModel, known_row: LaunchRow
) -> None:
    """Answers made without one are made anew, features this time; another version samples nothing.

    The registry is not looked at for every question.
    """
    clock, executor = SettableClock(), FakeExecutor(row=known_row)
    registry = VersionedFiles(url=str(tmp_path / "later"))
    predictor = make_predictor(executor, store, registry.url, clock=clock)
    first = predictor.estimate(PROBLEM, DEVICE.id)
    assert "hybrid" not in first.estimates_s
    for now_s in (20.0, 40.0):
        before = predictor.estimate(PROBLEM, DEVICE.id)
        version = publish_correction(registry, hybrid, "evidence_runtime/fake")
        assert predictor.estimate(PROBLEM, DEVICE.id) is before
        clock.now_s = now_s
        found = predictor.estimate(PROBLEM, DEVICE.id)
        assert "hybrid" in found.estimates_s
        model = found.explain().model
        assert model is not None
        assert model.version == version
    assert [one.wants_row for one in executor.tasks] == [False, True]


def test_methods_choose_who_answers(
    store: Store, registry: VersionedFiles, hybrid: FittedModel, known_row: LaunchRow
) -> None:
    """Only wanted methods answer and stand side by side; nobody to answer is an error.

    A model of the registry that is named is asked too, and does not answer.
    """
    executor = FakeExecutor(row=known_row)
    only = make_predictor(executor, store, registry.url, methods=("linear", "two_point"))
    found = only.estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert set(found.estimates_s) <= {"linear", "two_point"}
    assert not executor.tasks[0].wants_row
    with pytest.raises(InputError, match="at least one of"):
        make_predictor(executor, store, methods=("two_point",))
    publish_model(registry, f"ridge/{DEVICE.id}", hybrid)
    methods = ("linear", "hybrid", "ridge")
    beside = make_predictor(executor, store, registry.url, methods=methods)
    found = beside.estimate(PROBLEM, DEVICE.id)
    assert found.estimates_s["ridge"] > 0
    assert found.seconds == found.estimates_s["hybrid"]


def test_a_damaged_model_is_said_and_the_next_one_answers(
    store: Store, registry: VersionedFiles, hybrid: FittedModel, known_row: LaunchRow
) -> None:
    """A warning names the file; then the runtime's model answers, then the samples."""
    publish_correction(registry, hybrid, "evidence_runtime/fake")
    executor = FakeExecutor(row=known_row, work_group_s=known_row.columns["linear_s"] / 100_000)
    (path,) = (Path(registry.url) / f"evidence/{DEVICE.id}").glob("0*.json")
    path.write_bytes(path.read_bytes()[:1000])
    found = make_predictor(executor, store, registry.url).estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.HYBRID
    (warning,) = found.warnings
    assert "an evidence model was passed over" in warning
    assert f"evidence/{DEVICE.id}/0001" in warning
    (Path(registry.url) / "evidence_runtime" / "fake" / "versions.json").write_text("{")
    found = make_predictor(executor, store, registry.url).estimate(PROBLEM, DEVICE.id)
    assert found.tier is Tier.LINEAR
    assert "the list of versions is damaged" in str(found.warnings)
    settings = EstimateSettings(samples=False)
    executor.analytic = make_analytic(0.4)
    bare = make_predictor(executor, store, registry.url, settings=settings)
    assert "the list of versions is damaged" in str(bare.estimate(PROBLEM, DEVICE.id).warnings)
