"""Finds what the analytic CPU model errs by on stored observations."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.models.conformal import Calibration
from kernelcast.models.evidence.stored import ANY, calibrate_errors
from kernelcast.records.observation import Observation
from kernelcast.training.registry import name_runtime

CPU_MODEL = "cpu_model"
ESTIMATE = "analytic.estimate_s"

BEYOND_CORPUS = 2.0
"""How much farther off the model is on kernels that no rule of it was made for, whatever the
runtime: the rules were chosen on the corpus. Found and judged by
``benchmarks/static_estimates.py``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledRun:
    """A launch that was measured, with its analytic time."""

    observation: Observation
    error: float
    """Natural logarithm of the measured time over that of today's analytic model."""
    kernel: str
    device: str
    runtime: str


def choose_runs(observations: Iterable[Observation]) -> list[ModelledRun]:
    found = []
    for one in observations:
        analytic_s = 0.0 if one.features is None else one.features.as_dict().get(ESTIMATE, 0.0)
        if is_of_today(one) and analytic_s > 0:
            found.append(_read(one, analytic_s))
    return found


def is_of_today(one: Observation) -> bool:
    return one.versions.get(CPU_MODEL) == str(REVISION)


def _read(one: Observation, analytic_s: float) -> ModelledRun:
    device = one.launch.device.id
    return ModelledRun(
        observation=one,
        error=math.log(one.seconds / analytic_s),
        kernel=one.launch.kernel.label,
        device=device,
        runtime=name_runtime(device),
    )


def calibrate_runtimes(
    runs: Sequence[ModelledRun], beyond: float = BEYOND_CORPUS
) -> dict[str, Calibration]:
    """Make intervals of the analytic model's times by runtime, and those of `ANY`."""
    by_runtime: dict[str, list[ModelledRun]] = {ANY: [*runs]}
    for one in runs:
        by_runtime.setdefault(one.runtime, []).append(one)
    return {
        name: calibrate_errors(
            beyond * np.array([one.error for one in some]), [one.kernel for one in some]
        )
        for name, some in by_runtime.items()
    }
