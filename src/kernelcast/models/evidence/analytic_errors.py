"""How far the analytic model is off on CPUs: its errors on the corpus, which come with the package.

Nothing that is known of a launch tells how large its error is, so that an interval depends on the
runtime only. Runtimes that nothing was measured on have the intervals of all together.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np

from kernelcast.models.conformal import Calibration, calibrate
from kernelcast.models.evidence.model import (
    SIGNS_OF_DIFFICULTY,
    USUAL_COVERAGE,
    EvidenceModel,
    PlainVariance,
    find_normal_quantile,
)
from kernelcast.models.evidence.piece import Kind
from kernelcast.models.regression import number_groups
from kernelcast.models.versioned_files import from_plain, to_plain
from kernelcast.records.training_table import Numbers

ANY = "any"
"""Stands for runtimes that nothing was measured on."""
FILE = "analytic_errors.json"
"""Lies beside this module."""


def calibrate_errors(errors: Numbers, kernels: Sequence[str]) -> Calibration:
    """Make intervals of errors that are known; each kernel weighs the same."""
    groups = number_groups(np.array(kernels, dtype=np.object_))
    no_signs = np.zeros((len(errors), SIGNS_OF_DIFFICULTY))
    return calibrate(errors, no_signs, np.ones(len(errors)), groups).thin()


def find_half_width(errors: Calibration, coverage: float) -> float:
    """Give the logarithm of the factor between an analytic time and the ends of its interval."""
    return errors.half_width_alone((0.0,) * SIGNS_OF_DIFFICULTY, coverage, 1.0)


@lru_cache(maxsize=64)
def know_analytic(model: EvidenceModel, runtime: str) -> EvidenceModel:
    """Give an evidence model that knows how far analytic times are off on a runtime."""
    shipped = load_shipped()
    errors = shipped.get(runtime) or shipped[ANY]
    width = find_half_width(errors, USUAL_COVERAGE)
    deviation = width / find_normal_quantile(USUAL_COVERAGE)
    return replace(
        model,
        plain={**model.plain, Kind.ANALYTIC: PlainVariance(bias=0.0, variance=deviation**2)},
        intervals={**model.intervals, Kind.ANALYTIC.value: errors},
    )


@cache
def load_shipped() -> Mapping[str, Calibration]:
    """Load what comes with the package, by runtime."""
    file = files("kernelcast.models.evidence") / FILE
    return errors_from_json(file.read_text(encoding="utf-8"))


def errors_to_json(errors: Mapping[str, Calibration]) -> str:
    """Write errors by runtime."""
    return json.dumps({
        name: {key: np.asarray(one).round(5).tolist() for key, one in to_plain(some).items()}
        for name, some in errors.items()
    })  # fmt: skip


def errors_from_json(text: str) -> dict[str, Calibration]:
    """Read errors; the inverse of `errors_to_json`."""
    return {name: from_plain(Calibration, one) for name, one in json.loads(text).items()}
