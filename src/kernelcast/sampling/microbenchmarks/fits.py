"""Reads cache levels off latencies over sizes: sums of steps, fitted robustly."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from kernelcast.records.device import Trait
from kernelcast.records.machine import CacheFacts
from kernelcast.sampling.microbenchmarks.bench import LEAST_SPREAD, make_trait

Floats: TypeAlias = NDArray[np.float64]

# Bends of a step with its sharpness, whether gradual or not: see `_Steps`.
_SHARP = ((3.0, False), (5.0, False), (9.0, False), (17.0, False))
_GRADUAL = ((3.0, True), (4.0, True), (6.0, True))
_EQUATION_6 = ((1.0, False), (1.4, False), (2.0, False))


def fit_levels(
    sizes_bytes: Floats, latencies_s: Floats, *, is_host: bool = False, origin: str = ""
) -> tuple[list[CacheFacts], Trait[float]]:
    """Find cache levels, nearest first, and the latency beyond them, by the Bayesian information
    criterion; a host's caches are nearly LRU, where with equation 6 1 MiB came out as 0.6 MiB."""
    used = find_undisturbed(latencies_s)
    sizes, values = sizes_bytes[used], latencies_s[used]
    count = max(2, round(16 * math.log2(sizes[-1] / sizes[0])))  # 16 candidates per octave
    capacities = np.geomspace(sizes[0], sizes[-2], count).tolist()

    def fit(kinds: Sequence[tuple[float, bool]]) -> tuple[float, _Steps, _Fit]:
        steps = _Steps(sizes, values, [(one, *kind) for one in capacities for kind in kinds])
        best = min(steps.find_fits(), key=steps.score)
        return steps.score(best), steps, best

    if is_host:
        _, steps, best = fit((*_SHARP, *_GRADUAL))
    else:
        # A gradual step can look like equation 6 at half its capacity: with the same right to
        # both, one in five planted curves came out at twice the size. A difference of 10 between
        # information criteria is strong evidence.
        plain, free = fit((*_EQUATION_6, *_SHARP)), fit((*_EQUATION_6, *_SHARP, *_GRADUAL))
        _, steps, best = free if free[0] < plain[0] - 10.0 else plain
    # Relative errors of the plateaus, from noise and the points that lie on each.
    noise = np.average(best.residuals**2, weights=best.weights**2)
    on_levels = np.count_nonzero(steps.shares[:, list(best.chosen)] > 0.5, axis=1)
    counts = np.bincount(on_levels, minlength=len(best.plateaus))
    errors = np.sqrt(noise / np.maximum(counts, 1))
    latencies: list[Trait[float]] = []
    for value, half in zip(best.plateaus.tolist(), (1.96 * errors).tolist(), strict=True):
        # The half width of its logarithm's interval, at most a factor of 100.
        factor = math.exp(min(max(half, math.log1p(LEAST_SPREAD)), math.log(100.0)))
        latencies.append(make_trait(value, origin, value / factor, value * factor))
    # A capacity is not known better than the sizes that were tried.
    spacing = math.exp(float(np.median(np.diff(np.log(sizes)))) / 2)
    levels = []
    for number, (index, latency_s) in enumerate(zip(best.chosen, latencies, strict=False), 1):
        size = float(steps.capacities[index])
        low, high = math.floor(size / spacing), math.ceil(size * spacing)
        size_bytes = make_trait(round(size), origin, low, high)
        levels.append(CacheFacts(name=f"L{number}", size_bytes=size_bytes, latency_s=latency_s))
    return levels, latencies[-1]


def find_undisturbed(latencies_s: Floats) -> NDArray[np.bool_]:
    """Find points of a latency that never falls as the array grows: disturbances only add time, so
    one 15 % above those of larger arrays was disturbed."""
    used = np.ones(len(latencies_s), dtype=np.bool_)
    later: list[float] = []
    for index in range(len(latencies_s) - 1, -1, -1):
        value = float(latencies_s[index])
        if later and value > 1.15 * float(np.median(later[-3:])):
            used[index] = False
        else:
            later.append(value)
    return used


class _Fit(NamedTuple):
    """Chosen steps, by their places in the grid, nearest first, fitted to relative errors."""

    chosen: tuple[int, ...]
    plateaus: Floats
    """Value of each level: base, after the first step, and so on; none is below the one before."""
    residuals: Floats
    weights: Floats
    """1 for a point that is believed, less for an outlier: square roots of Huber's weights."""


