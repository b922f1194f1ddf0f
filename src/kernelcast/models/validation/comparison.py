"""Two models side by side, paired: by how much one is better, how sure that is, and where.

Both models predict the same rows of kernels that neither has seen, so each kernel is its own
control: what makes a kernel hard is hard for both. Differences are second less first throughout:
below zero the second model is better.

Rows of a kernel resemble each other: what varies is which kernels there are. So whole kernels are
drawn with replacement, and the mean over the rows of those drawn is taken again and again. The
interval is BCa (bias-corrected and accelerated; Efron, "Better bootstrap confidence intervals",
Journal of the American Statistical Association 82, 1987): differences of errors are skewed, since
few kernels carry most of them, and plain quantiles would then miss the truth more often on one
side than on the other.
"""

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from kernelcast.models.attribution import Attribution
from kernelcast.models.validation.report import (
    ErrorSummary,
    ValidationReport,
    summarise_errors,
)
from kernelcast.models.validation.running import mean_of, split_classes
from kernelcast.models.versioned_files import read_document
from kernelcast.records.errors import InputError
from kernelcast.records.frames import make_frame
from kernelcast.records.training_table import Numbers

# Drawn at once: memory stays small where there are thousands of clusters.
_BLOCK = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How to resample."""

    resamples: int = 10_000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1 or not 0 < self.confidence < 1:
            msg = (
                f"bootstrap: {self.resamples} resamples and confidence {self.confidence}; give at "
                "least 1, and a share between 0 and 1 such as 0.95"
            )
            raise InputError(msg)


def find_interval(
    values: Numbers, clusters: npt.NDArray[np.intp], plan: Bootstrap
) -> tuple[float, float] | None:
    """Give the interval of the mean over rows."""
    counts = np.bincount(clusters).astype(np.float64)
    if len(counts) < 2:
        return None
    sums: Numbers = np.bincount(clusters, weights=values).astype(np.float64)
    found = _bootstrap(sums, counts, plan, "BCa")
    if not np.isfinite(found).all():  # bias and skew cannot be told, as where all are alike
        found = _bootstrap(sums, counts, plan, "percentile")
    return found


def _bootstrap(sums: Numbers, counts: Numbers, plan: Bootstrap, method: str) -> tuple[float, float]:
    from scipy.stats import DegenerateDataWarning, bootstrap  # half a second to import

    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", DegenerateDataWarning)
        found = bootstrap(
            (sums, counts),
            lambda some, sizes, axis: some.sum(axis=axis) / sizes.sum(axis=axis),
            n_resamples=plan.resamples, batch=_BLOCK, vectorized=True, paired=True,
            confidence_level=plan.confidence, method=method, rng=np.random.default_rng(plan.seed),
        ).confidence_interval  # fmt: skip
    return float(found.low), float(found.high)


# Splits whose groups are drawn as a whole, in the place of kernels.
_WHOLE = frozenset({"family", "application"})
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedKernel:
    """One kernel, predicted by both."""

    kernel: str
    rows: int
    """Rows that both models answered."""
    first_error: float
    second_error: float
    """Mean errors |predicted - measured| / measured."""
    difference: float
    noise: float | None
    """Mean noise of the kernel's measured times, the device's where its own is not known."""
    winner: str | None
    """The model with the smaller error; None where they differ by no more than the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedClass:
    """Groups that the linear model predicts about equally well (the paper's Table 3)."""

    low: float
    high: float | None
    """Linear model's mean error of the groups; no upper end where it is None."""
    groups: int
    first_error: float | None
    second_error: float | None
    """Means over the groups' mean errors; None without groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceComparison:
    """Two models on one device."""

    device: str
    rows: int
    """Rows that both models answered; all that follows is about these."""
    unpaired: int
    """Rows that one of them, or none, answered."""
    first_errors: ErrorSummary | None
    second_errors: ErrorSummary | None
    difference: float | None
    low: float | None
    high: float | None
    """Ends of its interval; None with fewer than two kernels."""
    noise: float | None
    classes: tuple[ComparedClass, ...]
    """0-5 %, 5-10 % and beyond."""
    kernels: tuple[ComparedKernel, ...]
    """Where the second model is most ahead first, where the first is last."""

    def count_wins(self, model: str | None) -> int:
        """Count the kernels that a model wins; None counts those that none does."""
        return sum(one.winner == model for one in self.kernels)

    def list_wins(self, model: str, most: int = 5) -> list[ComparedKernel]:
        """Give the kernels that a model wins, where it is most ahead first."""
        won = [one for one in self.kernels if one.winner == model]
        return sorted(won, key=lambda one: -abs(one.difference))[:most]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedError:
    """What pushed a learned model on a kernel, told by a fit without the kernel's group."""

    device: str
    kernel: str
    error: float
    reference_error: float
    """The error of the time that it corrects, the linear model's."""
    needed: float
    """Mean of measured over that time, less 1: the correction that would have been right."""
    attribution: Attribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two models on every device."""

    first: str
    second: str
    split: str
    resampled: str
    """What the bootstrap draws as a whole: ``kernel``, ``family`` or ``application``."""
    method: str
    resamples: int
    confidence: float
    seed: int
    schema_id: str
    data_digest: str
    refused: Mapping[str, str]
    """Why a model could not be trained, by its name and device, and why devices are left out."""
    devices: tuple[DeviceComparison, ...]
    explained: tuple[ExplainedError, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Give a row per device and kernel, with the fields of `ComparedKernel`."""
        return make_frame(
            {"device": device.device, **asdict(kernel)}
            for device in self.devices
            for kernel in device.kernels
        )


