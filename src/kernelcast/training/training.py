"""Validates and trains models of the catalogue: which rows, which splits, and on which machines."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd

from kernelcast.models.time_models import RIVALS, make_model
from kernelcast.models.validation.report import StoredModel, ValidationReport, validate
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.feature_vector import FeatureGroup
from kernelcast.records.observation import Observation
from kernelcast.records.training_table import Texts, TrainingTable
from kernelcast.training.registry import name_model
from kernelcast.training.settings import (
    ALL_ROWS,
    LEAST_GROUPS,
    POOLED_MODEL,
    RowFilter,
    Split,
    TrainingSettings,
    ValidationSettings,
    pluralise,
)

Report = Callable[[int, int], None]
POOLED_RIVALS = ("two_point", "linear", "pooled_rate", "analytic", "mwp_cwp", POOLED_MODEL)
"""What is compared on devices that no model has seen, unless other models are named."""
_WORKERS_TIMEOUT_S = 20.0


def validate_models(
    table: TrainingTable,
    settings: ValidationSettings,
    report: Report = lambda _, __: None,
) -> ValidationReport:
    """Hold groups out, one after the other, and predict each by models that have not seen it."""
    names = settings.models or (POOLED_RIVALS if settings.split is Split.DEVICE else RIVALS)
    models = [make_model(name) for name in names]
    require_rows(table)
    known = choose_rows(table, settings.rows)
    what, short = settings.split.value, dict[str, str]()
    labels = label_rows(known, settings.split)
    if settings.split is Split.DEVICE:
        if shortage := describe_shortage(table, settings.split, settings.rows):
            raise InputError(shortage)
    else:
        for device in list_names(table.devices):
            own = table.take(table.devices == device)
            if shortage := describe_shortage(own, settings.split, settings.rows):
                short[device] = shortage
    kept = ~np.isin(known.devices.astype(str), [*short])
    if not kept.any():
        raise InputError("; ".join(f"{device}: {why}" for device, why in short.items()))
    with _cluster(settings.scheduler):
        found = validate(
            known.take(kept), models, labels[kept], split=what,
            is_per_device=settings.split is not Split.DEVICE, coverage=settings.coverage,
            folds=settings.folds, jobs=settings.jobs if settings.scheduler is None else None,
            report=report,
        )  # fmt: skip
    refused = {f"every model on {device}": why for device, why in short.items()}
    return replace(found, refused={**found.refused, **refused})


def label_rows(table: TrainingTable, split: Split) -> Texts:
    whole = {Split.DEVICE: table.devices, Split.LAUNCH: table.keys, Split.KERNEL: table.kernels}
    if split in whole:
        return whole[split]
    if split is Split.FAMILY:
        return np.where(table.applications == "", table.kernels, table.applications)
    unnamed = int(np.count_nonzero(table.applications == ""))
    if unnamed:
        raise InputError(
            f"{unnamed} of {len(table)} rows name no application; split by kernel, or name other "
            "data by --data"
        )
    return table.applications


@contextmanager
def _cluster(scheduler: str | None) -> Iterator[None]:
    """Let a Dask cluster do the fits of the block, where one is named."""
    if scheduler is None:
        yield
        return
    from kernelcast.workers import connect_cluster

    with (
        connect_cluster(scheduler) as client,
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
            raise KernelcastError(
                f"{scheduler}: the cluster failed ({error!r}); do all workers run and have this "
                "version of kernelcast?"
            ) from error


def train(
    table: TrainingTable,
    name: str,
    settings: TrainingSettings,
    *,
    keep: Callable[[StoredModel], None] = lambda _: None,
    report: Report = lambda _, __: None,
) -> tuple[list[StoredModel], dict[str, str], dict[str, str]]:
    """Train a model for each device of a table, or one for all of them.

    Return the models, why others could not be trained, and why a model has learned from some of its
    rows only, by their names.
    """
    model = make_model(name)
    require_rows(table)
    models: list[StoredModel] = []
    refused: dict[str, str] = {}
    left_out: dict[str, str] = {}
    parts: list[tuple[str, TrainingTable, Split, Texts]] = []
    for device in [None] if model.is_pooled else list_names(table.devices):
        own = table if device is None else table.take(table.devices == device)
        if shortage := describe_shortage(own, Split.KERNEL):
            refused[name_model(name, device)] = shortage
            continue
        known = choose_rows(own, ALL_ROWS)
        by_device = model.is_pooled and len(list_names(known.devices)) >= LEAST_GROUPS
        split = Split.DEVICE if by_device else Split.KERNEL
        parts.append((name_model(name, device), known, split, label_rows(known, split)))
    total = sum(
        1 + (len(list_names(groups)) if settings.with_validation else 0) for *_, groups in parts
    )
    done = itertools.count(1)

    def tell(*_: int) -> None:
        report(next(done), total)

    for own_name, known, split, groups in parts:
        try:
            fitted = model.fit(known, groups)
            tell()
            found = None
            if settings.with_validation:
                found = validate(
                    known, [model], groups, split=split.value, is_per_device=not model.is_pooled,
                    coverage=settings.coverage, jobs=settings.jobs, report=tell,
                )  # fmt: skip
        except InputError as error:
            sampled = np.isfinite(known.linear_s)
            kernels = len(list_names(known.kernels[sampled]))
            refused[own_name] = (
                f"{error} ({len(known)} rows are measured, {np.count_nonzero(sampled)} of these "
                f"sampled, of {kernels} kernels; `kernelcast collect` measures both)"
            )
            continue
        if lacking := int(np.isnan(model.refer(known)).sum()):
            left_out[own_name] = (
                f"{lacking} of {len(known)} rows are left out, they have no time that {name} "
                f"starts from; {model.advice}"
            )
        # Samples of another sampler would mislead a model that learns from samples.
        uses_samples = FeatureGroup.SAMPLED in model.feature_groups
        samplers = known.samplers[np.isfinite(known.samplers)] if uses_samples else ()
        trained = StoredModel(
            name=own_name, model=fitted, report=found,
            samplers=tuple(sorted({int(one) for one in samplers})),
        )  # fmt: skip
        models.append(trained)
        keep(trained)
    if not models:
        raise InputError("; ".join(f"{one}: {why}" for one, why in refused.items()))
    return models, refused, left_out


def list_names(labels: Texts) -> list[str]:
    return sorted({str(one) for one in labels})


def choose_rows(table: TrainingTable, rows: RowFilter) -> TrainingTable:
    """Return the measured launches that a filter takes, in their order."""
    keep = np.isfinite(table.seconds) & (table.seconds >= rows.shortest_s)
    if rows.least_work_groups:
        keep &= table.work_groups >= rows.least_work_groups
    return table.take(keep)


def require_rows(table: TrainingTable) -> None:
    if np.isfinite(table.seconds).any():
        return
    raise InputError(
        f"{len(table)} observations, none of them with a measured time: nothing to learn from; "
        "measure some by `kernelcast collect`, or name other data by --data"
    )


def describe_shortage(table: TrainingTable, split: Split, rows: RowFilter = ALL_ROWS) -> str:
    """Say what is missing where a table has too few groups to learn from; else nothing."""
    devices = list_names(table.devices)
    measured = choose_rows(table, ALL_ROWS)
    counting = choose_rows(table, rows)
    groups = len(list_names(label_rows(counting, split)))
    if groups >= LEAST_GROUPS:
        return ""
    sampled = int(np.count_nonzero(np.isfinite(counting.linear_s)))
    found = [_count(len(table), "row"), f"{len(measured)} measured"]
    is_filtered = rows != ALL_ROWS
    if is_filtered:
        found.append(f"{len(counting)} of {rows.describe()}")
    needed = "measured"
    if np.isfinite(table.linear_s).any():  # else models learn without samples
        found.append(f"{sampled} of these sampled")
        needed = "sampled and measured"
    more = f" --device {devices[0]}" if len(devices) == 1 else ""
    looser = ", or lower --shortest and --least-work-groups" if is_filtered else ""
    least = _count(LEAST_GROUPS, split.value)
    return (
        f"{', '.join(found)}, of {_count(groups, split.value)}; at least {least} with "
        f"{needed} launches are needed: `kernelcast collect{more}` adds some{looser}"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what if number == 1 else pluralise(what)}"


_SCORED = {
    "rows": ("error", "size"),
    "mean": ("error", "mean"),
    "median": ("error", "median"),
    "p90": ("error", lambda errors: errors.quantile(0.9)),
    "cost": ("cost", "median"),
}


def score_sampling_points(observations: Iterable[Observation], rows: RowFilter) -> pd.DataFrame:
    """Score the linear model from each choice of sampling points on each device (Fig. 15).

    Returns
    -------
    DataFrame
        A row per ``device`` and choice, the default samples last. ``label``: the two points in
        multiples of the work-groups that a device runs at once (``"1, 2"`` to ``"5, 6"``), or
        ``"default"`` for the samples that an estimate takes unless told otherwise; ``multiple``:
        the first point's, 0 for the default; ``rows``: predictions, which are launches times the
        sets of windows that each was sampled with; ``mean``, ``median``, ``p90``: of the errors;
        ``cost``: median of the samples' device time over the whole launch's.
    """
    by_key: dict[str, Observation] = {}
    for one in observations:
        by_key.setdefault(one.key, one)
    found = [
        {
            "device": one.launch.device.id,
            "is_default": sample.multiple == 0,
            "multiple": sample.multiple,
            # As shares of the measured time.
            "error": abs(sample.linear_s - one.seconds) / one.seconds,
            "cost": sample.sampling_s / one.seconds,
        }
        for one in by_key.values()
        if rows.takes(one.seconds, one.launch.work_group_count or math.nan)
        for sample in one.samples
        if sample.linear_s
    ]
    columns = ["device", "label", "multiple", *_SCORED]
    if not found:
        return pd.DataFrame(columns=columns)
    points = pd.DataFrame(found).groupby(["device", "is_default", "multiple"])
    scores = points.agg(**_SCORED).reset_index()
    labels = [f"{one}, {one + 1}" if one else "default" for one in scores["multiple"]]
    return scores.assign(label=labels)[columns]
