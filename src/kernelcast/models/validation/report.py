"""What a validation found, as records that survive JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcast.models.versioned_files import read_document, write_document
from kernelcast.records.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_HEADER = {"format": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Errors |predicted - measured| / measured over rows."""

    rows: int
    mean: float
    median: float
    p90: float
    worst: float
    """Arithmetic mean, as in the paper, and quantiles."""


def summarise_errors(errors: npt.NDArray[np.float64]) -> ErrorSummary | None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScore:
    """Groups that the linear model predicts about equally well (the paper's Table 3)."""

    low: float
    high: float | None
    """Linear model's mean error of the groups; no upper end where it is None."""
    groups: int
    linear_error: float | None
    error: float | None
    """Mean over the groups' mean errors; None without groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    group: str
    rows: int
    error: float
    linear_error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceScore:
    model: str
    device: str
    errors: ErrorSummary | None
    unanswered: int
    classes: tuple[ClassScore, ...]
    """0-5 %, 5-10 % and beyond."""
    groups: tuple[GroupScore, ...]
    """Every group, worst first."""
    noise: float | None
    """Mean noise of the measurements: half the 10-90 % spread over the median."""
    coverage: float | None
    half_width: float | None
    """Median of the factor between the middle and the ends of intervals, less 1."""
    in_domain: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingScore:
    """How well one model tells which device is fastest."""

    model: str
    problems: int
    """Launches measured on several devices."""
    differing: int
    """Those in which the fastest device leads by more than 10 %."""
    top_1: float | None
    """Share of `differing` in which the model names the fastest device."""
    mean_regret: float | None
    worst_regret: float | None
    """Time on the device that the model names over that on the fastest, over all problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRows:
    """One model's answers, in the order of the rows; None where it had none."""

    model: str
    seconds: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    in_domain: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedRows:
    """What was predicted, row by row, for plots and comparisons."""

    keys: tuple[str, ...]
    groups: tuple[str, ...]
    kernels: tuple[str, ...]
    devices: tuple[str, ...]
    """Labels; groups are those held out."""
    measured_s: tuple[float, ...]
    models: tuple[ModelRows, ...]

    def to_frame(self) -> "pd.DataFrame":
        """Return a row per model and launch."""
        import pandas as pd

        launches = pd.DataFrame({
            "key": self.keys, "group": self.groups, "kernel": self.kernels, "device": self.devices,
            "measured_s": np.array(self.measured_s, dtype=np.float64),
        })  # fmt: skip
        parts = [
            launches.assign(
                model=one.model,
                predicted_s=np.array(one.seconds, dtype=np.float64),
                low_s=np.array(one.low, dtype=np.float64),
                high_s=np.array(one.high, dtype=np.float64),
                in_domain=np.array(one.in_domain, dtype=np.bool_),
            )
            for one in self.models
        ]
        found = pd.concat(parts, ignore_index=True)
        error = (found["predicted_s"] - found["measured_s"]).abs() / found["measured_s"]
        return found.assign(error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    split: str
    coverage: float
    schema_id: str
    data_digest: str
    versions: Mapping[str, str]
    scores: tuple[DeviceScore, ...]
    rankings: tuple[RankingScore, ...]
    refused: Mapping[str, str]
    """Why a model could not be trained, by its name and device."""
    rows: ValidatedRows

    @property
    def devices(self) -> list[str]:
        """Ids of the devices that models were scored on, sorted."""
        return sorted({one.device for one in self.scores})

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the order they were asked for."""
        return tuple(one.model for one in self.rows.models)

    def score(self, model: str, device: str) -> DeviceScore:
        for one in self.scores:
            if (one.model, one.device) == (model, device):
                return one
        known = ", ".join(sorted({f"{one.model} on {one.device}" for one in self.scores}))
        raise InputError(f"report: no score of {model} on {device}; there are {known}")


def summarise_report(report: ValidationReport) -> list[dict[str, Any]]:
    """Return an object per model and device of a report, without its rows."""
    nothing = dict.fromkeys(("mean", "median", "p90", "worst"))
    return [
        {
            "split": report.split,
            "model": one.model,
            "device": one.device,
            "rows": one.errors.rows if one.errors else 0,
            "unanswered": one.unanswered,
            **({name: getattr(one.errors, name) for name in nothing} if one.errors else nothing),
            "noise": one.noise,
            "coverage_wanted": report.coverage,
            "coverage": one.coverage,
            "half_width": one.half_width,
        }
        for one in report.scores
    ]


def report_to_json(report: ValidationReport) -> str:
    """Write a report; `report_from_json` is the inverse."""
    return write_document(report, _HEADER)


def report_from_json(text: str) -> ValidationReport:
    return read_document(ValidationReport, text, _HEADER, what="report")