class _Steps:
    """A curve and all steps that may explain it: where accesses begin to miss a cache, in bytes,
    how sharply, and whether gradually."""

    def __init__(
        self, sizes: Floats, values: Floats, grid: Sequence[tuple[float, float, bool]]
    ) -> None:
        self.sizes, self.values = sizes, values
        self.capacities, sharpness, is_gradual = np.array(grid, dtype=np.float64).T
        self._is_sharp = sharpness != 1.0
        # The share of a random walk's accesses that miss, a column per step: by equation 6 of the
        # microbenchmarks paper for sharpness 1 (random replacement), n + 1 for n-way LRU; gradual
        # steps are logistic, of caches that are shared or whose pages fall by chance.
        ratios = self.capacities / sizes[:, None]
        sharp = np.clip(sharpness * (1.0 - ratios), 0.0, 1.0)
        self.shares = np.where(is_gradual != 0, 1.0 / (1.0 + ratios**sharpness), sharp)

    @cached_property
    def _noise(self) -> float:
        """Relative noise, from how points differ from the mean of their neighbours."""
        differences = 1 - (self.values[:-2] + self.values[2:]) / 2 / self.values[1:-1]
        return _robust_deviation(differences / math.sqrt(1.5))

    def fit(self, chosen: Iterable[int]) -> _Fit:
        """Fit base and rises with Huber's weights against outliers."""
        chosen = tuple(sorted(chosen, key=lambda index: self.capacities[index]))
        relative = self._columns(chosen) / self.values[:, None]
        weights = np.ones_like(self.values)
        for _ in range(6):
            heights, _ = nnls(relative * weights[:, None], weights)
            residuals = relative @ heights - 1.0
            ratios = np.abs(residuals) / (1.345 * _robust_deviation(residuals))
            weights = np.sqrt(1.0 / np.maximum(ratios, 1.0))
        return _Fit(chosen, np.cumsum(heights), residuals, weights)

    def find_fits(self) -> list[_Fit]:
        """Fit 0 to 4 steps: each time add the best one, then move all until nothing improves."""
        fits = [self.fit(())]
        while len(fits) <= 4:
            added = self._find_best(fits[-1].weights, fits[-1].chosen)
            if added is None:
                break
            fit, before = self.fit((*fits[-1].chosen, added)), None
            for _ in range(12):
                if fit.chosen == before:
                    break
                before = fit.chosen
                for place in range(len(before)):
                    others = fit.chosen[:place] + fit.chosen[place + 1 :]
                    found = self._find_best(fit.weights, others)
                    if found is not None:
                        fit = self.fit((*others, found))
            # No known cache is less than 1.5 times as slow as the next nearer one: smaller steps
            # are translation buffers, page colours and neighbours.
            is_high = np.all(fit.plateaus[1:] >= 1.5 * fit.plateaus[:-1])
            risen = np.count_nonzero(self.shares[:, list(fit.chosen)] > 1 / 3, axis=0)
            if not is_high or np.any(risen < 2):
                break
            fits.append(fit)
        return fits

    def score(self, fit: _Fit) -> float:
        """Compute the Bayesian information criterion with Huber's loss; a step has 3 parameters."""
        squares, most = (fit.residuals / self._noise) ** 2, 1.345**2
        huber = np.where(squares <= most, squares, 2 * np.sqrt(most * squares) - most)
        return float(np.sum(huber)) + 3 * len(fit.chosen) * math.log(len(squares))

    def _columns(self, chosen: Sequence[int]) -> Floats:
        return np.column_stack([np.ones_like(self.sizes), self.shares[:, list(chosen)]])

    def _find_best(self, weights: Floats, others: Sequence[int]) -> int | None:
        """Find the step that explains most beside the others, far enough from them."""
        scale = weights / self.values
        basis = np.linalg.qr(self._columns(others) * scale[:, None])[0]
        target = weights - basis @ (basis.T @ weights)
        shares = self.shares * scale[:, None]
        shares -= basis @ (basis.T @ shares)
        squares = np.einsum("ij,ij->j", shares, shares)
        gains = np.maximum(target @ shares, 0.0) ** 2 / np.maximum(squares, 1e-9)
        gains[squares < 1e-9] = 0.0
        for index in others:  # no known cache is less than three times the next nearer one
            distances = np.abs(np.log(self.capacities / self.capacities[index]))
            gains[distances < math.log(3.0)] = 0.0
        if not np.any(gains > 0):
            return None
        # Equation 6 unless another sharpness explains clearly more.
        return int(np.argmax(gains - self._is_sharp * 6.0 * self._noise**2))


def _robust_deviation(residuals: Floats) -> float:
    return max(1.4826 * float(np.median(np.abs(residuals))), LEAST_SPREAD)
