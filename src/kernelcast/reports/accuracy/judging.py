"""Models in use; validations and comparisons of jobs: read, paired, taken apart by group."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kernelcast.models.persistence import ModelRegistry
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
from kernelcast.predictor.answering.trained_models import find_shipped
from kernelcast.training.registry import choose_registry
from kernelcast.training.registry import list_models as list_versions

__all__ = [
    "ABLATION",
    "RIVALS",
    "AblatedGroup",
    "ComparedKernel",
    "Comparison",
    "DeviceComparison",
    "ExplainedError",
    "ModelRows",
    "UsedModel",
    "ValidationReport",
    "compare_validated",
    "find_ablation",
    "list_models",
    "list_used_models",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedModel:
    """A model that estimates may use."""

    name: str
    """``model/device``, or the model alone where it serves all devices."""
    version: str
    """The one in use."""
    is_shipped: bool
    """Whether it came with the package."""


def list_used_models(registry: str | None = None) -> tuple[UsedModel, ...]:
    """Give the models in use: those of the registry, then those shipped that it does not have."""
    found: dict[str, UsedModel] = {}
    for place, is_shipped in ((choose_registry(registry), False), (find_shipped(), True)):
        for one in list_versions(ModelRegistry(url=place)):
            if one.used is not None and one.name not in found:
                found[one.name] = UsedModel(name=one.name, version=one.used, is_shipped=is_shipped)
    return tuple(found.values())
