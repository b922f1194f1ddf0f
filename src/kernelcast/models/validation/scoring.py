"""From predictions out of group to scores: errors, classes, intervals, ranking."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.models.validation.report import (
    ClassScore,
    DeviceScore,
    ErrorSummary,
    GroupScore,
    RankingScore,
)
from kernelcast.records.training_table import Numbers, Texts, TrainingTable

CLASSES = ((0.0, 0.05), (0.05, 0.1), (0.1, None))
"""The error classes of the paper's Table 3."""
_DIFFERING = 1.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """One model's predictions of rows whose groups it had not seen; NaN where it had none.

    Parameters
    ----------
    model : str
        Its name.
    seconds, low, high : ndarray, shape (n,)
        In seconds.
    in_domain : ndarray of bool, shape (n,)
        Whether a row lies inside the domain.
    """

    model: str
    seconds: Numbers
    low: Numbers
    high: Numbers
    in_domain: npt.NDArray[np.bool_]


def score_device(table: TrainingTable, groups: Texts, answers: Answers, device: str) -> DeviceScore:
    """Score a model on one device.

    Parameters
    ----------
    table : TrainingTable
        All rows.
    groups : ndarray of object (str), shape (n,)
        What was held out.
    answers : Answers
        One model's.
    device : str
        Whose rows to take.
    """
    on_device = table.devices == device
    known = on_device & np.isfinite(answers.seconds)
    measured = table.seconds[known]
    errors = np.abs(answers.seconds[known] - measured) / measured
    linear = np.abs(table.linear_s[known] - measured) / measured
    scores = _score_groups(groups[known], errors, linear)
    inside = (answers.low[known] <= measured) & (measured <= answers.high[known])
    width = np.sqrt(answers.high[known] / answers.low[known]) - 1
    noise = table.noise[on_device]
    noise = noise[np.isfinite(noise)]
    return DeviceScore(
        model=answers.model,
        device=device,
        errors=summarise(errors),
        unanswered=int(np.count_nonzero(on_device & ~known)),
        classes=tuple(_score_class(scores, low, high) for low, high in CLASSES),
        groups=scores,
        noise=float(noise.mean()) if noise.size else None,
        coverage=float(inside.mean()) if inside.size else None,
        half_width=float(np.median(width)) if width.size else None,
        in_domain=float(answers.in_domain[known].mean()) if inside.size else None,
    )


def summarise(errors: Numbers) -> ErrorSummary | None:
    """Summarise errors; None where there are none."""
    if not errors.size:
        return None
    return ErrorSummary(
        rows=len(errors),
        mean=float(errors.mean()),
        median=float(np.median(errors)),
        p90=float(np.quantile(errors, 0.9)),
        worst=float(errors.max()),
    )


def _score_groups(groups: Texts, errors: Numbers, linear: Numbers) -> tuple[GroupScore, ...]:
    """Give every group, worst first."""
    scores = []
    for group in sorted(set(groups.tolist())):
        rows = groups == group
        known = linear[rows][np.isfinite(linear[rows])]
        scores.append(
            GroupScore(
                group=str(group),
                rows=int(rows.sum()),
                error=float(errors[rows].mean()),
                linear_error=float(known.mean()) if known.size else None,
            )
        )
    return tuple(sorted(scores, key=lambda one: -one.error))


def _score_class(scores: tuple[GroupScore, ...], low: float, high: float | None) -> ClassScore:
    inside = [
        (one.linear_error, one.error)
        for one in scores
        if one.linear_error is not None
        and low <= one.linear_error < (np.inf if high is None else high)
    ]
    return ClassScore(
        low=low,
        high=high,
        groups=len(inside),
        linear_error=float(np.mean([one for one, _ in inside])) if inside else None,
        error=float(np.mean([one for _, one in inside])) if inside else None,
    )


def score_ranking(table: TrainingTable, answers: Answers) -> RankingScore | None:
    """Score which device a model would choose; None where no launch ran on several devices."""
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, problem in enumerate(table.problems):
        if problem and np.isfinite(answers.seconds[row]) and np.isfinite(table.seconds[row]):
            rows_of[problem].append(row)
    regrets, correct = [], []
    for rows in rows_of.values():
        measured = table.seconds[rows]
        if len(set(table.devices[rows].tolist())) < 2:
            continue
        chosen = int(np.argmin(answers.seconds[rows]))
        best, second = np.sort(measured)[:2]
        regrets.append(float(measured[chosen] / best))
        if second > _DIFFERING * best:
            correct.append(bool(measured[chosen] == best))
    if not regrets:
        return None
    return RankingScore(
        model=answers.model,
        problems=len(regrets),
        differing=len(correct),
        top_1=float(np.mean(correct)) if correct else None,
        mean_regret=float(np.mean(regrets)),
        worst_regret=max(regrets),
    )
