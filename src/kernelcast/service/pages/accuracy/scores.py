"""Predictions beside measured times, and what they say of a method, a kernel and a time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

import numpy as np

from kernelcast.records.error_summary import ErrorSummary, summarise_errors

_MOST_BINS: Final = 30
_ROWS_IN_BIN: Final = 12
_MOST: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A prediction of a launch and what was measured; a method predicts each launch once."""

    method: str
    launch: str
    """Which launch, the same for every method."""
    kernel: str
    device_id: str
    """What ran where."""
    measured_s: float
    seconds: float
    """Measured and predicted time of the whole launch."""
    observations: int = 1
    """What the measured time and its noise are of."""
    low: float | None = None
    high: float | None = None
    """Ends of the prediction's interval, in seconds; None where it has none."""
    in_domain: bool | None = None
    """Whether the launch resembles those that were learned from; None where nothing was."""
    noise: float | None = None
    """Of the measured time: half the 10-90 % spread over the median."""
    when: datetime | None = None
    shifted_at: datetime | None = None
    """When it became certain that the launch takes another time than before."""

    @property
    def ratio(self) -> float:
        """Predicted over measured, up to a million to either side: callers may report anything."""
        return min(max(self.seconds / self.measured_s, 1 / _MOST), _MOST)

    @property
    def error(self) -> float:
        """|predicted - measured| / measured, up to a million."""
        return min(abs(self.seconds - self.measured_s) / self.measured_s, _MOST)

    @property
    def is_inside(self) -> bool | None:
        """Whether the measured time lies inside the interval; None without one."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured_s <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodScore:
    """How good a method was."""

    method: str
    rows: int
    kernels: int
    """Launches that it is judged by, and kernels that they are of."""
    beyond: int
    """Launches that it has predicted as well, and other methods have not."""
    noise: float | None
    """Mean noise of the measured times; None where none is known."""
    errors: ErrorSummary | None
    """Of |predicted - measured| / measured."""
    coverage: float | None
    """Share of measured times inside their intervals; None without intervals."""
    half_width: float | None
    """Median of the factor between the middle and the ends of intervals, less 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelScore:
    """How well one kernel was predicted."""

    kernel: str
    rows: int
    error: float
    ratio: float
    """Their median of predicted over measured."""
    linear_error: float | None
    """The linear model's mean error; None where it has no answer."""
    noise: float | None
    inside: int | None
    """Rows inside their intervals; None without intervals."""
    in_domain: int | None
    """Rows inside the domain; None where nothing was learned."""
    shifted_at: datetime | None
    """When its times last shifted for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftBin:
    """Predictions of a stretch of time."""

    begin: datetime
    end: datetime
    """Of the measurements."""
    rows: int
    low: float
    middle: float
    high: float
    """10 %, 50 % and 90 % quantile of predicted over measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodScores:
    """How good several methods were on the same launches."""

    methods: tuple[MethodScore, ...]
    """In the order in which they first appear."""
    common: int
    """Launches that all of them have predicted. Where there are none, each is judged by its own
    launches, and they cannot be compared."""


def list_errors(rows: Iterable[Judged]) -> tuple[dict[str, list[float]], list[float]]:
    """Give errors by method on common launches, and the noise of their times, each least first."""
    found, common = _group(rows)
    errors = {
        method: sorted(one.error for key, one in own.items() if key in common)
        for method, own in found.items()
    }
    noise = {
        key: one.noise
        for own in found.values()
        for key, one in own.items()
        if key in common and one.noise is not None
    }
    return errors, sorted(noise.values())


def score_methods(rows: Iterable[Judged]) -> MethodScores:
    """Score every method on the launches that all have predicted."""
    found, common = _group(rows)
    scores = []
    for method, own in found.items():
        shared = [one for launch, one in own.items() if launch in common]
        scores.append(_score(method, shared or [*own.values()], len(own)))
    return MethodScores(methods=tuple(scores), common=len(common))


