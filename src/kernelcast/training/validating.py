"""Validates models of the catalogue: which rows, which splits, and on which machines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import joblib
import numpy as np

from kernelcast.models.time_models import RIVALS, make_model
from kernelcast.models.validation.report import ValidationReport
from kernelcast.models.validation.running import ValidationPlan, validate
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.training_table import Texts, TrainingTable
from kernelcast.training.rows import (
    choose_rows,
    describe_shortage,
    list_names,
    require_rows,
)
from kernelcast.training.settings import (
    LEAST_GROUPS,
    POOLED_MODEL,
    Split,
    ValidationSettings,
)

Report = Callable[[int, int], None]
"""Is called with the fits done and all fits."""
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
