"""Methods compared on groups that none has seen: where each is nearer, why a learned one errs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from kernelcast.models.attribution import attribute
from kernelcast.models.time_models import make_model
from kernelcast.models.validation.comparison import (
    RESAMPLES,
    Comparison,
    ExplainedError,
    MethodComparison,
    compare_errors,
    compare_validated,
)
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Texts, TrainingTable
from kernelcast.training.settings import DEFAULT_MODEL, RowFilter, Split, ValidationSettings
from kernelcast.training.table import choose_sources, load_training_table
from kernelcast.training.training import choose_rows, label_rows, validate_models

Report = Callable[[str, int, int], None]
_ALIASES = {"learned": DEFAULT_MODEL}
# What launches are told apart by before they run: names of people's, and the columns they are of.
_SIGNS = {
    "operations_per_byte": "counters.operations_per_byte",
    "indirect_access_share": "static.indirect_access_ratio",
    "loop_imbalance": "counters.loop_imbalance_ratio",
    "sample_spread": "sampled.spread_ratio",
    "work_items_per_work_group": "static.work_items_per_work_group",
    "largest_limiter_share": "analytic.largest_limiter_ratio",
}
_LIMITER = "_limiter_s"


def compare_table(
    table: TrainingTable,
    methods: Sequence[str],
    settings: ValidationSettings,
    *,
    resamples: int = RESAMPLES,
    explained: int = 3,
    report: Report = lambda _, __, ___: None,
) -> MethodComparison:
    """Compare methods on rows left out, and explain a learned one's errors on some kernels."""
    names = check_methods(methods, settings.split)
    settings = replace(settings, models=tuple(names.values()))
    validation = validate_models(table, settings, lambda done, total: report("fits", done, total))
    first, second, *_ = names.values()
    comparison = compare_validated(
        validation,
        first,
        second,
        noise=dict(zip(table.keys.tolist(), table.noise.tolist(), strict=True)),
        resamples=resamples,
    )
    judged = choose_rows(table, settings.rows)
    worst = tuple(_explain_worst(judged, comparison, settings, explained, report))
    comparison = replace(comparison, explained=worst)
    frame = judged.frame
    signs = {name: judged.column(column) for name, column in _SIGNS.items()}
    limiters = frame.filter(regex=f"{_LIMITER}$").dropna(how="all").idxmax(axis=1).astype(str)
    limiters = limiters.str.removeprefix("analytic.").str.removesuffix(_LIMITER)
    even = pd.Series(judged.column("sampled.even_flag"), index=frame.index)
    classes = _cut(signs["operations_per_byte"], (1.0, 10.0), "operations per byte")
    launches = pd.DataFrame({
        "key": judged.keys, "device": judged.devices, "kernel": judged.kernels,
        "family": label_rows(judged, Split.FAMILY), "measured_s": judged.seconds,
        "noise": judged.noise,
        "work": np.where(signs["indirect_access_share"] > 0, "addresses from memory", classes),
        "size": _cut(judged.work_groups, (1e3, 1e4, 1e5), "work-groups"),
        "evenness": even.map({1.0: "even", 0.0: "uneven"}).fillna("unknown").to_numpy(),
        "limiter": limiters.reindex(frame.index).fillna("unknown").to_numpy(),
        "work_groups": judged.work_groups,
        **signs,
    })  # fmt: skip
    rows = validation.rows.to_frame()
    answers = rows.pivot_table(index="key", columns="model", values="predicted_s")
    answers = answers.reindex(columns=[*names.values()]).set_axis(
        [f"{one}_s" for one in names], axis=1
    )
    joined = launches.join(answers, on="key", how="inner")
    notes = [f"{what}: {why}" for what, why in validation.refused.items()]
    if {"history"} & {*names.values()} and settings.split is not Split.LAUNCH:
        notes.append(
            f"history answers launches that were measured before, and has seen none of a "
            f"{settings.split.value} that is held out: it answers as linear does; `--split launch` "
            "holds out repeated measurements one by one"
        )
    return replace(compare_errors(joined, methods, notes=notes), pair=comparison)


