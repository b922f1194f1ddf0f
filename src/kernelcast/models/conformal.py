"""Intervals that hold what they promise: conformal, multiplicative, calibrated on unseen groups.

A residual is ``log(measured / predicted)`` of a launch whose group the prediction has not seen.
Its score is the residual's size over a difficulty, which is learned from signs that are known
before the launch. The interval is ``predicted * exp(+-q * difficulty)`` with the scores' quantile
q. Rows of a group resemble each other, so each group weighs the same, and one more group stands for
the unseen one, as exchangeability of groups asks for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kernelcast.records.training_table import Numbers

# A difficulty differs from the usual one at most by this factor, before the domain widens it.
_LIMIT = math.log(4.0)
MOST_SCORES = 200
"""Scores of an interval that are kept in a file: quantiles of all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    centre: Numbers
    slopes: Numbers
    """Shape (signs,). Of the logarithms that the difficulty depends on."""
    level: float
    scores: Numbers
    """Shape (n,). Ascending."""
    shares: Numbers
    """Shape (n,). Summed weight up to each score, below 1: the rest stands for an unseen group."""

    def widen(self, signs: Numbers, domain_distance: Numbers) -> Numbers:
        """Return the size of residuals to expect; outside the domain it grows with the distance."""
        known = np.where(np.isfinite(signs), signs - self.centre, 0.0)
        usual: Numbers = np.exp(self.level + np.clip(known @ self.slopes, -_LIMIT, _LIMIT))
        usual *= np.maximum(domain_distance, 1.0)
        return usual

    def half_width(self, signs: Numbers, domain_distance: Numbers, coverage: float) -> Numbers:
        """Return the logarithm of the factor between prediction and ends of the interval."""
        place = int(self.shares.searchsorted(coverage - 1e-12))
        score = float(self.scores[min(place, len(self.scores) - 1)])
        # The exponential of 20 still is a number that can be multiplied.
        found: Numbers = np.minimum(score * self.widen(signs, domain_distance), 20.0)
        return found

    def half_width_alone(self, signs: Sequence[float], coverage: float, distance: float) -> float:
        return float(self.half_width(np.array([signs]), np.array([distance]), coverage)[0])

    def thin(self) -> "Calibration":
        """Keep no more than `MOST_SCORES` quantiles of the scores."""
        if len(self.scores) <= MOST_SCORES:
            return self
        wanted = np.linspace(0.0, self.shares[-1], MOST_SCORES)
        kept = np.unique(self.shares.searchsorted(wanted)).clip(max=len(self.scores) - 1)
        return replace(self, scores=self.scores[kept], shares=self.shares[kept])


def calibrate(
    residuals: Numbers, signs: Numbers, domain_distance: Numbers, groups: npt.NDArray[np.intp]
) -> Calibration:
    """Learn difficulty and scores from residuals out of fold."""
    sizes = np.bincount(groups)
    row_weights = 1.0 / (np.count_nonzero(sizes) + 1) / sizes[groups]
    # Fit the logarithm of residuals' sizes by ridge; signs never make a launch seem easier.
    # Residuals below 0.3 % are as good as none.
    logs = np.log(np.abs(residuals) + 0.003)
    shares = row_weights / row_weights.sum()
    level = float(shares @ logs)
    finite = np.isfinite(signs)
    known = np.where(finite, signs, 0.0)
    mass = shares @ finite
    centre = np.divide(shares @ known, mass, out=np.zeros(signs.shape[1]), where=mass > 0)
    moved = np.where(finite, signs - centre, 0.0)
    # Of a sign that never differs only rounding is left, which would tell processors apart.
    kept = np.flatnonzero(np.sqrt(shares @ moved**2) > 1e-9)
    slopes = np.zeros(signs.shape[1])
    while kept.size:
        part = moved[:, kept]
        normal = part.T @ (shares[:, None] * part)
        penalty = 0.1 * max(float(np.trace(normal)) / len(kept), 1e-12)
        found = np.linalg.solve(
            normal + penalty * np.eye(len(kept)), part.T @ (shares * (logs - level))
        )
        if (found >= 0).all():
            slopes[kept] = found
            break
        kept = kept[found > 0]
    rough = Calibration(
        centre=centre, slopes=slopes, level=level, scores=np.empty(0), shares=np.empty(0)
    )
    scores = np.abs(residuals) / rough.widen(signs, domain_distance)
    order = np.argsort(scores, kind="stable")
    return replace(rough, scores=scores[order], shares=np.cumsum(row_weights[order]))
