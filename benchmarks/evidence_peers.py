"""What StarPU's performance models would say of a size, from a kernel's other sizes.

For comparison only. ``regression`` is its history-based ``a n^b``, ``nl_regression`` its
``a n^b + c`` (the constant by bisection, as StarPU does), ``mlr`` its multiple linear regression;
n is the number of work-items, and the terms of ``mlr`` are work-items, instructions and bytes.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelcast.models.evidence.sizes import KnownSize

_STEPS = 60
_FARTHEST = 20.0
Peer = Callable[[Sequence[KnownSize], KnownSize], float | None]
"""Gives ln seconds of a size from known ones; None where it has no answer."""


def regress(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Fit ln t = ln a + b ln n."""
    work = np.array([one.log_work[0] for one in known])
    if len(known) < 2 or np.ptp(work) == 0:
        return None
    slope, level = np.polyfit(work, [one.log_seconds for one in known], 1)
    return float(np.clip(level + slope * asked.log_work[0], -_FARTHEST, _FARTHEST))


def regress_with_constant(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Fit t = a n^b + c, c between nothing and the shortest time by the correlation of logs."""
    work = np.array([one.log_work[0] for one in known])
    seconds = np.exp([one.log_seconds for one in known])
    if len(known) < 3 or np.ptp(work) == 0:
        return None
    low, high = 0.0, float(seconds.min())
    for _ in range(_STEPS):
        step = (high - low) / 3
        left, right = low + step, high - step
        if _correlate(work, seconds - left) > _correlate(work, seconds - right):
            high = right
        else:
            low = left
    constant = min(low, 0.999 * float(seconds.min()))
    slope, level = np.polyfit(work, np.log(seconds - constant), 1)
    power = math.exp(float(np.clip(level + slope * asked.log_work[0], -_FARTHEST, _FARTHEST)))
    return math.log(power + constant)


def regress_linearly(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Fit t = c + sum of a_i w_i by least squares over three measures of work."""
    columns = np.exp(np.nan_to_num([one.log_work[:3] for one in (*known, asked)]))
    columns /= columns.mean(axis=0)
    terms = np.column_stack([np.ones(len(columns)), columns])
    seconds = np.exp([one.log_seconds for one in known])
    found = np.linalg.lstsq(terms[:-1], seconds, rcond=1e-6)[0]
    told = float(terms[-1] @ found)
    return math.log(told) if told > 0 else None


def scale_by_instructions(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Scale by counted instructions, by work-items where they are not known, and take the median.

    It is the line "other observed sizes, scaled" of the table that this work began with.
    """
    measure = 1 if all(math.isfinite(one.log_work[1]) for one in (*known, asked)) else 0
    rates = [one.log_seconds - one.log_work[measure] for one in known]
    return float(np.median(rates)) + asked.log_work[measure]


def scale_by_items(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Scale by work-items and take the median."""
    rates = [one.log_seconds - one.log_work[0] for one in known]
    return float(np.median(rates)) + asked.log_work[0]


def _correlate(work: np.ndarray, seconds: np.ndarray) -> float:
    return float(np.corrcoef(work, np.log(np.maximum(seconds, 1e-12)))[0, 1])


PEERS: Mapping[str, Peer] = {
    "median, by instructions": scale_by_instructions,
    "median, by work-items": scale_by_items,
    "StarPU: a n^b": regress,
    "StarPU: a n^b + c": regress_with_constant,
    "StarPU: multiple linear": regress_linearly,
}
