"""Explanations and methods as plain dictionaries; the keys are the program's public interface."""

import math
from collections.abc import Mapping
from typing import Final

from kernelcast.records.explanation import Explanation
from kernelcast.records.plain import to_plain

METHODS: Final = (
    "linear", "two_point", "pooled_rate", "analytic", "learned", "hybrid", "sizes", "history",
)  # fmt: skip
"""Keys that are always there; None where no such method has answered."""


def explanation_to_dict(explanation: Explanation) -> dict[str, object]:
    """Turn an explanation into plain values; times are in seconds, moments ISO 8601."""
    return {
        **to_plain(explanation, omit=("methods_seconds",)),
        "methods": list_methods(explanation.methods_s),
        "limiters": _keep_finite(explanation.limiters),
    }


def list_methods(estimates_s: Mapping[str, float]) -> dict[str, float | None]:
    """List every method's seconds; None for one that has not answered with a finite number."""
    return dict.fromkeys(METHODS) | _keep_finite(estimates_s)


def _keep_finite(times_s: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds for name, seconds in times_s.items() if math.isfinite(seconds)}
