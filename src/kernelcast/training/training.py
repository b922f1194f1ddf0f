"""Validates and trains models of the catalogue: which rows, which splits, and on which machines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

import joblib
import numpy as np

from kernelcast.models.persistence import ModelRegistry, save_model
from kernelcast.models.time_models import RIVALS, FittedModel, TimeModel, make_model
from kernelcast.models.validation.report import ValidationReport
from kernelcast.models.validation.running import ValidationPlan, validate
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import Texts, TrainingTable
from kernelcast.training.registry import name_model
from kernelcast.training.rows import (
    choose_rows,
    describe_shortage,
    list_names,
    require_rows,
)
from kernelcast.training.settings import (
    ALL_ROWS,
    DEFAULT_MODEL,
    LEAST_GROUPS,
    POOLED_MODEL,
    Split,
    TrainingSettings,
    ValidationSettings,
)

Report = Callable[[int, int], None]
POOLED_RIVALS = ("two_point", "linear", "pooled_rate", "analytic", "mwp_cwp", POOLED_MODEL)
"""What is compared on devices that no model has seen, unless other models are named."""
_WORKERS_TIMEOUT_S = 20.0


def validate_models(
    table: TrainingTable,
    settings: ValidationSettings | None = None,
    report: Report = lambda _, __: None,
) -> ValidationReport:
    """Hold groups out, one after the other, and predict each by models that have not seen it."""
    settings = settings or ValidationSettings()
    names = settings.models or (POOLED_RIVALS if settings.split is Split.DEVICE else RIVALS)
    models = [make_model(name) for name in names]
    known, short = _find_usable(table, settings)
    is_local = settings.scheduler is None
    plan = ValidationPlan(
        split=settings.split.value,
        is_per_device=settings.split is not Split.DEVICE,
        coverage=settings.coverage,
        folds=settings.folds,
        jobs=settings.jobs if is_local else None,
    )
    labels = label_rows(known, settings.split)
    with _cluster(settings.scheduler):
        found = validate(known, models, labels, plan, report)
    return replace(found, refused={**found.refused, **short})


def label_rows(table: TrainingTable, split: Split) -> Texts:
    """Give the group of each row."""
    if split is Split.DEVICE:
        return table.devices
    if split is Split.LAUNCH:
        return table.keys
    if split is Split.KERNEL:
        return table.kernels
    if split is Split.FAMILY:
        return np.where(table.applications == "", table.kernels, table.applications)
    unnamed = int(np.count_nonzero(table.applications == ""))
    if unnamed:
        msg = (
            f"{unnamed} of {len(table)} rows name no application; split by kernel, or name other "
            "data by --data"
        )
        raise InputError(msg)
    return table.applications


def _find_usable(
    table: TrainingTable, settings: ValidationSettings
) -> tuple[TrainingTable, dict[str, str]]:
    """Give the rows to validate on, and why devices are left out."""
    require_rows(table)
    known = choose_rows(table, settings.rows)
    if settings.split is Split.DEVICE:
        count = len(list_names(known.devices))
        if count < LEAST_GROUPS:
            raise InputError(describe_shortage(table, count, "device", settings.rows))
        return known, {}
    labels = label_rows(known, settings.split)
    short = {}
    for device in list_names(table.devices):
        count = len(list_names(labels[known.devices == device]))
        if count < LEAST_GROUPS:
            own = table.take(table.devices == device)
            short[device] = describe_shortage(own, count, settings.split.value, settings.rows)
    kept = ~np.isin(known.devices.astype(str), [*short])
    if not kept.any():
        raise InputError("; ".join(f"{device}: {why}" for device, why in short.items()))
    return known.take(kept), {f"every model on {device}": why for device, why in short.items()}


@contextmanager
def _cluster(scheduler: str | None) -> Iterator[None]:
    """Let a Dask cluster do the fits of the block, where one is named."""
    if scheduler is None:
        yield
        return
    from kernelcast.workers.cluster import connect

    with (
        connect(scheduler) as client,
        joblib.parallel_config(
            backend="dask", client=client, wait_for_workers_timeout=_WORKERS_TIMEOUT_S
        ),
    ):
        try:
            yield
        except KernelcastError:
            raise
        except TimeoutError as error:
            msg = f"{scheduler}: the cluster has no workers; start one by `dask worker {scheduler}`"
            raise InputError(msg) from error
        except Exception as error:  # a killed worker, another version there, whatever it was
            msg = (
                f"{scheduler}: the cluster failed ({error!r}); do all workers run and have this "
                "version of kernelcast?"
            )
            raise KernelcastError(msg) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model, and what it has learned from."""

    name: str
    """What it is published under: ``model/device``, or the model alone where it serves all."""
    model: FittedModel
    schema: FeatureSchema
    devices: tuple[str, ...]
    kernels: tuple[str, ...]
    rows: int
    """Rows it has learned from: measured, and sampled where the model needs that."""
    data_digest: str
    samplers: tuple[int, ...]
    report: ValidationReport | None


