"""Two models side by side, paired: by how much one is better, how sure that is, and where.

Both models predict the same rows of kernels that neither has seen, so each kernel is its own
control: what makes a kernel hard is hard for both. Differences are second less first throughout:
below zero the second model is better.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.models.attribution import Attribution
from kernelcast.models.validation.bootstrap import Bootstrap, find_interval
from kernelcast.models.validation.record_json import read_document
from kernelcast.models.validation.report import ErrorSummary, ModelRows, ValidationReport
from kernelcast.models.validation.scoring import CLASSES, summarise
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers, Texts

FORMAT = 1
"""Grows when the meaning of a field changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedKernel:
    """One kernel, predicted by both.

    Parameters
    ----------
    kernel : str
        Its label.
    rows : int
        Rows that both models answered.
    first_error, second_error : float
        Mean errors |predicted - measured| / measured.
    difference : float
        Second less first.
    noise : float or None
        Mean noise of the kernel's measured times, the device's where its own is not known.
    winner : str or None
        The model with the smaller error; None where they differ by no more than the noise.
    """

    kernel: str
    rows: int
    first_error: float
    second_error: float
    difference: float
    noise: float | None
    winner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedClass:
    """Groups that the linear model predicts about equally well (the paper's Table 3).

    Parameters
    ----------
    low, high : float or None
        Linear model's mean error of the groups; no upper end where it is None.
    groups : int
        Number of groups that were held out.
    first_error, second_error : float or None
        Means over the groups' mean errors; None without groups.
    """

    low: float
    high: float | None
    groups: int
    first_error: float | None
    second_error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceComparison:
    """Two models on one device.

    Parameters
    ----------
    device : str
        Its id.
    rows : int
        Rows that both models answered; all that follows is about these.
    unpaired : int
        Rows that one of them, or none, answered.
    first_errors, second_errors : ErrorSummary or None
        None without rows.
    difference : float or None
        Mean error over rows, second less first.
    low, high : float or None
        Ends of its interval; None with fewer than two kernels.
    noise : float or None
        Mean noise of the device's measured times.
    classes : tuple of ComparedClass
        0-5 %, 5-10 % and beyond.
    kernels : tuple of ComparedKernel
        Where the second model is most ahead first, where the first is last.
    """

    device: str
    rows: int
    unpaired: int
    first_errors: ErrorSummary | None
    second_errors: ErrorSummary | None
    difference: float | None
    low: float | None
    high: float | None
    noise: float | None
    classes: tuple[ComparedClass, ...]
    kernels: tuple[ComparedKernel, ...]

    def count_wins(self, model: str | None) -> int:
        """Count the kernels that a model wins; None counts those that none does."""
        return sum(one.winner == model for one in self.kernels)

    def list_wins(self, model: str, most: int = 5) -> list[ComparedKernel]:
        """Give the kernels that a model wins, where it is most ahead first."""
        won = [one for one in self.kernels if one.winner == model]
        return sorted(won, key=lambda one: -abs(one.difference))[:most]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What pushed a learned model on a kernel, told by a fit without the kernel's group.

    Parameters
    ----------
    device, kernel : str
        What was predicted.
    error : float
        The model's mean error.
    reference_error : float
        The error of the time that it corrects, the linear model's.
    needed : float
        Mean of measured over that time, less 1: the correction that would have been right.
    attribution : Attribution
        What the correction was, and where it came from.
    """

    device: str
    kernel: str
    error: float
    reference_error: float
    needed: float
    attribution: Attribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two models on every device.

    Parameters
    ----------
    first, second : str
        Names of the models.
    split : str
        What was held out as a whole.
    resampled : str
        What the bootstrap draws as a whole: ``kernel`` or ``application``.
    method : str
        Of the interval.
    resamples, confidence, seed
        See `kernelcast.models.validation.bootstrap.Bootstrap`.
    schema_id, data_digest : str
        Of the table.
    refused : mapping of str to str
        Why a model could not be trained, by its name and device, and why devices are left out.
    devices : tuple of DeviceComparison
        Sorted by id.
    explained : tuple of Explanation
        Kernels on which a learned model errs most.
    """

    first: str
    second: str
    split: str
    resampled: str
    method: str
    resamples: int
    confidence: float
    seed: int
    schema_id: str
    data_digest: str
    refused: Mapping[str, str]
    devices: tuple[DeviceComparison, ...]
    explained: tuple[Explanation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Paired:
    """Rows of one device that both models answered, and what there is beside them."""

    kernels: Texts
    groups: Texts
    first: Numbers
    second: Numbers
    noise: Numbers


def compare(  # noqa: PLR0913 - options by name, as a caller says them
    report: ValidationReport,
    first: str,
    second: str,
    *,
    noise: Mapping[str, float] | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two models of a validation on the rows that both answered.

    Parameters
    ----------
    report : ValidationReport
        With both models.
    first, second : str
        Their names.
    noise : mapping of str to float, optional
        Noise of measured times by the rows' keys; the device's mean stands for what it lacks.
    resamples, confidence, seed
        See `kernelcast.models.validation.bootstrap.Bootstrap`.

    Returns
    -------
    Comparison
        Whole kernels are resampled, or whole applications where those were held out.

    Raises
    ------
    InputError
        If the report lacks a model, both are the same, or the bootstrap's options are wrong.
    """
    plan = Bootstrap(resamples=resamples, confidence=confidence, seed=seed)
    errors = [_list_errors(report, name) for name in (first, second)]
    if first == second:
        msg = f"comparison: {first} twice; name two different models"
        raise InputError(msg)
    rows = report.rows
    known = [np.nan if noise is None else noise.get(key, np.nan) for key in rows.keys]
    everything = _Paired(
        kernels=np.array(rows.kernels, dtype=np.object_),
        groups=np.array(rows.groups, dtype=np.object_),
        first=errors[0],
        second=errors[1],
        noise=np.array(known, dtype=np.float64),
    )
    names = (first, second)
    others = {one.model for one in rows.models} - {*names}
    return Comparison(
        first=first,
        second=second,
        split=report.split,
        resampled="application" if report.split == "application" else "kernel",
        method="BCa",
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        schema_id=report.schema_id,
        data_digest=report.data_digest,
        refused={
            key: why
            for key, why in report.refused.items()
            if key.partition(" on ")[0] not in others
        },
        devices=tuple(
            _compare_device(report, names, everything, device, plan)
            for device in sorted(set(rows.devices))
        ),
    )


def _list_errors(report: ValidationReport, name: str) -> Numbers:
    """Give a model's errors, NaN where it had no answer."""
    known: dict[str, ModelRows] = {one.model: one for one in report.rows.models}
    if name not in known:
        msg = f"report: no model {name}; there are {', '.join(known)}"
        raise InputError(msg)
    seconds = np.array([np.nan if one is None else one for one in known[name].seconds])
    measured = np.array(report.rows.measured_s)
    found: Numbers = np.abs(seconds - measured) / measured
    return found


def _compare_device(
    report: ValidationReport,
    names: tuple[str, str],
    everything: _Paired,
    device: str,
    plan: Bootstrap,
) -> DeviceComparison:
    on_device = np.array(report.rows.devices, dtype=np.object_) == device
    paired = _take(everything, on_device & np.isfinite(everything.first + everything.second))
    interval = None
    if len(paired.first):
        units = paired.groups if report.split == "application" else paired.kernels
        interval = find_interval(paired.second - paired.first, _number(units), plan)
    scores = [report.score(name, device) for name in names]
    usual = next((one.noise for one in scores if one.noise is not None), None)
    linear = {
        one.group: one.linear_error
        for score in sorted(scores, key=lambda one: -one.unanswered)
        for one in score.groups
        if one.linear_error is not None
    }
    return DeviceComparison(
        device=device,
        rows=len(paired.first),
        unpaired=int(on_device.sum()) - len(paired.first),
        first_errors=summarise(paired.first),
        second_errors=summarise(paired.second),
        difference=float((paired.second - paired.first).mean()) if len(paired.first) else None,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        noise=usual,
        classes=tuple(_compare_class(paired, linear, low, high) for low, high in CLASSES),
        kernels=_compare_kernels(paired, names, usual),
    )


def _take(paired: _Paired, rows: npt.NDArray[np.bool_]) -> _Paired:
    return _Paired(**{name: getattr(paired, name)[rows] for name in _Paired.__slots__})


def _number(labels: Texts) -> npt.NDArray[np.intp]:
    return np.unique(labels.astype(str), return_inverse=True)[1].astype(np.intp)


def _compare_kernels(
    paired: _Paired, names: tuple[str, str], usual: float | None
) -> tuple[ComparedKernel, ...]:
    found = []
    for kernel in sorted(set(paired.kernels.tolist())):
        rows = paired.kernels == kernel
        first, second = float(paired.first[rows].mean()), float(paired.second[rows].mean())
        measured = paired.noise[rows][np.isfinite(paired.noise[rows])]
        noise = float(measured.mean()) if measured.size else usual
        is_tie = abs(second - first) <= (noise or 0.0)
        found.append(
            ComparedKernel(
                kernel=str(kernel),
                rows=int(rows.sum()),
                first_error=first,
                second_error=second,
                difference=second - first,
                noise=noise,
                winner=None if is_tie else names[second < first],
            )
        )
    return tuple(sorted(found, key=lambda one: one.difference))


def _compare_class(
    paired: _Paired, linear: Mapping[str, float], low: float, high: float | None
) -> ComparedClass:
    """Average groups' mean errors, as the paper's Table 3 does."""
    present = set(paired.groups.tolist())
    inside = [
        paired.groups == group
        for group, error in sorted(linear.items())
        if group in present and low <= error < (np.inf if high is None else high)
    ]
    first, second = (
        float(np.mean([errors[rows].mean() for rows in inside])) if inside else None
        for errors in (paired.first, paired.second)
    )
    return ComparedClass(
        low=low, high=high, groups=len(inside), first_error=first, second_error=second
    )


def comparison_to_json(comparison: Comparison) -> str:
    """Write a comparison; `comparison_from_json` is the inverse."""
    return json.dumps({"format": FORMAT, **asdict(comparison)}, allow_nan=False, indent=1)


def comparison_from_json(text: str) -> Comparison:
    """Read a comparison.

    Raises
    ------
    InputError
        If it is none, or of another format.
    """
    return read_document(Comparison, text, FORMAT, what="comparison")
