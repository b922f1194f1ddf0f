"""Cache levels from the latencies of a varying-size random walk."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernelcast.records.errors import InputError
from kernelcast.sampling.microbenchmarks.fits.intervals import Interval, make_relative_interval
from kernelcast.sampling.microbenchmarks.fits.steps import (
    NOISE_FLOOR,
    Floats,
    Step,
    StepFit,
    fit_heights,
    make_columns,
)

Booleans = NDArray[np.bool_]

_MOST_LEVELS = 4
# Whether gradual, and how steep.
_SHARP_KINDS = tuple((False, steepness) for steepness in (3.0, 5.0, 9.0, 17.0))
_GRADUAL_KINDS = tuple((True, exponent) for exponent in (3.0, 4.0, 6.0))
_PLAIN_KINDS = (*((False, steepness) for steepness in (1.0, 1.4, 2.0)), *_SHARP_KINDS)
_ALL_KINDS = (*_PLAIN_KINDS, *_GRADUAL_KINDS)
_HOST_KINDS = (*_SHARP_KINDS, *_GRADUAL_KINDS)
# Candidates for a capacity: that many per octave.
_FINENESS = 16
_ROUNDS = 12
# No known cache is less than three times the next nearer one, or less than 1.5 times as slow:
# smaller steps are translation buffers, page colours and neighbours.
_LEAST_SIZE_RATIO = 3.0
_LEAST_LATENCY_RATIO = 1.5
# A latency that falls by more than this when the array grows was disturbed.
_DISTURBED = 1.15
_LATER_POINTS = 3
_LEAST_POINTS = 6
# Parameters of one level: where, how steep, how high.
_PARAMETERS = 3
# Squared noise that another steepness than equation 6's must explain beyond it.
_CLEARLY = 6.0
_DEGENERATE = 1e-9
# Difference of information criteria that counts as very strong.
_STRONG_EVIDENCE = 10.0
_HUBER_SQUARE = 1.345**2


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLevel:
    """A cache as a random walk meets it."""

    capacity_bytes: Interval
    latency_s: Interval
    """Of a dependent load that hits it."""
    steepness: float
    """1 where replacement looks random, more for LRU, see `miss_share`."""
    is_gradual: bool = False
    """Whether misses begin well below its size, see `miss_share`."""

    @property
    def step(self) -> Step:
        """Where misses begin, and how sharply."""
        return Step(
            capacity=self.capacity_bytes.value,
            steepness=self.steepness,
            is_gradual=self.is_gradual,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyFit:
    """Cache levels and what is beyond them."""

    levels: tuple[CacheLevel, ...]
    """Nearest first; empty if the latency does not depend on the size."""
    beyond_s: Interval
    """Latency beyond all levels found."""
    noise: float
    """Standard deviation of the relative residuals of believed points."""
    used: tuple[bool, ...]
    """Which points were believed."""

    def predict(self, sizes_bytes: Floats) -> Floats:
        """Evaluate the fitted latencies, in seconds."""
        base = self.levels[0].latency_s.value if self.levels else self.beyond_s.value
        values = np.full(len(sizes_bytes), base)
        latencies = [level.latency_s.value for level in self.levels] + [self.beyond_s.value]
        for level, (near, far) in zip(self.levels, itertools.pairwise(latencies), strict=True):
            values += (far - near) * level.step.share(sizes_bytes)
        return values


def fit_levels(
    sizes_bytes: Floats,
    latencies_s: Floats,
    *,
    most_levels: int = _MOST_LEVELS,
    is_host: bool = False,
) -> LatencyFit:
    """Find cache levels in latencies over the size of the array.

    The number of levels is the one of least Bayesian information criterion among those whose
    steps are far enough apart and high enough to be caches.

    Parameters
    ----------
    sizes_bytes : ndarray of shape (n_points,)
        Increasing.
    latencies_s : ndarray of shape (n_points,)
        Seconds per step of the walk.
    is_host : bool
        Whether the caches are a CPU's: nearly LRU, physically indexed, shared. Then steps are
        sharp or begin early, and equation 6 does not apply: with it 1 MiB came out as 0.6 MiB.
    """
    _check(sizes_bytes, latencies_s)
    used = find_undisturbed(latencies_s)
    sizes, values = sizes_bytes[used], latencies_s[used]
    best = _choose_fit(sizes, values, most_levels, is_host=is_host)
    return _describe(best, sizes, values, used)


def find_undisturbed(latencies_s: Floats) -> Booleans:
    """Tell the points that can belong to a latency that never falls as the array grows.

    Disturbances only ever add time, so a point far above those of larger arrays was disturbed.

    Examples
    --------
    >>> find_undisturbed(np.array([1.0, 9.0, 1.0, 3.0, 3.0])).tolist()
    [True, False, True, True, True]
    """
    used = np.ones(len(latencies_s), dtype=np.bool_)
    later: list[float] = []
    for index in range(len(latencies_s) - 1, -1, -1):
        value = float(latencies_s[index])
        if later and value > _DISTURBED * float(np.median(later[-_LATER_POINTS:])):
            used[index] = False
        else:
            later.append(value)
    return used


def _check(sizes: Floats, values: Floats) -> None:
    if len(sizes) != len(values) or len(sizes) < _LEAST_POINTS:
        msg = f"{len(sizes)} sizes and {len(values)} latencies; give at least 6 of each"
        raise InputError(msg)
    is_good = np.all(np.diff(sizes) > 0) and sizes[0] > 0 and np.all(values > 0)
    if not (is_good and np.all(np.isfinite(values))):
        msg = "sizes must increase, and sizes and latencies be positive and finite"
        raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The curve and all steps that may explain it."""

    sizes: Floats
    values: Floats
    noise: float
    grid: tuple[Step, ...]
    shares: Floats

    def find_best(self, weights: Floats, others: tuple[Step, ...]) -> Step | None:
        """Find the step that explains most beside the others, far enough from them."""
        scale = weights / self.values
        basis = np.linalg.qr(make_columns(self.sizes, others) * scale[:, None])[0]
        target = weights - basis @ (basis.T @ weights)
        shares = self.shares * scale[:, None]
        shares -= basis @ (basis.T @ shares)
        squares = np.sum(shares**2, axis=0)
        projections = target @ shares
        gains = np.maximum(projections, 0.0) ** 2 / np.maximum(squares, _DEGENERATE)
        gains[(squares < _DEGENERATE) | ~self._find_allowed(others)] = 0.0
        if not np.any(gains > 0):
            return None
        # Equation 6 unless another steepness explains clearly more.
        plain = np.array([step.steepness == 1.0 for step in self.grid])
        handicap = np.where(plain, 0.0, _CLEARLY * self.noise**2)
        return self.grid[int(np.argmax(gains - handicap))]

    def _find_allowed(self, others: tuple[Step, ...]) -> Booleans:
        capacities = np.array([step.capacity for step in self.grid])
        allowed = np.ones(len(capacities), dtype=np.bool_)
        for other in others:
            distances = np.abs(np.log(capacities / other.capacity))
            allowed &= distances >= math.log(_LEAST_SIZE_RATIO)
        return allowed


