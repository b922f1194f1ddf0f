"""Bandwidth of each cache level from bandwidth over the size of the working set."""

import itertools

import numpy as np

from kernelcast.records.errors import InputError, MeasurementError
from kernelcast.sampling.microbenchmarks.fits.intervals import Interval, make_relative_interval
from kernelcast.sampling.microbenchmarks.fits.steps import (
    Floats,
    Step,
    StepFit,
    fit_heights,
    make_columns,
)

_STEEPNESSES = (1.0, 2.0, 4.0, 16.0)


def fit_bandwidths(
    sizes_bytes: Floats, bandwidths: Floats, capacities_bytes: tuple[float, ...]
) -> tuple[Interval, ...]:
    """Give the bandwidth of each level and beyond.

    Times per byte add up as latencies do in equation 6, so bandwidth is a step function in its
    inverse, with its steps at the known capacities.

    Parameters
    ----------
    capacities_bytes : tuple of float
        Sizes of the caches, nearest first.

    Returns
    -------
    tuple of Interval
        In bytes per second: one per capacity, and one beyond.
    """
    if len(sizes_bytes) <= len(capacities_bytes) or np.any(bandwidths <= 0):
        msg = f"{len(sizes_bytes)} points for {len(capacities_bytes)} levels; give more, positive"
        raise InputError(msg)
    times = 1.0 / bandwidths
    fits = [
        fit_heights(sizes_bytes, times, steps) for steps in _list_steps(tuple(capacities_bytes))
    ]
    best = min(fits, key=lambda fit: float(np.sum((fit.weights * fit.residuals) ** 2)))
    return _describe(best, sizes_bytes, times)


def _list_steps(capacities: tuple[float, ...]) -> list[tuple[Step, ...]]:
    return [
        tuple(
            Step(capacity=capacity, steepness=steepness)
            for capacity, steepness in zip(capacities, chosen, strict=True)
        )
        for chosen in itertools.product(_STEEPNESSES, repeat=len(capacities))
    ]


def _describe(fit: StepFit, sizes: Floats, times: Floats) -> tuple[Interval, ...]:
    if min(fit.plateaus) <= 0:
        msg = "times per byte do not rise with the size; they were disturbed, or are no caches'"
        raise MeasurementError(msg)
    noise = float(np.sqrt(np.mean((fit.weights * fit.residuals) ** 2)))
    jacobian = make_columns(sizes, fit.steps) * (fit.weights / times)[:, None]
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * noise**2
    sums = np.tril(np.ones_like(covariance))
    errors = np.sqrt(np.maximum(np.diag(sums @ covariance @ sums.T), 0)) / fit.plateaus
    return tuple(
        make_relative_interval(1.0 / float(plateau), float(error))
        for plateau, error in zip(fit.plateaus, errors, strict=True)
    )
