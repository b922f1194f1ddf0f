"""Errors of a validation, for the simulation."""

from pathlib import Path

from kernelcast.launches.problem_file.parts import read_text
from kernelcast.models.validation.report import report_from_json
from kernelcast.records.errors import InputError
from kernelcast.scheduling.cluster.errors import ErrorModel, measured_errors


def read_validation(path: Path, *, model: str | None = None) -> list[ErrorModel]:
    """Read the ratios of predicted to measured time of a validation's models."""
    rows = report_from_json(read_text(path, "validation", InputError)).rows
    names = [one.model for one in rows.models]
    if model is not None and model not in names:
        msg = f"{path}: has no model {model}; there are {', '.join(names)}"
        raise InputError(msg)
    return [
        measured_errors(
            one.model,
            [
                predicted / measured
                for predicted, measured in zip(one.seconds, rows.measured_s, strict=True)
                if predicted is not None
            ],
        )
        for one in rows.models
        if model in {None, one.model}
    ]
