"""What a feature is: a name, a meaning and a formula."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kernelcast.records.feature_vector import check_name

Source = TypeVar("Source")
Formula = Callable[[Source], float | None]


@dataclass(frozen=True, slots=True)
class Feature(Generic[Source]):
    """One feature."""

    name: str
    """``group.what_unit``."""
    meaning: str
    """For the reference, without a full stop."""
    compute: Formula[Source]
    """Gives its value, or None where it is not known."""
    table_1: str = ""
    """What the sampling paper's Table 1 calls it; empty if it is not there."""

    def __post_init__(self) -> None:
        check_name(self.name)


def compute_features(features: Iterable[Feature[Source]], source: Source) -> dict[str, float]:
    """Give the value of each feature that is known."""
    found = ((one.name, one.compute(source)) for one in features)
    return {name: float(value) for name, value in found if value is not None}


def divide(numerator: float, denominator: float) -> float | None:
    """Divide, or give None where there is nothing to divide by."""
    return numerator / denominator if denominator else None
