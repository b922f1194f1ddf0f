"""Other sizes of a kernel: what their times say about a size that was not run.

``ln t = ln w + f``: w is a measure of work, and f the logarithm of the time per unit of work, which
is nearly the same for all sizes of a kernel. f is a Gaussian process over size and time: sizes that
are near tell more, and so do those that were measured near in time, for machines have states that
last from minutes to hours (on the shipped rows, sizes of a kernel measured within an hour differ
by 1 to 4 % in time per work-item, those of another session by 17 to 24 %). Its deviation from a
slope of 1 is shrunk; the variance grows with the distance and falls with the number of sizes, and
it grows most where known times are microseconds: they may be all launch and no work.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from kernelcast.models.evidence.fusion import Kind, Piece
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers

MEASURES = ("work_items", "instructions", "bytes", "analytic_s")
"""Measures of work. Where instructions of all launches are known, they or work-items are taken,
whichever foretells a kernel's own sizes better; of few sizes instructions. Others have to foretell
them much better."""
_ITEMS, _INSTRUCTIONS = 0, 1
# What the level of a kernel's times may differ by from the median of its sizes.
_LEVEL = 1.0
_FREE = (
    "size_sd", "size_reach", "time_sd", "time_reach_s", "slope_sd", "noise_sd", "noise_share",
)  # fmt: skip
_LEAST_SETTING = 1e-4
# Student's t of so many degrees of freedom: sizes that fit nothing must not decide.
_DEGREES = 3.0
# Sizes that were all measured within minutes do not tell how machines differ between sessions:
# how far, in logarithms, what is learned of time may leave what is assumed for want of rows.
_LEANINGS = {"time_sd": 0.5, "time_reach_s": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSettings:
    """How much sizes differ; standard deviations of logarithms of times."""

    size_sd: float = 0.03  # of what fades with the distance in ln work
    size_reach: float = 1.0  # distance at which it has faded by e
    time_sd: float = 0.2  # of what fades with the time between measurements
    time_reach_s: float = 1500.0
    slope_sd: float = 0.02  # of the slope of ln time over ln work, about 1
    noise_sd: float = 0.02  # of a measurement: a constant
    noise_share: float = 0.6  # and a share of the runs' own noise
    crossing_sd: float = 0.05  # added where a cache's size lies between the working sets
    # Another measure of work is taken if it errs less than so much of the plainest one's error on
    # the kernel's own sizes, each left out.
    gain: float = 0.3
    usual_noise: float = 0.04  # of the runs of a launch that is not known yet
    scale: float = 1.0  # factor of all variances


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSize:
    log_work: tuple[float, ...]  # of `MEASURES`; NaN where one but the first is not known
    log_seconds: float
    # Half the 10-90 % spread of runs over their median, or the deviation of an estimate.
    noise: float
    at_s: float  # when it was measured, by a clock that all sizes share
    working_set_bytes: float = math.nan

    def __post_init__(self) -> None:
        if len(self.log_work) != len(MEASURES) or not math.isfinite(
            self.log_seconds + self.log_work[0]
        ):
            raise InputError(
                f"known size: ln work {self.log_work}, ln seconds {self.log_seconds}; expected "
                f"{len(MEASURES)} measures, and finite numbers for the first and the time"
            )

    @property
    def mix(self) -> float:
        """Logarithm of the instructions per work-item; NaN where they are not known."""
        return self.log_work[_INSTRUCTIONS] - self.log_work[_ITEMS]


def predict_size(
    known: Sequence[KnownSize],
    settings: SizeSettings,
    log_work: Sequence[float],
    at_s: float,
    working_set_bytes: float = math.nan,
    caches: Mapping[str, float] | None = None,
) -> Piece:
    """Say what sizes of one kernel (same source, options and device) tell of another one.

    The note names the measure of work, and a cache whose size lies between the working set and all
    known ones.
    """
    if not known:
        raise InputError("other sizes: none are known; give at least one")
    # Of more known sizes the latest count: more bring no accuracy, and cost time.
    latest = sorted(known, key=lambda one: one.at_s)[-16:]
    measured_at_s = np.array([one.at_s for one in latest])
    log_seconds = np.array([one.log_seconds for one in latest])
    # Share of the known times that may be no work: what a launch may take beside it. 3 us on
    # Intel's runtime, 8 us on PoCL, 230 us on rusticl.
    beside = np.minimum(100e-6 * np.exp(-log_seconds), 0.99)
    doubt = (np.log1p(-beside) - np.log1p(-beside.min())) ** 2
    own_noise = np.array([noise_variance(settings, one.noise) for one in latest]) + doubt
    # Votes of a size on the kernel's rate; fewer, down to none, the less of its time is work.
    votes = np.rint(4.0 / (1.0 + doubt)).astype(np.int64)

    def tabulate(measure: int) -> tuple[float, int, Numbers, float, Numbers, Numbers]:
        """Return the median error of sizes that are left out, and what a prediction is made of."""
        work = np.array([one.log_work[measure] for one in latest])
        rates = log_seconds - work
        level = float(np.median(np.repeat(rates, votes)))
        rates -= level
        usual = settings.size_sd**2 + settings.time_sd**2 + own_noise
        # Sizes farther off than so many standard deviations lose their weight.
        trust = np.minimum(1.0, 3.0**2 * usual / np.maximum(rates**2, 1e-300))
        noise = own_noise + usual * (1.0 / trust - 1.0)
        covariance = relate_sizes(settings, work, measured_at_s) + np.diag(noise)
        inverse = np.linalg.inv(covariance).astype(np.float64, copy=False)
        coefficients = inverse @ rates
        left_out = float(np.median(np.abs(coefficients / np.diag(inverse))))
        return left_out, measure, work, level, inverse, coefficients

    is_counted = all(math.isfinite(one.mix) for one in latest)
    best = tabulate(_INSTRUCTIONS if is_counted else _ITEMS)
    if len(latest) >= 3:
        items = tabulate(_ITEMS)
        # Where known work-items all do as much, the two differ by rounding alone.
        # A measure is better from such a share of the other one's error on.
        if items[0] < 0.9 * best[0]:
            best = items
        least = settings.gain * best[0]
        for measure in {*range(len(MEASURES))} - {best[1]}:
            if all(math.isfinite(one.log_work[measure]) for one in latest):
                found = tabulate(measure)
                if found[0] < least:
                    best, least = found, found[0]
    _, measure, known_work, level, inverse, coefficients = best
    work = log_work[measure]
    if math.isnan(work):
        msg = f"other sizes: {MEASURES[measure]} of this one is not known; count it first"
        raise InputError(msg)
    apart, centre = known_work - work, known_work.mean()
    slope = settings.slope_sd**2 * (work - centre)
    shared = _relate(settings, np.abs(apart), np.abs(measured_at_s - at_s))
    shared += slope * (known_work - centre)
    own = (
        _LEVEL**2 + settings.size_sd**2 + settings.time_sd**2 + slope * (work - centre)
        + noise_variance(settings, settings.usual_noise)
    )  # fmt: skip
    left = own - float(shared @ inverse @ shared)
    # What rounding may leave nothing of: no error is below 0.1 %.
    variance = settings.scale * max(left, 1e-6)
    # How far off work alone foretells if a part of a known time does not grow with it.
    variance += float(np.abs(np.log1p(beside * np.expm1(apart))).min()) ** 2
    mixes = [one.mix for one in latest]
    mix = log_work[_INSTRUCTIONS] - log_work[_ITEMS]
    if math.isfinite(mix) and is_counted:
        # Work-items that do more or less than those of known sizes.
        beyond = max(0.0, mix - max(mixes), min(mixes) - mix)
        # How far time may stray from instructions, where work-items execute e times as many as any
        # known.
        variance += (beyond * (0.15 if measure != _ITEMS else 1.0)) ** 2
    known_bytes = [one.working_set_bytes for one in latest]
    boundary = find_boundary(working_set_bytes, known_bytes, caches or {})
    outside = f", beyond the size of {boundary}" if boundary else ""
    return Piece(
        kind=Kind.OTHER_SIZES,
        log_seconds=work + level + float(shared @ coefficients),
        variance=variance + (settings.crossing_sd**2 if boundary else 0.0),
        note=f"{len(latest)} sizes by {MEASURES[measure]}{outside}",
    )


Noise = TypeVar("Noise", float, Numbers)


def noise_variance(settings: SizeSettings, noise: Noise) -> Noise:
    return settings.noise_sd**2 + (settings.noise_share * noise) ** 2


def relate_sizes(settings: SizeSettings, work: Numbers, at_s: Numbers) -> Numbers:
    """Return the covariance of sizes without their noise, shape (..., n, n)."""
    moved = work - work.mean(axis=-1, keepdims=True)
    found = _relate(
        settings,
        np.abs(work[..., :, None] - work[..., None, :]),
        np.abs(at_s[..., :, None] - at_s[..., None, :]),
    )
    found += settings.slope_sd**2 * moved[..., :, None] * moved[..., None, :]
    return found


def _relate(settings: SizeSettings, apart: Numbers, between_s: Numbers) -> Numbers:
    found: Numbers = np.exp(apart * (-1.0 / settings.size_reach))
    found *= settings.size_sd**2
    found += settings.time_sd**2 * np.exp(between_s * (-1.0 / settings.time_reach_s))
    found += _LEVEL**2
    return found


def find_boundary(
    working_set_bytes: float, known_bytes: Sequence[float], caches: Mapping[str, float]
) -> str:
    """Name a cache whose size lies between a working set and all those that are known."""
    for name, size in caches.items():
        # What is not known lies on no side.
        if working_set_bytes > size and all(one <= size for one in known_bytes):
            return name
        if working_set_bytes <= size and all(one > size for one in known_bytes):
            return name
    return ""


def fit_sizes(kernels: Iterable[Sequence[KnownSize]], start: SizeSettings) -> SizeSettings:
    several = [list(one) for one in kernels if len(one) > 1]
    if sum(map(len, several)) < 30:
        return start
    from scipy.optimize import minimize

    usual = float(np.median([size.noise for one in several for size in one]))
    start = replace(start, usual_noise=usual)
    stacks = [
        _stack([one for one in several if len(one) == count])
        for count in sorted({len(one) for one in several})
    ]
    # Of several sizes those of the same session foretell each other, whatever another one did.
    by_time = [sorted(one, key=lambda size: size.at_s) for one in several if len(one) > 2]
    stacks += [_stack([[one[0], one[-1]] for one in by_time])] if by_time else []

    def leave_out(settings: SizeSettings) -> tuple[Numbers, Numbers]:
        """Leave each size out, by closed form; return errors and variances."""
        residuals, variances = [], []
        for work, at_s, rates, noise in stacks:
            own = noise_variance(settings, noise)[..., None] * np.eye(work.shape[-1])
            inverse = np.linalg.inv(relate_sizes(settings, work, at_s) + own)
            precision = np.diagonal(inverse, axis1=-2, axis2=-1)
            residuals.append(((inverse @ rates[..., None])[..., 0] / precision).ravel())
            variances.append(1.0 / precision.ravel())
        return np.concatenate(residuals), np.concatenate(variances)

    begin = np.log([max(getattr(start, name), _LEAST_SETTING) for name in _FREE])
    leaning = np.array([1.0 / _LEANINGS.get(name, math.inf) for name in _FREE])

    def cost(logs: Numbers) -> float:
        residuals, variances = leave_out(_set(start, logs))
        tails = np.log1p(residuals**2 / variances / _DEGREES)
        misfit = float(np.mean(0.5 * np.log(variances) + 0.5 * (_DEGREES + 1.0) * tails))
        return misfit + 0.5 * float(np.sum((leaning * (logs - begin)) ** 2)) / len(residuals)

    found = minimize(
        cost, begin, method="Nelder-Mead",
        options={"maxfev": 250, "xatol": 0.05, "fatol": 2e-4},
    )  # fmt: skip
    settings = _set(start, found.x)
    residuals, variances = leave_out(settings)
    # |z| of a normal variable that three quarters stay below.
    quartile = float(np.quantile(np.abs(residuals) / np.sqrt(variances), 0.75))
    return replace(settings, scale=(quartile / 1.15) ** 2)


def _set(start: SizeSettings, logs: Numbers) -> SizeSettings:
    values = np.exp(np.clip(logs, math.log(_LEAST_SETTING), 15.0)).tolist()
    return replace(start, **dict(zip(_FREE, values, strict=True)))


def _stack(kernels: Sequence[Sequence[KnownSize]]) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return work, time stamps, rates and noise of kernels of as many sizes, shape (kernels, n)."""
    work = np.array([[one.log_work[0] for one in sizes] for sizes in kernels])
    rates = np.array([[one.log_seconds for one in sizes] for sizes in kernels]) - work
    at_s = np.array([[one.at_s for one in sizes] for sizes in kernels])
    noise = np.array([[one.noise for one in sizes] for sizes in kernels])
    return work, at_s, rates - np.median(rates, axis=-1, keepdims=True), noise


def measure_work(features: Mapping[str, float]) -> tuple[tuple[float, ...], float]:
    """Return the logarithms of measures of work, NaN where one is not known, and bytes touched."""
    items = features["static.work_items_count"]
    moved = [features.get(f"counters.global_{kind}_bytes_per_work_item", math.nan)
             for kind in ("load", "store")]  # fmt: skip
    # Where data end a loop, counts are those of the few work-groups that were looked at.
    is_counted = not features.get("static.uncounted_loops_count", 0.0)
    instructions = features.get("counters.issued_instructions_per_work_item", math.nan)
    works = (
        items,
        items * instructions if is_counted else math.nan,
        items * sum(moved),
        features.get("analytic.estimate_s", math.nan),
    )
    logs = tuple(math.log(work) if work > 0 else math.nan for work in works)
    return logs, features.get("static.buffer_bytes", math.nan)