def _choose_fit(sizes: Floats, values: Floats, most_levels: int, *, is_host: bool) -> StepFit:
    """Choose the number of levels, and steps that begin early only where evidence is strong.

    A gradual step can look like equation 6 at half its capacity: with the same right to both, one
    in five planted curves came out at twice the size.
    """
    best = []
    for kinds in (_HOST_KINDS,) if is_host else (_PLAIN_KINDS, _ALL_KINDS):
        search = _make_search(sizes, values, kinds)
        scored = [(_score(fit, search.noise), fit) for fit in _find_fits(search, most_levels)]
        best.append(min(scored, key=lambda one: one[0]))
    is_better = best[-1][0] < best[0][0] - _STRONG_EVIDENCE
    return best[-1][1] if is_better else best[0][1]


def _make_search(sizes: Floats, values: Floats, kinds: tuple[tuple[bool, float], ...]) -> _Search:
    octaves = math.log2(sizes[-1] / sizes[0])
    capacities = np.geomspace(sizes[0], sizes[-2], max(2, round(octaves * _FINENESS)))
    grid = tuple(
        Step(capacity=float(capacity), steepness=steepness, is_gradual=is_gradual)
        for capacity in capacities
        for is_gradual, steepness in kinds
    )
    return _Search(
        sizes=sizes,
        values=values,
        noise=_estimate_noise(values),
        grid=grid,
        shares=make_columns(sizes, grid)[:, 1:],
    )