def compare_validated(
    report: ValidationReport,
    first: str,
    second: str,
    *,
    noise: Mapping[str, float] | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two models of a validation on the rows that both answered."""
    plan = Bootstrap(resamples=resamples, confidence=confidence, seed=seed)
    if first == second:
        msg = f"comparison: {first} twice; name two different models"
        raise InputError(msg)
    rows = _pair(report, first, second, noise or {})
    others = {*report.models} - {first, second}
    return Comparison(
        first=first,
        second=second,
        split=report.split,
        resampled=report.split if report.split in _WHOLE else "kernel",
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
            _compare_device(report, (first, second), str(device), own, plan)
            for device, own in rows.groupby("device")
        ),
    )


def _pair(
    report: ValidationReport, first: str, second: str, noise: Mapping[str, float]
) -> pd.DataFrame:
    """Give launches with both models' errors, NaN where one had no answer, and their noise."""
    rows = report.to_frame()
    for name in (first, second):
        if name not in report.models:
            msg = f"report: no model {name}; there are {', '.join(report.models)}"
            raise InputError(msg)
    paired = rows[rows["model"] == first].reset_index(drop=True)
    return paired.assign(
        first=paired["error"],
        second=rows.loc[rows["model"] == second, "error"].to_numpy(),
        noise=[noise.get(key, np.nan) for key in paired["key"]],
    )


def _compare_device(
    report: ValidationReport,
    names: tuple[str, str],
    device: str,
    rows: pd.DataFrame,
    plan: Bootstrap,
) -> DeviceComparison:
    paired = rows.dropna(subset=["first", "second"])
    difference = paired["second"] - paired["first"]
    units = paired["group" if report.split in _WHOLE else "kernel"]
    numbers = units.factorize(sort=True)[0].astype(np.intp)
    interval = find_interval(difference.to_numpy(), numbers, plan) if len(paired) else None
    low, high = interval or (None, None)
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
        rows=len(paired),
        unpaired=len(rows) - len(paired),
        first_errors=summarise_errors(paired["first"].to_numpy()),
        second_errors=summarise_errors(paired["second"].to_numpy()),
        difference=mean_of(difference),
        low=low,
        high=high,
        noise=usual,
        classes=_compare_classes(paired, linear),
        kernels=_compare_kernels(paired, names, usual),
    )


def _compare_kernels(
    paired: pd.DataFrame, names: tuple[str, str], usual: float | None
) -> tuple[ComparedKernel, ...]:
    kernels = paired.groupby("kernel").agg(
        rows=("first", "size"), first=("first", "mean"), second=("second", "mean"),
        noise=("noise", "mean"),
    )  # fmt: skip
    kernels["difference"] = kernels["second"] - kernels["first"]
    by_difference = kernels.sort_values("difference", kind="stable").reset_index()
    return tuple(
        ComparedKernel(
            kernel=one["kernel"],
            rows=one["rows"],
            first_error=one["first"],
            second_error=one["second"],
            difference=one["difference"],
            noise=(noise := usual if np.isnan(one["noise"]) else one["noise"]),
            winner=None
            if abs(one["difference"]) <= (noise or 0.0)
            else names[one["difference"] < 0],
        )
        for one in by_difference.to_dict("records")
    )


def _compare_classes(
    paired: pd.DataFrame, linear: Mapping[str, float]
) -> tuple[ComparedClass, ...]:
    """Average groups' mean errors, as the paper's Table 3 does."""
    groups = paired.groupby("group")[["first", "second"]].mean()
    groups["linear_error"] = [linear.get(str(one), np.nan) for one in groups.index]
    return tuple(
        ComparedClass(
            low=low, high=high, groups=len(some), first_error=mean_of(some["first"]),
            second_error=mean_of(some["second"]),
        )
        for (low, high), some in split_classes(groups)
    )  # fmt: skip


def comparison_to_json(comparison: Comparison) -> str:
    """Write a comparison; `comparison_from_json` is the inverse."""
    return json.dumps({"format": FORMAT, **asdict(comparison)}, allow_nan=False, indent=1)


def comparison_from_json(text: str) -> Comparison:
    """Read a comparison."""
    return read_document(Comparison, text, FORMAT, what="comparison")
