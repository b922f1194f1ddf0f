"""A reference for launches that were not sampled: volumes over rates learned from measurements.

``t = (sum_j (v_j / r_j)^p)^(1/p)`` with volumes v_j (bytes, operations, launches) and rates r_j:
p = 1 adds the limiters' times, a large p takes their maximum, as Roofline does. A few positive
numbers per device, so it extrapolates to kernels never seen; a device that was never seen takes
the rates of all together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from kernelcast.models.regression import Groups
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers, TrainingTable

_OVERLAPS = (1.0, 2.0, 4.0)
_SMOOTHING = 0.1
# Strength with which a device's rates are drawn to those of all, in squared logarithms per row.
_PULL = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """What takes time.

    Parameters
    ----------
    name : str
        A feature; empty for what every launch pays once.
    """

    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLimiters:
    """Rates; made by `LimiterReference.fit`.

    Parameters
    ----------
    volumes : tuple of Volume
        What takes time.
    overlap : float
        The exponent p.
    devices : tuple of str
        Devices with rates of their own.
    costs : ndarray, shape (devices + 1, volumes)
        Logarithms of seconds per unit of volume; the last row is that of all devices together.
    """

    volumes: tuple[Volume, ...]
    overlap: float
    devices: tuple[str, ...]
    costs: Numbers

    def seconds(self, table: TrainingTable) -> Numbers:
        """Give times; NaN where a launch has no volume at all."""
        places = {name: place for place, name in enumerate(self.devices)}
        rows = np.array([places.get(one, len(places)) for one in table.devices], dtype=np.intp)
        logs = self.overlap * (_log_volumes(self.volumes, table) + self.costs[rows])
        largest = logs.max(axis=1)
        with np.errstate(invalid="ignore"):
            sums = np.exp(logs - largest[:, None]).sum(axis=1)
        found = np.exp((largest + np.log(sums)) / self.overlap)
        return np.where(found > 0, found, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterReference:
    """Learns the rates of volumes.

    Parameters
    ----------
    volumes : tuple of Volume
        What takes time.
    name : str
        What reports call it.
    """

    volumes: tuple[Volume, ...]
    name: str = "limiters"

    def knows(self, table: TrainingTable) -> npt.NDArray[np.bool_]:
        """Tell of each row whether it has a volume."""
        return np.asarray(np.isfinite(_log_volumes(self.volumes, table)).any(axis=1))

    def fit(self, table: TrainingTable) -> FittedLimiters:
        """Learn rates of all devices together, then of each.

        Raises
        ------
        InputError
            If no row has a volume.
        """
        logs = _log_volumes(self.volumes, table)
        targets = np.log(table.seconds)
        known = np.isfinite(logs).any(axis=1) & np.isfinite(targets)
        if not known.any():
            names = ", ".join(one.name or "launch" for one in self.volumes)
            msg = f"limiters: no row has a time and one of the volumes {names}; name others"
            raise InputError(msg)
        problem = _Problem(logs=logs[known], targets=targets[known])
        shared, overlap = _fit_shared(problem)
        labels = table.devices[known].astype(str)
        devices = tuple(np.unique(labels).tolist())
        costs = [_fit_costs(problem.take(labels == one), overlap, shared)[0] for one in devices]
        return FittedLimiters(
            volumes=self.volumes,
            overlap=overlap,
            devices=devices,
            costs=np.array([*costs, shared]),
        )

    def cross_seconds(
        self, table: TrainingTable, parts: Sequence[tuple[Groups, Groups]]
    ) -> Numbers:
        """Give each row's time by rates learned without its group."""
        found = np.full(len(table), np.nan)
        for train, test in parts:
            found[test] = self.fit(table.take(train)).seconds(table.take(test))
        return found


@dataclass(frozen=True, slots=True)
class _Problem:
    """Logarithms of volumes, shape (n, volumes), and of times, shape (n,)."""

    logs: Numbers
    targets: Numbers

    def take(self, rows: npt.NDArray[np.bool_]) -> "_Problem":
        return _Problem(logs=self.logs[rows], targets=self.targets[rows])


def _log_volumes(volumes: tuple[Volume, ...], table: TrainingTable) -> Numbers:
    """Give logarithms, minus infinity where a volume is absent or zero."""
    columns = []
    for one in volumes:
        amount = table.column(one.name) if one.name else np.ones(len(table))
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(amount)
        columns.append(np.where(np.isfinite(log), log, -np.inf))
    return np.column_stack(columns)


def _fit_shared(problem: _Problem) -> tuple[Numbers, float]:
    """Fit the rates of all rows with each exponent, and take the best."""
    finite = np.isfinite(problem.logs)
    gaps = np.where(finite, problem.targets[:, None] - np.where(finite, problem.logs, 0), np.nan)
    # A launch takes at least each limiter's time: begin near the fastest rates seen.
    begin = np.array([
        np.quantile(column[~np.isnan(column)], 0.2) if (~np.isnan(column)).any() else -30.0
        for column in gaps.T
    ])  # fmt: skip
    found = [(*_fit_costs(problem, overlap, begin, pull=0.0), overlap) for overlap in _OVERLAPS]
    costs, _, overlap = min(found, key=lambda one: one[1])
    return costs, overlap


def _fit_costs(
    problem: _Problem, overlap: float, begin: Numbers, *, pull: float = _PULL
) -> tuple[Numbers, float]:
    """Fit logarithms of seconds per volume; also give the loss."""

    def loss(costs: Numbers) -> tuple[float, Numbers]:
        logs = overlap * (problem.logs + costs)
        largest = logs.max(axis=1, keepdims=True)
        parts = np.exp(logs - largest)
        sums = parts.sum(axis=1, keepdims=True)
        errors = (largest + np.log(sums)).ravel() / overlap - problem.targets
        # Near zero as the absolute error, smooth enough for a gradient.
        sizes = np.sqrt(errors**2 + _SMOOTHING**2)
        slopes = errors / sizes / len(errors)
        drawn = costs - begin
        value = float(sizes.mean() + pull * (drawn**2).sum())
        return value, slopes @ (parts / sums) + 2 * pull * drawn

    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return found.x, float(found.fun)
