"""How a learned correction moves what samples say, or why there is none."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelcast.models.columns import FIGURES, make_columns
from kernelcast.models.evidence.fusion import FusedEstimate
from kernelcast.models.evidence.model import EvidenceModel, list_answer_values
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.tasks import LaunchRow
from kernelcast.records.arguments import ScalarArgument
from kernelcast.records.explanation import Influence, ModelFacts
from kernelcast.records.problem import Problem

_NO_MODEL = (
    "no correction of this device's samples is known to gain (`kernelcast train` looks for one)"
)
# Sizes, and whole numbers among the arguments, differ by this factor at most.
_NEAR = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a learned correction says of a launch."""

    log_factor: float | None = None
    """Natural logarithm of the factor on what fused samples say; None where nothing was asked."""
    distance: float = 0.0
    """Of the launch to those that were learned from; above 1 is unlike them."""
    facts: ModelFacts | None = None
    influences: tuple[Influence, ...] = ()
    failure: str = ""
    absence: str = _NO_MODEL
    """Why there is no correction although nothing went wrong."""

    @property
    def in_domain(self) -> bool:
        return self.distance <= 1.0


def ask(model: EvidenceModel, facts: ModelFacts, row: LaunchRow, said: FusedEstimate) -> Learned:
    values = row.vector.as_dict() | {name: row.columns[name] for name in FIGURES}
    try:
        log_factor, distance = model.find_correction(said, values)
    except (ValueError, ArithmeticError, IndexError) as error:
        return Learned(facts=facts, failure=f"the model failed on this launch: {error!r}")
    return Learned(
        log_factor=log_factor,
        distance=distance,
        facts=facts,
        influences=_find_influences(model, values, said),
    )


def _find_influences(
    model: EvidenceModel, values: Mapping[str, float], said: FusedEstimate, most: int = 5
) -> tuple[Influence, ...]:
    """Find the features without which the correction would differ most: each in turn is absent."""
    if model.correction is None:
        return ()
    told = list_answer_values(said, values)
    names = [name for name in values if name not in FIGURES]
    repeated: dict[str, Any] = {name: np.full(len(names) + 1, one) for name, one in told.items()}
    for place, name in enumerate(names, start=1):
        repeated[name][place] = np.nan
    corrections, _ = model.correction.predict(make_columns(repeated))
    effects = corrections[0] - corrections[1:]
    order = np.argsort(-np.abs(effects), kind="stable")[:most]
    # Smaller changes are rounding, or a gate that lets nothing through.
    return tuple(
        Influence(feature=names[place], factor=math.exp(effects[place]))
        for place in order
        if abs(effects[place]) > 1e-4
    )


@dataclass(frozen=True, slots=True)
class KnownCorrection:
    """What a model said of a live launch, which serves sizes near by: of half the size it differs
    by 0.017 on the logarithmic scale (12 kernels), and features take 5 to 20 ms to find."""

    model: EvidenceModel
    sizes: tuple[float, ...]
    learned: Learned

    def serves(self, request: LaunchRequest, model: EvidenceModel) -> bool:
        sizes = list_sizes(request.problem)
        if not request.is_live or request.policy.models or model is not self.model:
            return False
        return (
            sizes is not None
            and len(sizes) == len(self.sizes)
            and all(
                a == b or (a * b > 0 and 1 / _NEAR <= a / b <= _NEAR)
                for a, b in zip(sizes, self.sizes, strict=True)
            )
        )


def list_sizes(problem: Problem) -> tuple[float, ...] | None:
    """List what a launch's work depends on; None where the device chooses the local size."""
    if problem.ndrange.local_size is None:
        return None
    scalars = [
        float(value)
        for one in problem.arguments
        if isinstance(one, ScalarArgument)
        for value in one.values
        if isinstance(value, int)  # numbers with a point decide no work
    ]
    return (float(problem.ndrange.work_item_count), *scalars)