def compare_methods(
    rows: "pd.DataFrame | Sequence[str | Path]" = (),
    methods: Sequence[str] = ("analytic", "learned", "linear"),
    *,
    devices: Sequence[str] = (),
    split: str = "family",
    shortest_s: float = 0.1,
    least_work_groups: int = 256,
    jobs: int = -1,
) -> MethodComparison:
    """Compare methods that predict times: which is nearer, how sure that is, and when.

    Parameters
    ----------
    rows : DataFrame or sequence of str or Path
        Launches with a column ``<method>_s`` for each method, see
        `kernelcast.models.validation.comparison.compare_errors`; or where observations are: stores,
        Parquet files, folders of them, or ``shipped`` for those that come with the package, which
        also count where the user has no store and nothing is named.
    methods : sequence of str
        Columns of the DataFrame, or names that ``kernelcast compare`` knows.
    devices : sequence of str
        Ids of devices or their beginnings; none means all.
    split : str
        What is held out as a whole: ``family``, ``kernel``, ``application`` or ``launch``.
    shortest_s, least_work_groups
        Launches below are neither learned from nor judged.
    jobs : int
        Processes; -1 takes one per processor.

    Returns
    -------
    MethodComparison
        Tables as DataFrames.
    """
    if isinstance(rows, pd.DataFrame):
        return compare_errors(rows, methods)
    notes: list[str] = []
    table = load_training_table(
        choose_sources(rows, notes.append), devices=devices, tell=notes.append, of_one_sampler=True
    )
    settings = ValidationSettings(
        split=Split(split),
        rows=RowFilter(shortest_s=shortest_s, least_work_groups=least_work_groups),
        folds=10,
        jobs=jobs,
    )
    found = compare_table(table, methods, settings, explained=0)
    return replace(found, notes=(*notes, *found.notes))


def check_methods(methods: Sequence[str], split: Split = Split.KERNEL) -> dict[str, str]:
    """Return the model that each name stands for; refuse what cannot be compared."""
    if split is Split.DEVICE:
        msg = "comparison: devices are few, nothing could be told of others; split by kernel"
        raise InputError(msg)
    names = {one: _ALIASES.get(one, one) for one in methods}
    for name in names.values():
        make_model(name)
    if len(methods) < 2 or len(set(names.values())) < len(methods):
        raise InputError(
            f"{', '.join(methods) or 'nothing'}: a method cannot be compared with itself; name two "
            "different models or more"
        )
    return names


def _cut(values: npt.NDArray[np.float64], limits: Sequence[float], what: str) -> Texts:
    names = [
        f"below {limits[0]:,g} {what}",
        *(f"{low:,g} to {high:,g} {what}" for low, high in pairwise(limits)),
        f"{limits[-1]:,g} {what} and more",
    ]
    found = np.array(names, dtype=object)[np.digitize(values, limits)]
    return np.where(np.isfinite(values), found, "unknown")


def _explain_worst(
    judged: TrainingTable, comparison: Comparison, settings: ValidationSettings, most: int,
    report: Report,
) -> Iterator[ExplainedError]:  # fmt: skip
    """Explain the kernels that the learned one of two models errs most on, device by device."""
    models = [make_model(one) for one in (comparison.second, comparison.first)]
    learned = next((one for one in models if one.learner), None)
    if learned is None:
        return
    labels = label_rows(judged, settings.split)
    error_of = "second_error" if learned is models[0] else "first_error"
    worst = [
        (device.device, kernel, error)
        for device in comparison.devices
        for error, kernel in sorted(
            ((one[error_of], one["kernel"]) for one in device.kernels), reverse=True
        )[:most]
    ]
    for done, (device, kernel, error) in enumerate(worst, start=1):
        # Fit without the kernel's group, as the validation did, and take its corrections apart.
        on_device = judged.devices == device
        of_kernel = on_device & (judged.kernels == kernel)
        held = np.isin(labels.astype(str), sorted(set(labels[of_kernel].tolist())))
        seen = on_device & ~held
        fitted = learned.fit(judged.take(seen), labels[seen])
        rows = judged.take(of_kernel)
        reference_s = learned.refer(rows)
        known = np.isfinite(reference_s)
        rows, reference_s = rows.take(known), reference_s[known]
        yield ExplainedError(
            device=device,
            kernel=kernel,
            error=error,
            reference_error=float((np.abs(reference_s - rows.seconds) / rows.seconds).mean()),
            needed=float((rows.seconds / reference_s).mean()) - 1,
            attribution=attribute(fitted, rows),
        )
        report("explaining errors", done, len(worst))