def _find_fits(search: _Search, most_levels: int) -> list[StepFit]:
    """Fit 0, 1, ... steps: each time add the best one, then move all until nothing improves."""
    fits = [fit_heights(search.sizes, search.values, ())]
    for _ in range(most_levels):
        added = search.find_best(fits[-1].weights, fits[-1].steps)
        if added is None:
            break
        fit = _move_all(search, (*fits[-1].steps, added))
        if not _is_plausible(fit, search.sizes):
            break
        fits.append(fit)
    return fits


def _move_all(search: _Search, steps: tuple[Step, ...]) -> StepFit:
    """Move one step after the other to its best place until none moves."""
    fit = fit_heights(search.sizes, search.values, _sort(steps))
    for _ in range(_ROUNDS):
        before = fit.steps
        for index in range(len(fit.steps)):
            others = fit.steps[:index] + fit.steps[index + 1 :]
            found = search.find_best(fit.weights, others)
            if found is not None:
                fit = fit_heights(search.sizes, search.values, _sort((*others, found)))
        if fit.steps == before:
            break
    return fit


def _sort(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=lambda step: step.capacity))


def _is_plausible(fit: StepFit, sizes: Floats) -> bool:
    """Tell whether each step is high enough, and seen in at least two points."""
    plateaus = fit.plateaus
    if np.any(plateaus[1:] < _LEAST_LATENCY_RATIO * plateaus[:-1]):
        return False
    risen = [step.share(sizes) > 1 / 3 for step in fit.steps]
    return all(np.count_nonzero(one) > 1 for one in risen)


def _estimate_noise(values: Floats) -> float:
    """Estimate relative noise from how points differ from the mean of their neighbours."""
    middle = (values[:-2] + values[2:]) / 2
    differences = (values[1:-1] - middle) / values[1:-1] / math.sqrt(1.5)
    return max(1.4826 * float(np.median(np.abs(differences))), NOISE_FLOOR)


def _score(fit: StepFit, noise: float) -> float:
    """Bayesian information criterion with Huber's loss."""
    squares = (fit.residuals / noise) ** 2
    huber = np.where(
        squares <= _HUBER_SQUARE, squares, 2 * np.sqrt(_HUBER_SQUARE * squares) - _HUBER_SQUARE
    )
    return float(np.sum(huber)) + _PARAMETERS * len(fit.steps) * math.log(len(squares))


def _describe(
    fit: StepFit,
    sizes: Floats,
    values: Floats,
    used: Booleans,
) -> LatencyFit:
    noise = float(np.sqrt(np.average(fit.residuals**2, weights=fit.weights**2)))
    capacity_errors, latency_errors = _estimate_errors(fit, sizes, values, noise)
    # A capacity is not known better than the sizes that were tried.
    spacing = float(np.median(np.diff(np.log(sizes)))) / 2
    latencies = [
        make_relative_interval(float(value), error)
        for value, error in zip(fit.plateaus, latency_errors, strict=True)
    ]
    levels = tuple(
        CacheLevel(
            capacity_bytes=make_relative_interval(step.capacity, error, at_least=spacing),
            latency_s=latency,
            steepness=step.steepness,
            is_gradual=step.is_gradual,
        )
        for step, error, latency in zip(fit.steps, capacity_errors, latencies, strict=False)
    )
    return LatencyFit(levels=levels, beyond_s=latencies[-1], noise=noise, used=tuple(used.tolist()))


def _estimate_errors(
    fit: StepFit, sizes: Floats, values: Floats, noise: float
) -> tuple[Floats, Floats]:
    """Give relative standard errors of capacities and plateaus from the linearised model."""
    columns = [make_columns(sizes, fit.steps)]
    for step, height in zip(fit.steps, fit.heights[1:], strict=True):
        near, far = (
            replace(step, capacity=step.capacity * factor).share(sizes) for factor in (0.95, 1.05)
        )
        columns.append((height * (far - near) / 0.1)[:, None])
    jacobian = np.hstack(columns) * (fit.weights / values)[:, None]
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * noise**2
    count = len(fit.heights)
    sums = np.tril(np.ones((count, count)))
    plateaus = sums @ covariance[:count, :count] @ sums.T
    latency_errors = np.sqrt(np.maximum(np.diag(plateaus), 0)) / fit.plateaus
    capacity_errors = np.sqrt(np.maximum(np.diag(covariance)[count:], 0))
    return capacity_errors, latency_errors
