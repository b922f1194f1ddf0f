"""What a validation's page shows of each device, taken out of the report."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.cli.validate.page.figures import KernelBar, PredictedRow
from kernelcast.models.validation.report import (
    DeviceScore,
    GroupScore,
    ModelRows,
    ValidationReport,
)

_FAVOURITE = "hybrid"
_BASELINE = "linear"
_MOST_WORST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstGroup:
    """A group that was held out, with what may excuse the error.

    Parameters
    ----------
    group : str
        Its label.
    rows : int
        Rows that were answered.
    error : float
        Mean error.
    linear_error : float or None
        The linear model's.
    noise : float or None
        Mean noise of its measured times, where known.
    inside, in_domain : int
        Rows inside their intervals, and inside the domain.
    """

    group: str
    rows: int
    error: float
    linear_error: float | None
    noise: float | None
    inside: int
    in_domain: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceContent:
    """One device.

    Parameters
    ----------
    device : str
        Its id.
    scores : tuple of DeviceScore
        Of every model.
    chosen : DeviceScore
        Of the model that the pictures show.
    noise : float or None
        Mean noise of the measured times.
    bars : tuple of KernelBar
        Groups with a linear error.
    rows : tuple of PredictedRow
        Rows that the chosen model answered.
    worst : tuple of WorstGroup
        Worst first.
    """

    device: str
    scores: tuple[DeviceScore, ...]
    chosen: DeviceScore
    noise: float | None
    bars: tuple[KernelBar, ...]
    rows: tuple[PredictedRow, ...]
    worst: tuple[WorstGroup, ...]


def choose_model(report: ValidationReport) -> str:
    """Give the model that pictures show: the hybrid, else the last that is not the linear one."""
    names = [one.model for one in report.rows.models]
    if _FAVOURITE in names:
        return _FAVOURITE
    return next((one for one in reversed(names) if one != _BASELINE), names[-1])


def gather(
    report: ValidationReport, chosen: str, noise: Mapping[str, float]
) -> list[DeviceContent]:
    """Gather what is shown of each device.

    Parameters
    ----------
    report : ValidationReport
        A validation.
    chosen : str
        The model that pictures show.
    noise : mapping of str to float
        Noise of measured times by the rows' keys, as far as known.
    """
    answers = next(one for one in report.rows.models if one.model == chosen)
    return [
        _gather_device(report, answers, device, noise)
        for device in sorted({one.device for one in report.scores})
    ]


def _gather_device(
    report: ValidationReport, answers: ModelRows, device: str, noise: Mapping[str, float]
) -> DeviceContent:
    scores = tuple(one for one in report.scores if one.device == device)
    chosen = report.score(answers.model, device)
    rows: dict[str, list[PredictedRow]] = {}
    noises: dict[str, list[float]] = {}
    for place, (group, where) in enumerate(
        zip(report.rows.groups, report.rows.devices, strict=True)
    ):
        seconds, low, high = answers.seconds[place], answers.low[place], answers.high[place]
        if where != device or seconds is None or low is None or high is None:
            continue
        rows.setdefault(group, []).append(
            PredictedRow(
                measured_s=report.rows.measured_s[place], seconds=seconds, low=low, high=high,
                in_domain=answers.in_domain[place],
            )
        )  # fmt: skip
        known = noise.get(report.rows.keys[place], math.nan)
        if math.isfinite(known):
            noises.setdefault(group, []).append(known)
    return DeviceContent(
        device=device,
        scores=scores,
        chosen=chosen,
        noise=next((one.noise for one in scores if one.noise is not None), None),
        bars=tuple(
            KernelBar(name=one.group, linear=one.linear_error, learned=one.error)
            for one in chosen.groups
            if one.linear_error is not None
        ),
        rows=tuple(row for group in rows.values() for row in group),
        worst=tuple(
            _describe(one, rows.get(one.group, []), noises.get(one.group, []))
            for one in chosen.groups[:_MOST_WORST]
        ),
    )


def _describe(score: GroupScore, rows: list[PredictedRow], noise: list[float]) -> WorstGroup:
    return WorstGroup(
        group=score.group,
        rows=score.rows,
        error=score.error,
        linear_error=score.linear_error,
        noise=sum(noise) / len(noise) if noise else None,
        inside=sum(one.low <= one.measured_s <= one.high for one in rows),
        in_domain=sum(one.in_domain for one in rows),
    )
