"""How much of the redundant accesses a cache still holds, by its oversubscription."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError

DEFAULT = "kernelcast"
FUNCTIONS = ("l1_load", "l2_overlap", "l2_store")
FloatArray = npt.NDArray[np.float64]
MISS, HIT = "miss", "hit"
_LEAST_POINTS = 4
_LARGEST_EXPONENT = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRate:
    """Hit rate of redundant accesses over oversubscription, the sigmoid of the paper's section 4.5.

    ``miss`` bends slowly towards a share `a` that misses, as reuse at many distances does; ``hit``
    keeps nearly all and then loses all at once, as data that is used again at one distance does.
    """

    a: float
    b: float
    c: float
    """Share that misses (hits) in the limit; offset; steepness."""
    form: str = MISS
    deviation: float = 0.0
    """Standard deviation of measured hit rates around the function; 0 if not known."""

    def __post_init__(self) -> None:
        if self.form not in {MISS, HIT}:
            raise InputError(f"form {self.form!r} is not known; give {MISS!r} or {HIT!r}")

    def at(self, oversubscription: float) -> float:
        if self.form == MISS:
            return 1.0 - self.a * math.exp(-self.b * math.exp(-self.c * oversubscription))
        # Beyond this exponent nothing hits, and a larger one would overflow.
        exponent = min(self.c * oversubscription, _LARGEST_EXPONENT)
        return self.a * math.exp(-self.b * math.exp(exponent))


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRates:
    name: str
    provenance: str
    l1_load: HitRate
    """Redundant loads in L1, by the reused lines of a work-group over the capacity."""
    l2_overlap: HitRate
    """What was loaded before, in L2, by what is touched since."""
    l2_store: HitRate
    """Writes to the rest of a sector in L2, by what one work-group per compute unit touches."""
    by_instruction: bool = False
    """Whether `l1_load` is that of all redundant loads of a work-group, as in the paper, not only
    of those that another warp has made."""
    l2_layer: HitRate | None = None
    """As `l2_overlap`, of layers of work-groups; None takes that."""
    l2_reload: HitRate | None = None
    """What L1 has lost, in L2, by what a wave touches, as in the paper; None takes `l2_overlap`, by
    what is touched meanwhile."""


@lru_cache(maxsize=1)
def read_hit_rates() -> Mapping[str, HitRates]:
    text = (resources.files(__package__) / "hit_rates.json").read_text(encoding="utf-8")
    found = {}
    for name, parts in json.loads(text).items():
        own: dict[str, Any] = {
            key: HitRate(**one) if isinstance(one, dict) else one for key, one in parts.items()
        }
        found[name] = HitRates(name=name, **own)
    return found


def find_hit_rates(name: str = DEFAULT) -> HitRates:
    known = read_hit_rates()
    if name not in known:
        msg = f"no hit rates are called {name!r}; those that are: {', '.join(sorted(known))}"
        raise InputError(msg)
    return known[name]


def fit_hit_rate(
    oversubscriptions: Sequence[float],
    hit_rates: Sequence[float],
    *,
    form: str = MISS,
) -> tuple[HitRate, dict[str, float]]:
    """Fit the constants of a hit rate to measurements, and tell their standard errors, infinite
    where the measurements do not tell."""
    x, hits = np.asarray(oversubscriptions, float), np.asarray(hit_rates, float)
    if x.size != hits.size or x.size < _LEAST_POINTS or not np.isfinite([x, hits]).all():
        raise InputError(
            f"{x.size} oversubscriptions and {hits.size} hit rates; a fit needs as many of one "
            f"as of the other, finite, at least {_LEAST_POINTS}"
        )
    # Takes a quarter of a second to load; estimates need none of it.
    from scipy.optimize import curve_fit

    sign = -1.0 if form == MISS else 1.0
    y = 1.0 - hits if form == MISS else hits
    # The offset spans orders of magnitude: its logarithm is fitted.
    bounds = [(math.log(1e-9), 1e-3, 1e-3), (math.log(1e6), 50.0, 1.0)]
    start = [sign * -5.0, 3.0, float(np.clip(y.max(), 0.05, 1.0))]

    def curve(over: FloatArray, log_b: float, c: float, a: float) -> FloatArray:
        exponent = np.minimum(log_b + sign * c * over, _LARGEST_EXPONENT)
        found: FloatArray = a * np.exp(-np.exp(exponent))
        return found

    try:
        best, covariance = curve_fit(curve, x, y, p0=start, bounds=bounds)
    except RuntimeError as error:
        msg = f"the points do not follow a sigmoid: {error}; give points on both sides of its step"
        raise InputError(msg) from error
    errors = np.sqrt(np.diag(covariance))
    offset = math.exp(best[0])
    rate = HitRate(
        a=float(best[2]),
        b=offset,
        c=float(best[1]),
        form=form,
        deviation=float(np.sqrt(np.mean((y - curve(x, *best)) ** 2))),
    )
    return rate, {
        "a": float(errors[2]), "b": float(offset * errors[0]), "c": float(errors[1])
    }  # fmt: skip
