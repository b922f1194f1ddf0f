"""From predictions of held-out groups to scores: errors, classes, intervals, ranking."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kernelcast.models.validation.report import (
    ClassScore,
    DeviceScore,
    GroupScore,
    ModelRows,
    RankingScore,
    ValidatedRows,
    summarise_errors,
)
from kernelcast.records.training_table import Texts, TrainingTable

CLASSES = ((0.0, 0.05), (0.05, 0.1), (0.1, None))
"""The error classes of the paper's Table 3."""
_DIFFERING = 1.1

Scores = tuple[tuple[DeviceScore, ...], tuple[RankingScore, ...]]


def list_rows(table: TrainingTable, groups: Texts, models: Sequence[ModelRows]) -> ValidatedRows:
    """Put models' answers beside the launches of a table, and the groups that were held out."""
    return ValidatedRows(
        keys=tuple(table.keys),
        groups=tuple(groups),
        kernels=tuple(table.kernels),
        devices=tuple(table.devices),
        measured_s=tuple(table.seconds.tolist()),
        models=tuple(models),
    )


def score_rows(table: TrainingTable, rows: ValidatedRows) -> Scores:
    """Score every model on every device, and in telling which device is fastest."""
    linear = np.abs(table.linear_s - table.seconds) / table.seconds
    columns = {"linear_error": linear, "noise": table.noise, "problem": table.problems}
    count = len(rows.models)
    frame = rows.to_frame().assign(**{name: np.tile(one, count) for name, one in columns.items()})
    devices = sorted(set(rows.devices))
    own = {one.model: frame[frame["model"] == one.model] for one in rows.models}
    scores = tuple(
        _score_device(name, device, some[some["device"] == device])
        for name, some in own.items()
        for device in devices
    )
    rankings = (_score_ranking(name, some) for name, some in own.items())
    return scores, tuple(one for one in rankings if one is not None)


def _score_device(model: str, device: str, rows: pd.DataFrame) -> DeviceScore:
    known = rows[rows["error"].notna()]
    groups = known.groupby("group").agg(
        rows=("error", "size"), error=("error", "mean"), linear_error=("linear_error", "mean")
    )
    inside = known["measured_s"].between(known["low_s"], known["high_s"])
    width = (known["high_s"] / known["low_s"]) ** 0.5 - 1
    worst_first = groups.sort_values("error", ascending=False, kind="stable").reset_index()
    return DeviceScore(
        model=model,
        device=device,
        errors=summarise_errors(known["error"].to_numpy()),
        unanswered=len(rows) - len(known),
        classes=tuple(
            ClassScore(low=low, high=high, groups=len(some), linear_error=linear, error=error)
            for (low, high), some in split_classes(groups)
            for linear, error in [(mean_of(some["linear_error"]), mean_of(some["error"]))]
        ),
        groups=tuple(
            GroupScore(
                group=one["group"], rows=one["rows"], error=one["error"],
                linear_error=None if np.isnan(one["linear_error"]) else one["linear_error"],
            )
            for one in worst_first.to_dict("records")
        ),
        noise=mean_of(rows["noise"]),
        coverage=mean_of(inside),
        half_width=None if known.empty else float(width.median()),
        in_domain=mean_of(known["in_domain"]),
    )  # fmt: skip


def split_classes(
    groups: pd.DataFrame,
) -> list[tuple[tuple[float, float | None], pd.DataFrame]]:
    """Give the groups of each class of the linear model's error."""
    error = groups["linear_error"]
    return [
        ((low, high), groups[(error >= low) & (error < (np.inf if high is None else high))])
        for low, high in CLASSES
    ]


def mean_of(values: "pd.Series[float] | pd.Series[bool]") -> float | None:
    """Give the mean of what is known, None where nothing is."""
    known = values.dropna()
    return None if known.empty else float(known.mean())


def _score_ranking(model: str, rows: pd.DataFrame) -> RankingScore | None:
    """Score which device a model would choose; None where no launch ran on several devices."""
    known = rows[(rows["problem"] != "") & rows["error"].notna()]
    known = known[known.groupby("problem")["device"].transform("nunique") > 1]
    if known.empty:
        return None
    launches = known.groupby("problem")
    chosen = known.loc[launches["predicted_s"].idxmin()].set_index("problem")["measured_s"]
    second = known.sort_values("measured_s").groupby("problem")["measured_s"].nth(1)
    by_problem = pd.DataFrame({
        "chosen": chosen,
        "best": launches["measured_s"].min(),
        "second": second.set_axis(known.loc[second.index, "problem"]),
    })  # fmt: skip
    regret = by_problem["chosen"] / by_problem["best"]
    differing = by_problem[by_problem["second"] > _DIFFERING * by_problem["best"]]
    return RankingScore(
        model=model,
        problems=len(by_problem),
        differing=len(differing),
        top_1=mean_of(differing["chosen"] == differing["best"]),
        mean_regret=float(regret.mean()),
        worst_regret=float(regret.max()),
    )
