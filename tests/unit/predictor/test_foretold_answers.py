"""What is answered where nothing may run: the analytic model, with an interval of its errors."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.launches.machines import machine_path, model_own_launch, read_machine, write_machine
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.calibration import calibrate
from kernelcast.models.evidence.fusion import Kind
from kernelcast.models.evidence.model import (
    ANY,
    PlainVariance,
    find_half_width,
    load_shipped,
    model_to_json,
)
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.measuring import model_alone
from kernelcast.predictor.answering.processes import ModelTask
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.errors import DeviceError
from kernelcast.records.estimates import Estimate, Tier
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import make_table
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training.settings import CPU_MODEL, TrainingSettings
from kernelcast.training.training import train
from kernelcast.training_data.store import Store
from support.corrections import publish_model
from support.evidence import make_rows
from support.fake_executor import (
    DEVICE,
    PROBLEM,
    FakeExecutor,
    make_analytic,
    make_predictor,
    make_problem,
)

ROOT = Path(__file__).parents[3]
MACHINE = ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"
UNSAMPLED = EstimateSettings(samples=False)


@pytest.fixture
def modelled(executor: FakeExecutor) -> FakeExecutor:
    executor.analytic = make_analytic(0.6)
    return executor


def list_kinds(found: Estimate) -> list[str]:
    return [one.kind for one in found.list_pieces()]


def test_the_analytic_model_answers_where_nothing_may_run(
    modelled: FakeExecutor, store: Store
) -> None:
    """Its time, with the interval of its errors on other kernels, and nothing to be warned of.

    Loops that data end widen it by as much as they leave open.
    """
    predictor = make_predictor(modelled, store, settings=UNSAMPLED)
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert (found.tier, list_kinds(found)) == (Tier.ANALYTIC, ["analytic"])
    assert found.seconds == pytest.approx(0.6)
    width = find_half_width(load_shipped()[ANY], 0.9)
    assert math.log(found.high / found.seconds) == pytest.approx(width)
    assert found.estimates_s == {"analytic": 0.6}
    assert "held out" in found.explain().interval
    assert not found.warnings
    assert modelled.tasks == []
    modelled.analytic = make_analytic(0.6, doubt=3.0)
    wide = predictor.estimate(make_problem(1), DEVICE.id)
    assert wide.seconds == found.seconds
    assert math.log(wide.high / found.high) == pytest.approx(3.0, rel=0.02)


@pytest.mark.parametrize(
    ("methods", "calibrated_s", "complaint"),
    [
        (["linear"], 0.6, "not wanted"),
        (["learned"], 0.6, "not wanted"),
        (["analytic"], None, "kernelcast calibrate"),
    ],
)
def test_what_may_not_answer_is_said(
    executor: FakeExecutor, store: Store, methods: list[str], calibrated_s: float | None,
    complaint: str,
) -> None:  # fmt: skip
    """Whoever wants the analytic model of a device that was not calibrated is told to do that."""
    executor.analytic = None if calibrated_s is None else make_analytic(calibrated_s)
    predictor = make_predictor(executor, store, settings=UNSAMPLED, methods=methods)
    with pytest.raises(DeviceError, match=complaint):
        predictor.estimate(PROBLEM, DEVICE.id)


def publish(folder: Path, revision: int = REVISION, **plain: PlainVariance) -> str:
    """Publish evidence of the device that knows errors of models; gives the registry."""
    found = calibrate(make_rows(), samplers=(SAMPLER,))
    known = found.plain | {Kind(name): one for name, one in plain.items()}
    evidence = replace(found, plain=known, facts={**found.facts, CPU_MODEL: revision})
    files = VersionedFiles(url=str(folder))
    files.publish(f"evidence/{DEVICE.id}", model_to_json(evidence))
    return files.url


@pytest.mark.parametrize(
    ("revision", "name", "seconds"),
    [(REVISION, DEVICE.id, 0.3), (REVISION, "another", 0.6), (REVISION - 1, DEVICE.id, 0.6)],
)
def test_the_devices_own_errors_go_first(
    modelled: FakeExecutor, store: Store, tmp_path: Path, revision: int, name: str, seconds: float
) -> None:
    """What `kernelcast train` learned of a device moves its analytic times, not those of others,
    nor those of another CPU model."""
    bias = PlainVariance(bias=math.log(2.0), variance=0.01)
    url = publish(tmp_path / "own", revision, analytic=bias)
    (tmp_path / f"own/evidence/{DEVICE.id}").rename(tmp_path / f"own/evidence/{name}")
    predictor = make_predictor(modelled, store, url, settings=UNSAMPLED)
    assert predictor.estimate(PROBLEM, DEVICE.id).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("told_s", "kinds"), [(None, ["analytic"]), (0.3, ["learned", "analytic"])]
)
def test_ones_own_model_answers_beside_the_analytic_one(
    modelled: FakeExecutor, store: Store, tmp_path: Path, told_s: float | None, kinds: list[str]
) -> None:
    """`PredictorOptions.foretell` counts where its errors are known and it has an answer."""
    url = publish(tmp_path / "own", learned=PlainVariance(bias=0.0, variance=0.01))
    options = PredictorOptions(executor=modelled, settings=UNSAMPLED, foretell=lambda *_: told_s)
    predictor = Predictor([DEVICE], store=store, registry=url, options=options)
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert (found.tier, list_kinds(found)) == (kinds[0], kinds)
    assert found.estimates_s.get("learned") == told_s


def test_a_model_of_rows_without_samples_answers_with_its_interval(
    modelled: FakeExecutor, store: Store, tmp_path: Path
) -> None:
    """What `kernelcast train` made of a table is asked where nothing may run, and only there."""
    rows = [(kernel, size) for kernel in range(6) for size in (1e4, 2e4, 4e4, 8e4)]
    schema = FeatureSchema(names=("static.work_items_count",), version=1)
    table = make_table(schema, [[size] for _, size in rows], {
        "kernels": [f"k{kernel}" for kernel, _ in rows],
        "devices": [DEVICE.id] * len(rows),
        "samplers": [1.0] * len(rows),
        "seconds": [1e-6 * size * (1 + 0.02 * kernel) for kernel, size in rows],
    })  # fmt: skip
    registry = VersionedFiles(url=str(tmp_path / "own"))
    (trained,), *_ = train(table, "static", TrainingSettings(with_validation=False))
    publish_model(registry, trained.name, trained.model)
    modelled.values = {"static.work_items_count": 3e4}

    def ask(**options: Any) -> Estimate:  # noqa: ANN401 - of a predictor
        predictor = make_predictor(modelled, store, registry.url, **options)
        return predictor.estimate(PROBLEM, DEVICE.id)

    found = ask(settings=UNSAMPLED)
    assert (found.tier, list_kinds(found)) == (Tier.LEARNED, ["learned"])
    wanted = trained.model.forecast(make_table(schema, [[3e4]], {}), found.coverage)
    assert (found.seconds, found.low, found.high) == pytest.approx([one[0] for one in wanted[:3]])
    facts = found.explain().model
    assert facts is not None
    assert (facts.name, facts.rows) == (f"static/{DEVICE.id}", 24)
    assert "its training held out" in found.explain().interval
    assert found.estimates_s["analytic"] == 0.6
    assert ask().tier is not Tier.LEARNED
    assert ask(settings=UNSAMPLED, methods=("analytic",)).tier is Tier.ANALYTIC


def test_a_calibrated_device_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The child process answers by its analytic model, and reads the features that the source and
    that model tell where a learned model waits for them."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    path = machine_path(DEVICE.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_machine(path, replace(read_machine(MACHINE), id=DEVICE.id))
    problem = read_problem(ROOT / "examples/nbody/nbody.yaml")
    task = ModelTask(problem=problem, device_id=DEVICE.id, wants_values=True)
    found = model_alone(task, lambda _: None)
    assert found.analytic is not None
    assert found.analytic == model_own_launch(problem, problem.ndrange, DEVICE.id)
    assert found.values["analytic.estimate_s"] == found.analytic.seconds
    assert found.values["static.work_items_count"] == problem.ndrange.work_item_count
    assert found.values["counters.flops_per_work_item"] > 0