def _group(rows: Iterable[Judged]) -> tuple[dict[str, dict[str, Judged]], set[str]]:
    """Sort predictions by method and launch, and find the launches that all have predicted."""
    found: dict[str, dict[str, Judged]] = {}
    for one in rows:
        found.setdefault(one.method, {})[one.launch] = one
    common = set.intersection(*(set(own) for own in found.values())) if found else set()
    return found, common


def score_kernels(
    rows: Sequence[Judged], linear: Mapping[str, float] | None = None
) -> tuple[KernelScore, ...]:
    """Score every kernel, worst first."""
    found: dict[str, list[Judged]] = {}
    for one in rows:
        found.setdefault(one.kernel, []).append(one)
    scores = (_score_kernel(name, own, linear or {}) for name, own in found.items())
    return tuple(sorted(scores, key=lambda one: (-one.error, one.kernel)))


def mean_errors(rows: Iterable[Judged], beside: Iterable[Judged]) -> dict[str, float]:
    """Give the mean error of each kernel of which both have predicted the same launches."""
    found: dict[str, dict[str, float]] = {}
    for one in rows:
        found.setdefault(one.kernel, {})[one.launch] = one.error
    wanted: dict[str, set[str]] = {}
    for one in beside:
        wanted.setdefault(one.kernel, set()).add(one.launch)
    return {
        kernel: sum(found[kernel][one] for one in launches) / len(launches)
        for kernel, launches in wanted.items()
        if launches <= set(found.get(kernel, ()))
    }


def bin_by_time(rows: Iterable[Judged]) -> tuple[DriftBin, ...]:
    """Put predictions into stretches of time with as many measurements each, oldest first.

    Stretches of equal length would be empty where nothing was measured, and hide a shift where
    much was.
    """
    dated = sorted((one.when, one.ratio) for one in rows if one.when is not None)
    if not dated:
        return ()
    count = min(_MOST_BINS, max(1, len(dated) // _ROWS_IN_BIN))
    bounds = [round(place * len(dated) / count) for place in range(count + 1)]
    found = []
    for begin, end in pairwise(bounds):
        own = dated[begin:end]
        low, middle, high = np.quantile([ratio for _, ratio in own], (0.1, 0.5, 0.9)).tolist()
        found.append(
            DriftBin(
                begin=own[0][0], end=own[-1][0], rows=len(own), low=low, middle=middle, high=high
            )
        )
    return tuple(found)


def _score(method: str, rows: Sequence[Judged], answered: int) -> MethodScore:
    noise = [one.noise for one in rows if one.noise is not None]
    held = [one.is_inside for one in rows if one.is_inside is not None]
    widths = [
        math.sqrt(min(one.high / one.low, _MOST)) - 1
        for one in rows
        if one.low and one.high is not None
    ]
    return MethodScore(
        method=method,
        rows=len(rows),
        kernels=len({one.kernel for one in rows}),
        beyond=answered - len(rows),
        noise=sum(noise) / len(noise) if noise else None,
        errors=summarise_errors(np.array([one.error for one in rows])),
        coverage=sum(held) / len(held) if held else None,
        half_width=float(np.median(widths)) if widths else None,
    )


def _score_kernel(kernel: str, rows: Sequence[Judged], linear: Mapping[str, float]) -> KernelScore:
    noise = [one.noise for one in rows if one.noise is not None]
    held = [one.is_inside for one in rows if one.is_inside is not None]
    known = [one.in_domain for one in rows if one.in_domain is not None]
    shifts = [one.shifted_at for one in rows if one.shifted_at is not None]
    return KernelScore(
        kernel=kernel,
        rows=len(rows),
        error=sum(one.error for one in rows) / len(rows),
        ratio=float(np.median([one.ratio for one in rows])),
        linear_error=linear.get(kernel),
        noise=sum(noise) / len(noise) if noise else None,
        inside=sum(held) if held else None,
        in_domain=sum(known) if known else None,
        shifted_at=max(shifts, default=None),
    )
