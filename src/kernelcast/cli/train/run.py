"""Runs ``kernelcast train``."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from kernelcast.cli.collecting import Collected
from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.terminal import ExitStatus, complain, show, show_json, show_line
from kernelcast.cli.train.tables import (
    describe_evidence,
    evidence_to_json,
    make_training_table,
    trained_to_json,
)
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.observation import Observation
from kernelcast.records.training_table import TrainingTable
from kernelcast.training.evidence_models import CalibratedEvidence, EvidenceRows
from kernelcast.training.registry import open_registry
from kernelcast.training.settings import DEFAULT_MODEL, POOLED_MODEL, TrainingSettings
from kernelcast.training.table import load_training_table, machines_beside
from kernelcast.training.training import (
    TrainedModel,
    TrainingOutcome,
    count_models,
    publish_model,
    train,
    write_model_file,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """The command line of ``kernelcast train``; fields are its options."""

    sources: tuple[str, ...]
    model: str
    device_ids: tuple[str, ...]
    is_pooled: bool
    out: Path | None
    registry_url: str | None
    skips_validation: bool
    jobs: int | None
    as_json: bool

    def name(self) -> str:
        """Give the model's name."""
        if self.out is not None and self.registry_url is not None:
            msg = "--out and --registry: give one of them, the file or the registry"
            raise click.UsageError(msg)
        if not self.is_pooled:
            return self.model
        if self.model not in {DEFAULT_MODEL, POOLED_MODEL}:
            msg = f"--pooled trains {POOLED_MODEL}; leave --model {self.model} out, or --pooled"
            raise click.UsageError(msg)
        return POOLED_MODEL

    def settings(self) -> TrainingSettings:
        """Give how models are trained."""
        return TrainingSettings(with_validation=not self.skips_validation, jobs=self.jobs or -1)


_Kept = Collected[tuple[TrainedModel, str]]
"""Models that are trained, and where each has gone."""


def run_training(request: TrainRequest) -> ExitStatus:
    """Train, show what it has come to, and give the exit status."""
    name = request.name()
    seen: list[Observation] = []
    table = load_training_table(
        request.sources, devices=request.device_ids, tell=complain, keep=seen.append
    )
    evidence = EvidenceRows(seen)
    write = _choose_writer(request, table, name)
    kept = _train(request, table, name, evidence, write)
    calibrated = [] if kept.is_interrupted else _calibrate(request, evidence)
    if request.as_json:
        show_json([
            *(trained_to_json(one, place) for one, place in kept.answers),
            *({"name": one, "error_message": str(why)} for one, why in kept.failures),
            *(evidence_to_json(one, place) for one, place in calibrated),
        ])  # fmt: skip
    elif kept.answers:
        show(make_training_table([one for one, _ in kept.answers]))
        for one, place in kept.answers:
            show_line(f"{one.name}: written to {place}")
    if not request.as_json:
        for model, place in calibrated:
            show_line(f"{model.name}: {describe_evidence(model)}, written to {place}")
    kept.complain()
    return kept.status


def _train(
    request: TrainRequest,
    table: TrainingTable,
    name: str,
    evidence: EvidenceRows,
    write: Callable[[TrainedModel], str],
) -> _Kept:
    """Train and write each model as soon as it is ready; Ctrl-C ends it and keeps what is there."""
    kept = _Kept(when_interrupted="models that were ready are kept")

    def keep(one: TrainedModel) -> None:
        kept.answers.append((one, write(one)))

    with kept.until_interrupted(), progress_bar(is_wanted=not request.as_json) as tell:
        outcome: TrainingOutcome = train(
            table, name, request.settings(), evidence=evidence, keep=keep,
            report=lambda done, total: tell(done, total, "fits"),
        )  # fmt: skip
        kept.failures += [(one, KernelcastError(why)) for one, why in outcome.refused.items()]
    return kept


def _calibrate(
    request: TrainRequest, evidence: EvidenceRows
) -> list[tuple[CalibratedEvidence, str]]:
    """Calibrate and publish what estimates weigh evidence by, where a registry takes it."""
    if request.out is not None:
        return []
    registry = open_registry(request.registry_url)
    found = evidence.calibrate(machines_beside(request.sources))
    return [(one, f"{registry.url}/{one.name} as {one.publish(registry)}") for one in found]


def _choose_writer(
    request: TrainRequest, table: TrainingTable, name: str
) -> Callable[[TrainedModel], str]:
    """Give what writes a model and says where it is."""
    if request.out is None:
        registry = open_registry(request.registry_url)
        return lambda one: f"{registry.url}/{one.name} as {publish_model(one, registry)}"
    path = request.out
    count = count_models(table, name)
    if count > 1:
        msg = (
            f"--out takes one model, the data are of {count} devices; choose one by --device, "
            "give --pooled, or leave --out out: a registry holds one model per device"
        )
        raise InputError(msg)

    def write(one: TrainedModel) -> str:
        write_model_file(one, path)
        return str(path)

    return write
