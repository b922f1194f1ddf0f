"""Validations and comparisons that jobs have made: read again, paired, taken apart by group."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kernelcast.models.time_models import ABLATION, HYBRID, RIVALS, list_models
from kernelcast.models.validation.comparison import (
    ComparedKernel,
    Comparison,
    DeviceComparison,
    ExplainedError,
    compare_validated,
    comparison_from_json,
)
from kernelcast.models.validation.report import ModelRows, ValidationReport, report_from_json

__all__ = [
    "ABLATION",
    "RIVALS",
    "AblatedGroup",
    "ComparedKernel",
    "Comparison",
    "DeviceComparison",
    "ExplainedError",
    "ModelRows",
    "ValidationReport",
    "compare_validated",
    "find_ablation",
    "list_models",
    "read_comparison",
    "read_report",
]
_WITHOUT: Final = f"{HYBRID}_without_"


@dataclass(frozen=True, slots=True, kw_only=True)
class AblatedGroup:
    """What the hybrid loses without a feature group, on one device."""

    device: str
    """Its id."""
    group: str
    """See `kernelcast.records.feature_vector.FeatureGroup`."""
    rows: int
    """Rows that both answered."""
    error: float
    error_without: float
    """Mean errors with and without the group."""
    difference: float
    """Without less with: above zero the group helps."""
    low: float | None
    high: float | None
    """Ends of its interval; None with fewer than two kernels."""


def read_report(content: Mapping[str, Any]) -> ValidationReport:
    """Read the result of a validation."""
    return report_from_json(json.dumps(content))


def read_comparison(content: Mapping[str, Any]) -> Comparison:
    """Read the result of a comparison."""
    return comparison_from_json(json.dumps(content))


def find_ablation(report: ValidationReport) -> tuple[AblatedGroup, ...]:
    """Find what the hybrid loses without each feature group that a validation left out."""
    names = report.models
    if HYBRID not in names:
        return ()
    found = []
    for name in names:
        if name.startswith(_WITHOUT):
            group = name.removeprefix(_WITHOUT)
            found += [
                ablated
                for one in compare_validated(report, HYBRID, name).devices
                if (ablated := _describe(one, group)) is not None
            ]
    return tuple(sorted(found, key=lambda one: (one.device, -one.difference)))


def _describe(one: DeviceComparison, group: str) -> AblatedGroup | None:
    if one.first_errors is None or one.second_errors is None or one.difference is None:
        return None
    return AblatedGroup(
        device=one.device,
        group=group,
        rows=one.rows,
        error=one.first_errors.mean,
        error_without=one.second_errors.mean,
        difference=one.difference,
        low=one.low,
        high=one.high,
    )
