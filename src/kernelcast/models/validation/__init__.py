"""How good models are on launches whose groups they have not seen."""

from kernelcast.models.validation.report import (
    ClassScore,
    DeviceScore,
    ErrorSummary,
    GroupScore,
    ModelRows,
    RankingScore,
    ValidatedRows,
    ValidationReport,
    report_from_json,
    report_to_json,
    summarise_report,
)
from kernelcast.models.validation.running import Candidate, ValidationPlan, validate

__all__ = [
    "Candidate",
    "ClassScore",
    "DeviceScore",
    "ErrorSummary",
    "GroupScore",
    "ModelRows",
    "RankingScore",
    "ValidatedRows",
    "ValidationPlan",
    "ValidationReport",
    "report_from_json",
    "report_to_json",
    "summarise_report",
    "validate",
]
