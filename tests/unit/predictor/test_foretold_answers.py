"""What is answered where nothing may run: the shipped model, with its own interval."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.machine_file import read_machine, write_machine
from kernelcast.launches.machines import machine_path
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.calibration import calibrate
from kernelcast.models.evidence.model import PlainVariance
from kernelcast.models.evidence.piece import Kind
from kernelcast.models.evidence.registry import publish_evidence
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.measuring import model_alone
from kernelcast.predictor.answering.tasks import ModelTask
from kernelcast.predictor.predictor import Predictor
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.records.errors import DeviceError
from kernelcast.records.estimates import Estimate, Tier
from kernelcast.sampling.plan import SAMPLER
from kernelcast.testing.evidence import make_rows
from kernelcast.testing.fake_executor import (
    DEVICE,
    PROBLEM,
    FakeExecutor,
    make_analytic,
    make_learned,
    make_predictor,
)
from kernelcast.training_data.store import Store

ROOT = Path(__file__).parents[3]
MACHINE = ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"
UNSAMPLED = EstimateSettings(samples=False)


@pytest.fixture
def modelled(executor: FakeExecutor) -> FakeExecutor:
    """Give a device that both models know."""
    executor.analytic, executor.learned = make_analytic(0.6), make_learned(0.3, half_width=1.2)
    return executor


def list_kinds(found: Estimate) -> list[str]:
    """Give the kinds of an answer's pieces."""
    return [one.kind for one in found.list_pieces()]


def test_the_learned_model_answers_where_nothing_may_run(
    modelled: FakeExecutor, store: Store
) -> None:
    """Its time and its conformal interval, the class of work, and the analytic time beside it."""
    found = make_predictor(modelled, store, settings=UNSAMPLED).estimate(PROBLEM, DEVICE.id)
    assert (found.tier, list_kinds(found)) == (Tier.LEARNED, ["learned"])
    assert found.seconds == pytest.approx(0.3)
    assert math.log(found.high / found.seconds) == pytest.approx(1.2)
    assert found.estimates_s == pytest.approx({"learned": 0.3, "analytic": 0.6})
    (piece,) = found.list_pieces()
    assert "stencil" in piece.note
    assert "held out" in found.explain().interval
    assert not found.warnings
    assert modelled.tasks == []


def test_a_wider_coverage_gives_a_wider_interval(modelled: FakeExecutor, store: Store) -> None:
    """Of the same answer."""
    wide = replace(UNSAMPLED, coverage=0.95)
    nine, more = (
        make_predictor(modelled, store, settings=one).estimate(PROBLEM, DEVICE.id)
        for one in (UNSAMPLED, wide)
    )
    assert more.low < nine.low < nine.high < more.high


@pytest.mark.parametrize(
    ("methods", "settings", "tier"),
    [
        (["analytic"], UNSAMPLED, Tier.ANALYTIC),
        (["learned"], UNSAMPLED, Tier.LEARNED),
        (None, replace(UNSAMPLED, uses_models=False), Tier.ANALYTIC),
    ],
)
def test_methods_that_are_not_wanted_do_not_answer(
    modelled: FakeExecutor,
    store: Store,
    methods: list[str] | None,
    settings: EstimateSettings,
    tier: Tier,
) -> None:
    """The analytic model answers where learned ones may not, and the other way round."""
    predictor = make_predictor(modelled, store, settings=settings, methods=methods)
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert (found.tier, list_kinds(found)) == (tier, [tier.value])
    assert set(found.estimates_s) == {tier.value}


def test_neither_wanted_is_no_answer(modelled: FakeExecutor, store: Store) -> None:
    """That nothing may answer is said."""
    predictor = make_predictor(modelled, store, settings=UNSAMPLED, methods=["linear"])
    with pytest.raises(DeviceError, match="not wanted"):
        predictor.estimate(PROBLEM, DEVICE.id)


def test_a_device_that_was_not_calibrated_is_said_to_be_none(
    executor: FakeExecutor, store: Store
) -> None:
    """Whoever wants the learned model alone is told to calibrate, too."""
    predictor = make_predictor(executor, store, settings=UNSAMPLED, methods=["learned"])
    with pytest.raises(DeviceError, match="kernelcast calibrate"):
        predictor.estimate(PROBLEM, DEVICE.id)


def test_samples_answer_where_they_may(modelled: FakeExecutor, store: Store) -> None:
    """The shipped model is asked only where nothing runs."""
    found = make_predictor(modelled, store).estimate(PROBLEM, DEVICE.id)
    assert (set(list_kinds(found)), modelled.modelled) == ({"samples"}, 0)


def test_ones_own_model_takes_the_place_of_the_shipped_one(
    modelled: FakeExecutor, store: Store
) -> None:
    """`PredictorOptions.foretell` goes first; what it has no answer for the analytic one has."""
    options = PredictorOptions(
        executor=modelled, settings=UNSAMPLED, foretell=lambda _problem, _device: None
    )
    found = Predictor([DEVICE], store=store, registry="none", options=options)
    assert list_kinds(found.estimate(PROBLEM, DEVICE.id)) == ["analytic"]


@pytest.mark.parametrize(("variance", "tier"), [(0.01, Tier.ANALYTIC), (4.0, Tier.LEARNED)])
def test_the_surer_of_the_two_answers(
    modelled: FakeExecutor, store: Store, tmp_path: Path, variance: float, tier: Tier
) -> None:
    """They share the analytic model's errors; a device's own evidence may know it to be surer."""
    evidence = replace(
        calibrate(make_rows(), samplers=(SAMPLER,)),
        plain={Kind.ANALYTIC: PlainVariance(bias=0.0, variance=variance)},
    )
    files = VersionedFiles(url=str(tmp_path / "own"))
    publish_evidence(files, f"evidence/{DEVICE.id}", evidence)
    predictor = make_predictor(modelled, store, files.url, settings=UNSAMPLED)
    found = predictor.estimate(PROBLEM, DEVICE.id)
    assert (found.tier, list_kinds(found)) == (tier, [tier.value])


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Give the id of a device that was calibrated here."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    machine = replace(read_machine(MACHINE), id=DEVICE.id)
    path = machine_path(DEVICE.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_machine(path, machine)
    return DEVICE.id


def test_a_calibrated_device_is_asked_both_models(calibrated: str) -> None:
    """The child process answers by the analytic model and by its correction, where it is asked."""
    problem = read_problem(ROOT / "examples/nbody/nbody.yaml")
    task = ModelTask(problem=problem, device_id=calibrated)
    plain = model_alone(task, lambda _: None)
    both = model_alone(replace(task, wants_learned=True), lambda _: None)
    assert plain.learned is None
    assert plain.analytic == both.analytic
    assert both.learned is not None
    assert both.analytic is not None
    corrected = math.log(both.analytic.seconds) + both.learned.correction
    assert both.learned.log_seconds == pytest.approx(corrected)
