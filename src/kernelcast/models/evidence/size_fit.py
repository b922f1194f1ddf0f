"""Learns how much sizes of a kernel differ, by leaving each known size out."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from kernelcast.models.evidence.sizes import KnownSize, SizeSettings, noise_variance, relate_sizes
from kernelcast.records.training_table import Numbers

FREE = (
    "size_sd", "size_reach", "time_sd", "time_reach_s", "slope_sd", "noise_sd", "noise_share",
)  # fmt: skip
"""What is learned beside the scale."""
_MOST_TRIES = 250
_LEAST = 1e-4
# Student's t of so many degrees of freedom: sizes that fit nothing must not decide.
_DEGREES = 3.0
# |z| of a normal variable that three quarters stay below.
_QUARTILE = 0.75
_QUARTILE_SD = 1.15
_LEAST_SIZES = 30
# Sizes that were all measured within minutes do not tell how machines differ between sessions:
# how far, in logarithms, what is learned of time may leave what is assumed for want of rows.
_LEANINGS = {"time_sd": 0.5, "time_reach_s": 1.0}


def fit_sizes(kernels: Iterable[Sequence[KnownSize]], start: SizeSettings) -> SizeSettings:
    """Learn the settings that foretell sizes of kernels from their other sizes."""
    several = [list(one) for one in kernels if len(one) > 1]
    if sum(map(len, several)) < _LEAST_SIZES:
        return start
    from scipy.optimize import minimize

    usual = float(np.median([size.noise for one in several for size in one]))
    start = replace(start, usual_noise=usual)
    leave_out = _prepare(several)

    begin = np.log([max(getattr(start, name), _LEAST) for name in FREE])
    leaning = np.array([1.0 / _LEANINGS.get(name, math.inf) for name in FREE])

    def cost(logs: Numbers) -> float:
        residuals, variances = leave_out(_set(start, logs))
        tails = np.log1p(residuals**2 / variances / _DEGREES)
        misfit = float(np.mean(0.5 * np.log(variances) + 0.5 * (_DEGREES + 1.0) * tails))
        return misfit + 0.5 * float(np.sum((leaning * (logs - begin)) ** 2)) / len(residuals)

    found = minimize(
        cost, begin, method="Nelder-Mead",
        options={"maxfev": _MOST_TRIES, "xatol": 0.05, "fatol": 2e-4},
    )  # fmt: skip
    settings = _set(start, found.x)
    residuals, variances = leave_out(settings)
    quartile = float(np.quantile(np.abs(residuals) / np.sqrt(variances), _QUARTILE))
    return replace(settings, scale=(quartile / _QUARTILE_SD) ** 2)


def _set(start: SizeSettings, logs: Numbers) -> SizeSettings:
    values = np.exp(np.clip(logs, math.log(_LEAST), 15.0)).tolist()
    return replace(start, **dict(zip(FREE, values, strict=True)))


def _prepare(
    kernels: Sequence[Sequence[KnownSize]],
) -> Callable[[SizeSettings], tuple[Numbers, Numbers]]:
    """Give a function that leaves each size out, by closed form, and gives errors and variances."""
    stacks = [
        _stack([one for one in kernels if len(one) == count])
        for count in sorted({len(one) for one in kernels})
    ]
    # Of several sizes those of the same session foretell each other, whatever another one did.
    by_time = [sorted(one, key=lambda size: size.at_s) for one in kernels if len(one) > 2]
    stacks += [_stack([[one[0], one[-1]] for one in by_time])] if by_time else []

    def leave_out(settings: SizeSettings) -> tuple[Numbers, Numbers]:
        residuals, variances = [], []
        for work, at_s, rates, noise in stacks:
            own = noise_variance(settings, noise)[..., None] * np.eye(work.shape[-1])
            inverse = np.linalg.inv(relate_sizes(settings, work, at_s) + own)
            precision = np.diagonal(inverse, axis1=-2, axis2=-1)
            residuals.append(((inverse @ rates[..., None])[..., 0] / precision).ravel())
            variances.append(1.0 / precision.ravel())
        return np.concatenate(residuals), np.concatenate(variances)

    return leave_out


def _stack(kernels: Sequence[Sequence[KnownSize]]) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Give work, time stamps, rates and noise of kernels of as many sizes, shape (kernels, n)."""
    work = np.array([[one.log_work[0] for one in sizes] for sizes in kernels])
    rates = np.array([[one.log_seconds for one in sizes] for sizes in kernels]) - work
    at_s = np.array([[one.at_s for one in sizes] for sizes in kernels])
    noise = np.array([[one.noise for one in sizes] for sizes in kernels])
    return work, at_s, rates - np.median(rates, axis=-1, keepdims=True), noise
