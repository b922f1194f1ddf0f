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

__all__ = [
    "ABLATION",
    "RIVALS",
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


def read_report(content: Mapping[str, Any]) -> ValidationReport:
    """Read the result of a validation."""
    return report_from_json(json.dumps(content))


def read_comparison(content: Mapping[str, Any]) -> Comparison:
    """Read the result of a comparison."""
    return comparison_from_json(json.dumps(content))


def find_ablation(report: ValidationReport, device: str) -> list[tuple[str, DeviceComparison]]:
    """Compare the hybrid without each feature group that was left out with the whole one."""
    if HYBRID not in report.models:
        return []
    found = [
        (name.removeprefix(_WITHOUT), one)
        for name in report.models
        if name.startswith(_WITHOUT)
        for one in compare_validated(report, HYBRID, name).devices
        if one.device == device and one.difference is not None
    ]
    return sorted(found, key=lambda one: -(one[1].difference or 0.0))


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
        for one in ModelRegistry(url=place).list_models():
            if one.used is not None and one.name not in found:
                found[one.name] = UsedModel(name=one.name, version=one.used, is_shipped=is_shipped)
    return tuple(found.values())
