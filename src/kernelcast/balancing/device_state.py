"""What the host knows of a launch while devices run it, and of each device."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.messages import Collect, Prepare
from kernelcast.balancing.work_queue import mark
from kernelcast.records.balance import Bar, SlabSpace, Span
from kernelcast.records.errors import DeviceError, InputError, KernelcastError

BoolArray = npt.NDArray[np.bool_]


_ROUGHLY = 2.0
# A device that would do less than this share of the work is left out: devices that share
# processors or memory take more from each other than that.
_LEAST_SHARE = 0.05
# So long it may take in any case: what short launches cost beside their work tells nothing of long
# ones.
_FAIR_CHANCE_S = 50e-3


class Stage(Enum):
    """What a device is doing."""

    PREPARING = auto()
    WARMING = auto()
    """Running its first slab: drivers do at the first launch what they have put off."""
    SAMPLING = auto()
    RUNNING = auto()
    IDLE = auto()
    COLLECTING = auto()
    FAILED = auto()


@dataclass(slots=True, kw_only=True)
class DeviceState:
    """A device and what it has done."""

    anchor: float
    """From where it takes slabs: 0 is the first, 1 the last."""
    given: BoolArray
    """Slabs that it was ever given."""
    owned: BoolArray
    """Those that its results are, or will be, taken of."""
    handed_over: BoolArray
    """Those whose results it was told to hand over."""
    collected: BoolArray
    """Those whose results are in the shared memory."""
    stage: Stage = Stage.PREPARING
    outstanding: int = 0
    queued: list[tuple[tuple[Span, ...], float]] = field(default_factory=list)
    """Slabs that it has been given and has not reported, and their work."""
    rate: float | None = None
    """Work per second while it runs, without the transfer of results."""
    samples: list[tuple[tuple[Span, ...], float]] = field(default_factory=list)
    """What it ran at each place that all devices sample, and how long that took."""
    runs: list[tuple[tuple[Span, ...], float]] = field(default_factory=list)
    """What it ran beyond its samples, and how long that took."""
    doubt: float = _ROUGHLY
    """By which factor its speed may differ from what is known, either way."""
    transfer_s: float = 0.0
    """Time that the results of a unit of work take, in seconds."""
    begun_s: float = 0.0
    """When it began what it is at, about."""
    estimated_share: float = 0.0
    estimated_s: float | None = None
    """What it would need for the whole launch by its samples, in seconds."""
    error_factor: float = 1.0
    """By which that may be wrong either way."""
    real_s: float = 0.0
    error: KernelcastError | None = None
    is_gone: bool = False
    """Whether it has failed for good, and not this launch alone."""
    is_left_out: bool = False
    """Whether it is too slow to be of use, and rests until the others are done."""

    @classmethod
    def make(cls, count: int, anchor: float) -> "DeviceState":
        """Make one that has done nothing."""
        given, owned, handed, collected = (np.zeros(count, dtype=np.bool_) for _ in range(4))
        return cls(anchor=anchor, given=given, owned=owned, handed_over=handed, collected=collected)

    @property
    def is_alive(self) -> bool:
        """Whether it has not failed."""
        return self.stage is not Stage.FAILED

    @property
    def can_work(self) -> bool:
        """Whether it may be given slabs, now or later."""
        return self.is_alive and not self.is_left_out

    @property
    def done(self) -> BoolArray:
        """Slabs that it has run, and of which its results are to be taken."""
        waiting = [slabs for spans, _ in self.queued for slabs in spans]
        return self.owned & ~mark(waiting, self.owned.size)

    @property
    def slowest_rate(self) -> float:
        """Slabs per second at the place where its samples took longest; 0 before the first."""
        return 1 / max((pace for _, pace in self.list_paces()), default=math.inf)

    @property
    def effective_rate(self) -> float | None:
        """Work per second, transfer of results included; None if nobody knows yet."""
        return None if self.rate is None else 1 / (1 / self.rate + self.transfer_s)

    @property
    def free_at_s(self) -> float:
        """When it will have done and handed over what it has been given, about."""
        rate = self.effective_rate
        working_s = sum(work for _, work in self.queued) / rate if rate else 0.0
        owed = int((self.done & ~self.collected).sum())
        return self.begun_s + working_s + owed * self.transfer_s

    def is_too_slow(self, others_rate: float) -> bool:
        """Tell whether it would do next to nothing beside others of a known rate together."""
        rate = self.effective_rate
        return rate is not None and rate * self.doubt < _LEAST_SHARE * others_rate

    def is_hopeless(self, now_s: float, others_rate: float) -> bool:
        """Tell whether it has been at its samples for so long that it must be too slow.

        Parameters
        ----------
        others_rate : float
            What the others do per second at least, together.
        """
        spent_s = now_s - self.begun_s
        work = sum(_count(spans) for spans, _ in self.queued)
        return spent_s > _FAIR_CHANCE_S and work < _LEAST_SHARE * others_rate * spent_s

    def learn(self, weigh: Callable[[Sequence[Span]], float]) -> None:
        """Tell its speed from all that it ran.

        The latest runs tell most, for work may differ from place to place. But a light place does
        not make a device fast: it counts as no faster than it has been on all its work so far.
        """
        if not self.samples and not self.runs:
            return
        paces = [(weigh(spans), max(spent_s, 1e-9)) for spans, spent_s in self.samples + self.runs]
        self.rate = sum(work for work, _ in paces) / sum(spent_s for _, spent_s in paces)
        count = len(self.samples)
        if self.runs:
            self.doubt, lately = 1.0, 0.0
            for work, spent_s in paces[count:]:
                lately = (lately + spent_s / work) / 2 if lately else spent_s / work
            self.rate = min(self.rate, 1 / lately)
        elif count > 1:
            self.doubt = _spread([spent_s / work for work, spent_s in paces])

    def list_paces(self) -> list[tuple[float, float]]:
        """Give the middle of each sample as a share of the slabs, and its seconds per slab."""
        return [
            ((spans[0][0] + spans[-1][1]) / 2 / self.given.size, spent_s / _count(spans))
            for spans, spent_s in self.samples
        ]

    def predict(self, count: int) -> None:
        """Estimate its time for the whole launch of so many slabs, by its samples."""
        if self.rate is not None and self.samples:
            self.estimated_s = count / self.rate
            self.error_factor = _spread([pace for _, pace in self.list_paces()])


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLaunch:
    """What a launch asks of devices."""

    space: SlabSpace
    prepare: Prepare
    collect: Callable[[int, BoolArray], Collect]
    """Gives the command for the results of some slabs, of a device by its number."""
    result_bytes: Mapping[int, int] = field(default_factory=dict)
    """Bytes that all devices together give back, by buffer, unless they write in place."""
    is_known_even: bool = False


@dataclass(slots=True, kw_only=True)
class Execution:
    """How a launch went; times are by the devices' clock."""

    states: list[DeviceState]
    bars: list[Bar] = field(default_factory=list)
    estimated_end_s: float | None = None
    """When all results would be there, said once all speeds were known."""
    first_s: float = 0.0
    """When all devices were prepared."""
    last_s: float = 0.0
    """When the last result was there."""
    started_s: float = 0.0
    merging_s: float = 0.0
    ended_s: float = 0.0
    """When the host began, began to merge results, and was done."""

    def explain_end(self) -> KernelcastError:
        """Say why nobody is left."""
        return join_errors([one.error for one in self.states if one.error is not None])


def join_errors(errors: Sequence[KernelcastError]) -> KernelcastError:
    """Make one error of the devices' errors: the launch's fault if every device refuses it."""
    if len(errors) == 1 or all(isinstance(one, InputError) for one in errors):
        return errors[0]
    return DeviceError("; ".join(str(one) for one in errors))


def _count(spans: Sequence[Span]) -> int:
    return sum(stop - first for first, stop in spans)


def _spread(paces: Sequence[float]) -> float:
    """Give the factor by which the mean of some times may be off: two standard errors."""
    if len(paces) < 2:
        return _ROUGHLY
    error = float(np.std(paces, ddof=1) / np.mean(paces)) / math.sqrt(len(paces))
    return 1 + 2 * error
