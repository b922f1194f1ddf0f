"""The slabs that are still to be run, and how many of them a device is given next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.settings import BalanceSettings
from kernelcast.records.balance import Span

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

_LEAST_SHARE = 0.5
# Part of the work left that is given at a time while a speed is not known.
_WHILE_UNKNOWN = 0.01
# Parts of a fair share that are given where speeds have been seen at work: small parts cost time,
# large ones are a risk where work differs from place to place.
_LATER_EVEN, _LATER_UNEVEN = 0.7, 0.5
# And their least part is so many times as long.
_LONGER_EVEN = 2.0
# So many times what is worth a launch are given at once, without a rest.
_LITTLE = 4.0
# Parts of fewer times the least that is worth a launch are not cut in two.
_SHORT = 4.0


class WorkQueue:
    """Slabs that no device has been given yet."""

    def __init__(self, count: int, weights: FloatArray | None = None) -> None:
        self._is_free = np.ones(count, dtype=np.bool_)
        self._weights = np.ones(count) if weights is None else weights

    @property
    def weight(self) -> float:
        return float(self._weights[self._is_free].sum())

    @property
    def is_empty(self) -> bool:
        return not self._is_free.any()

    def weigh(self, weights: FloatArray) -> None:
        self._weights = weights

    def weight_of(self, spans: Iterable[Span]) -> float:
        return float(sum(self._weights[first:stop].sum() for first, stop in spans))

    def put_back(self, slabs: BoolArray) -> None:
        self._is_free |= slabs

    def take(self, weight: float, *, anchor: float) -> list[Span]:
        """Take slabs of about a weight: from the first one on (anchor 0), from the last one on
        downwards (1), or the nearest first."""
        free = np.flatnonzero(self._is_free)
        if not free.size:
            return []
        if anchor >= 1:
            order = free[::-1]
        else:
            place = anchor * self._is_free.size
            order = np.concatenate([free[free >= place], free[free < place][::-1]])
        total = np.cumsum(self._weights[order])
        # The slab that the limit falls into is taken if more than half of it is wanted.
        chosen = int(np.searchsorted(total - 0.5 * self._weights[order], weight))
        taken = np.sort(order[: max(1, chosen)])
        self._is_free[taken] = False
        return spans_of(taken)


def spans_of(slabs: npt.NDArray[np.int64]) -> list[Span]:
    """Join ascending numbers of slabs that follow each other."""
    if not slabs.size:
        return []
    breaks = np.flatnonzero(np.diff(slabs) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(slabs, breaks)]


def mark(spans: Iterable[Span], count: int) -> BoolArray:
    marked = np.zeros(count, dtype=np.bool_)
    for first, stop in spans:
        marked[first:stop] = True
    return marked


def cut(spans: Sequence[Span], share: float, *, from_end: bool) -> list[list[Span]]:
    """Cut slabs in two, the first part from the end at which the device begins."""
    slabs = np.concatenate([np.arange(first, stop) for first, stop in spans])
    middle = round(share * slabs.size)
    if from_end:
        parts = [slabs[slabs.size - middle :], slabs[: slabs.size - middle]]
    else:
        parts = [slabs[:middle], slabs[middle:]]
    return [spans_of(part) for part in parts if part.size]


def weigh_slabs(
    samples: Sequence[Sequence[tuple[float, float]]], count: int
) -> npt.NDArray[np.float64]:
    """Estimate how work is spread over slabs from what devices have sampled."""
    points = [
        (place, seconds / (sum(s for _, s in one) / len(one)))
        for one in samples
        if one
        for place, seconds in one
    ]
    if not points:
        return np.ones(count)
    points.sort()
    places, work = (np.array(column) for column in zip(*points, strict=True))
    if places.size >= 3:
        # Each place with its neighbours: a single disturbed launch is no region of heavy work.
        padded = np.concatenate([work[:1], work, work[-1:]])
        work = np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
    middles = (np.arange(count) + 0.5) / count
    found = np.interp(middles, places, work)
    return np.asarray(found * (count / found.sum()), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpeed:
    """What is known of a device while work is given out."""

    rate: float | None
    """Work that it does per second, transfers of results included; None while it is not known."""
    free_at_s: float
    """When it will have done what it has been given, about."""
    doubt: float = 1.0
    """By which factor the rate may be wrong either way, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePolicy:
    """Rules for giving out work."""

    first_share: float
    """Part of its fair share that a device gets at first."""
    shortest_s: float
    """The least that is worth a launch, in seconds."""
    is_known_even: bool = False

    @classmethod
    def make(cls, settings: BalanceSettings, *, is_known_even: bool) -> "SharePolicy":
        return cls(
            first_share=settings.first_share,
            shortest_s=settings.shortest_s * (_LONGER_EVEN if is_known_even else 1.0),
            is_known_even=is_known_even,
        )

    def allot(
        self,
        speeds: Sequence[DeviceSpeed],
        device: int,
        left: float,
        now_s: float,
        *,
        is_first: bool,
    ) -> float:
        """Say how much of the work left a device gets next."""
        own = speeds[device]
        if own.rate is None:
            return left / len(speeds)
        if any(one.rate is None for one in speeds):
            return own.rate * self.shortest_s + _WHILE_UNKNOWN * left
        fair = own.rate * (finish_time(speeds, left, now_s) - max(own.free_at_s, now_s))
        least = own.rate * self.shortest_s
        if fair >= left - least and left <= _LITTLE * least:
            return left
        if fair < _LEAST_SHARE * least:
            return 0.0
        if fair <= 2 * least:
            return fair
        later = _LATER_EVEN if self.is_known_even else _LATER_UNEVEN
        part = self.first_share if is_first else later
        # Without harm it can be given this much if it is slower and all others are faster.
        slow = own.rate / own.doubt
        fast = sum((one.rate or 0.0) * one.doubt for one in speeds) - own.rate * own.doubt
        return max(min(part * min(fair, left), left * slow / (slow + fast)), least)

    def cuts(self, weight: float, rate: float | None, *, is_first: bool) -> bool:
        """Tell whether a part is run in two launches: if the first has something to show."""
        is_short = weight < _SHORT * (rate or 0.0) * self.shortest_s
        return not is_short and (is_first or not self.is_known_even)


def finish_time(speeds: Sequence[DeviceSpeed], left: float, now_s: float) -> float:
    """Say when all would be done at the same time if the work left is divided so, in seconds."""
    known = sorted((max(one.free_at_s, now_s), one.rate) for one in speeds if one.rate is not None)
    rate, started = 0.0, 0.0
    finish = now_s
    for place, (free_at_s, own) in enumerate(known):
        rate += own
        started += own * free_at_s
        finish = (left + started) / rate
        if place + 1 == len(known) or finish <= known[place + 1][0]:
            break
    return finish