@dataclass(slots=True)
class TrainingOutcome:
    """What a training has come to."""

    trained: list[TrainedModel] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """One model to be trained, and the measured rows it learns from."""

    name: str
    model: TimeModel
    table: TrainingTable
    split: Split

    @property
    def labels(self) -> Texts:
        """Group of each row: what is held out as a whole."""
        return self.table.devices if self.split is Split.DEVICE else self.table.kernels

    def describe_rows(self) -> str:
        """Say what there is to learn from."""
        sampled = np.isfinite(self.table.linear_s)
        kernels = len(list_names(self.table.kernels[sampled]))
        return (
            f"{len(self.table)} rows are measured, {np.count_nonzero(sampled)} of these sampled, "
            f"of {kernels} kernels; `kernelcast collect` measures both"
        )

    def count_fits(self, settings: TrainingSettings) -> int:
        """Give the fits of training and validation."""
        return 1 + (len(list_names(self.labels)) if settings.with_validation else 0)

    def train(self, settings: TrainingSettings, report: Callable[[int], None]) -> TrainedModel:
        """Learn from all rows; then hold each group out once."""
        fitted = self.model.fit(self.table, self.labels)
        report(1)
        plan = ValidationPlan(
            split=self.split.value,
            is_per_device=not self.model.is_pooled,
            coverage=settings.coverage,
            jobs=settings.jobs,
        )
        found = None
        if settings.with_validation:
            found = validate(
                self.table, [self.model], self.labels, plan, lambda done, _: report(1 + done)
            )
        return TrainedModel(
            name=self.name,
            model=fitted,
            schema=self.table.schema,
            devices=tuple(list_names(self.table.devices)),
            kernels=tuple(list_names(self.table.kernels)),
            rows=cast("int", fitted.facts["rows"]),
            data_digest=str(fitted.facts["data_digest"]),
            samplers=_list_samplers(self.table) if self.model.uses_samples else (),
            report=found,
        )


def train(
    table: TrainingTable,
    name: str = DEFAULT_MODEL,
    settings: TrainingSettings | None = None,
    *,
    keep: Callable[[TrainedModel], None] = lambda _: None,
    report: Report = lambda _, __: None,
) -> TrainingOutcome:
    """Train a model for each device of a table, or one for all of them."""
    settings = settings or TrainingSettings()
    require_rows(table)
    parts, refused = _divide(table, make_model(name))
    outcome = TrainingOutcome(refused=refused)
    total, before = sum(part.count_fits(settings) for part in parts), 0
    for part in parts:
        try:
            found = part.train(settings, partial(_shift, report, before, total))
        except InputError as error:
            outcome.refused[part.name] = f"{error} ({part.describe_rows()})"
        else:
            outcome.trained.append(found)
            keep(found)
        before += part.count_fits(settings)
    if not outcome.trained:
        raise InputError("; ".join(f"{one}: {why}" for one, why in outcome.refused.items()))
    return outcome


def _shift(report: Report, before: int, total: int, done: int) -> None:
    """Count the parts before one too."""
    report(before + done, total)


def count_models(table: TrainingTable, name: str = DEFAULT_MODEL) -> int:
    """Give how many models `train` would make of a table at most: one per device, or one."""
    return 1 if make_model(name).is_pooled else len(list_names(table.devices))


def _divide(table: TrainingTable, model: TimeModel) -> tuple[list[_Part], dict[str, str]]:
    """Give what is to be trained, and why some of it cannot be."""
    tables = {name_model(model.name): table}
    if not model.is_pooled:
        tables = {
            name_model(model.name, one): table.take(table.devices == one)
            for one in list_names(table.devices)
        }
    parts: list[_Part] = []
    refused: dict[str, str] = {}
    for name, own in tables.items():
        known = choose_rows(own, ALL_ROWS)
        kernels = len(list_names(known.kernels))
        if kernels < LEAST_GROUPS:
            refused[name] = describe_shortage(own, kernels, Split.KERNEL.value)
            continue
        by_device = model.is_pooled and len(list_names(known.devices)) >= LEAST_GROUPS
        split = Split.DEVICE if by_device else Split.KERNEL
        parts.append(_Part(name=name, model=model, table=known, split=split))
    return parts, refused


def _list_samplers(table: TrainingTable) -> tuple[int, ...]:
    known = table.samplers[np.isfinite(table.samplers)]
    return tuple(sorted({int(one) for one in known}))


def publish_model(trained: TrainedModel, registry: ModelRegistry) -> str:
    """Add a trained model to a registry, where it becomes the latest; give its version."""
    return registry.publish(trained.name, trained.model, trained.report, samplers=trained.samplers)


def write_model_file(trained: TrainedModel, path: Path | str) -> None:
    """Write a trained model into one file."""
    save_model(trained.model, str(path), trained.report, samplers=trained.samplers)
