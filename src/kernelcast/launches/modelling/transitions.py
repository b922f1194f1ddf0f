"""Finds the size from which on a cache holds too little: where a volume's curve climbs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_LEAST_CLIMB = 1.15
_BEGINS, _MIDDLE = 0.1, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A climb from few bytes per update to many."""

    begins: float
    middle: float
    """Sizes at which a tenth and half of the climb is done."""
    low: float
    high: float
    """Volumes before and after."""


def find_transition(sizes: Sequence[float], volumes: Sequence[float]) -> Transition | None:
    """Find where a volume climbs as sizes grow.

    Parameters
    ----------
    sizes : sequence of float
        Ascending.
    volumes : sequence of float
        Bytes per update at each size.

    Returns
    -------
    Transition or None
        None if the volume grows by less than 15 %.

    Examples
    --------
    >>> found = find_transition([100, 200, 300, 400], [8, 8, 40, 40])
    >>> found.begins, found.middle
    (210.0, 250.0)
    """
    low = min(volumes)
    start = max(index for index, volume in enumerate(volumes) if volume == low)
    high = max(volumes[start:])
    if low <= 0 or high < _LEAST_CLIMB * low:
        return None
    rest = list(zip(sizes[start:], volumes[start:], strict=True))
    return Transition(
        begins=_cross(rest, low + _BEGINS * (high - low)),
        middle=_cross(rest, low + _MIDDLE * (high - low)),
        low=low,
        high=high,
    )


def _cross(points: Sequence[tuple[float, float]], level: float) -> float:
    """Give the first size at which the curve, drawn in straight lines, reaches a level."""
    for (before, lower), (after, upper) in pairwise(points):
        if upper >= level > lower:
            return before + (after - before) * (level - lower) / (upper - lower)
    return points[0][0]
