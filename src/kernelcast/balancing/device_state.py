"""What the host knows of a launch while devices run it, and of each device."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.messages import Collect, MemoryRange, Prepare, SlabSamples
from kernelcast.records.balance import Bar, SlabSpace, Span
from kernelcast.records.errors import DeviceError, InputError, KernelcastError

BoolArray = npt.NDArray[np.bool_]


_ROUGHLY = 2.0
# A device that would do less than this share of the work is left out: devices that share
# processors or memory take more from each other than that.
_LEAST_SHARE = 0.05
# So long, as a share of the others' time for everything, a device may take for its first slabs:
# drivers do at the first launch what they have put off.
_PATIENCE = 0.25
# And so long in any case: what short launches cost beside their work tells nothing of long ones.
_FAIR_CHANCE_S = 20e-3
# So many places it must have been too slow at: one may be where the work is heavy.
_FEWEST_HINTS = 2


class Stage(Enum):
    """What a device is doing."""

    PREPARING = auto()
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
    ran: BoolArray
    """Slabs that it has run."""
    owned: BoolArray
    """Those that its results are to be taken of."""
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
    lately: float | None = None
    """Seconds per work of its latest runs; None before the first."""
    hints: list[float] = field(default_factory=list)
    """Work per second of its first samples, each at another place."""
    seen_work: float = 0.0
    seen_s: float = 0.0
    """Work of its samples and runs, and the time they took."""
    transfer_s: float = 0.0
    """Time that the results of a unit of work take, in seconds."""
    begun_s: float = 0.0
    """When it began what it is at, about."""
    has_begun: bool = False
    """Whether it has been given work beyond its samples."""
    sampled: SlabSamples | None = None
    estimated_share: float = 0.0
    real_s: float = 0.0
    error: KernelcastError | None = None
    is_gone: bool = False
    """Whether it has failed for good, and not this launch alone."""
    is_told: bool = False
    """Whether it was told that no more samples are wanted."""
    is_late: bool = False
    """Whether it took its buffers while results were already being written into them."""
    is_left_out: bool = False
    """Whether it is too slow to be of use, and rests until the others are done."""

    @classmethod
    def make(cls, count: int, anchor: float) -> "DeviceState":
        """Make one that has done nothing."""
        ran, owned, given, collected = (np.zeros(count, dtype=np.bool_) for _ in range(4))
        return cls(anchor=anchor, ran=ran, owned=owned, handed_over=given, collected=collected)

    @property
    def is_alive(self) -> bool:
        """Whether it has not failed."""
        return self.stage is not Stage.FAILED

    @property
    def can_work(self) -> bool:
        """Whether it may be given slabs, now or later."""
        return self.is_alive and not self.is_late and not self.is_left_out

    @property
    def effective_rate(self) -> float | None:
        """Work per second, transfer of results included; None if nobody knows yet."""
        return None if self.rate is None else 1 / (1 / self.rate + self.transfer_s)

    @property
    def doubt(self) -> float:
        """By which factor its speed may differ from what is known, either way."""
        if self.has_begun:
            return 1.0
        interval = None if self.sampled is None else self.sampled.interval
        if interval is None or not interval.low or not interval.high:
            return _ROUGHLY
        return math.sqrt(interval.high / interval.low)

    @property
    def free_at_s(self) -> float:
        """When it will have done and handed over what it has been given, about."""
        rate = self.effective_rate
        working_s = sum(work for _, work in self.queued) / rate if rate else 0.0
        owed = int(np.count_nonzero(self.owned & ~self.collected))
        return self.begun_s + working_s + owed * self.transfer_s

    def is_too_slow(self, others_rate: float) -> bool:
        """Tell whether it would do next to nothing beside others of a known rate together."""
        rate = self.effective_rate
        return rate is not None and rate * self.doubt < _LEAST_SHARE * others_rate

    def is_hopeless(self, now_s: float, others_rate: float) -> bool:
        """Tell whether its samples so far, or that there are none yet, show that it is too slow."""
        spent_s = now_s - self.begun_s
        if spent_s < _FAIR_CHANCE_S:
            return False
        if len(self.hints) >= _FEWEST_HINTS:
            return max(self.hints) < _LEAST_SHARE * others_rate
        return spent_s * others_rate > _PATIENCE * self.ran.size

    def note_hint(self, rate: float) -> None:
        """Learn from one of the first samples."""
        self.hints.append(rate)
        self.rate = rate

    def note_sampled(self, work: float, rate: float) -> None:
        """Learn from samples: so much work, at an estimated rate."""
        self.rate = rate
        self.seen_work, self.seen_s = work, work / rate

    def note_speed(self, weight: float, seconds: float) -> None:
        """Learn from a run: the latest tells most, for work may differ from place to place.

        But a light place does not make a device fast: it counts as no faster than it has been on
        all its work so far, samples included.
        """
        if weight <= 0 or seconds <= 0:
            return
        lately = seconds / weight
        if self.lately is not None:
            lately = (lately + self.lately) / 2
        self.lately = lately
        self.seen_work += weight
        self.seen_s += seconds
        self.rate = min(1 / lately, self.seen_work / self.seen_s)


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
    restored: Mapping[int, MemoryRange] = field(default_factory=dict)
    """What buffers hold again after samples, by position, where results are compared."""


@dataclass(slots=True, kw_only=True)
class Execution:
    """How a launch went; times are by the devices' clock."""

    states: list[DeviceState]
    bars: list[Bar] = field(default_factory=list)
    estimated_end_s: float | None = None
    """When all results would be there, said once all speeds were known."""
    first_s: float = 0.0
    """Begin of the first sample."""
    last_s: float = 0.0
    """When the last result was there."""

    def explain_end(self) -> KernelcastError:
        """Say why nobody is left."""
        return join_errors([one.error for one in self.states if one.error is not None])


def join_errors(errors: Sequence[KernelcastError]) -> KernelcastError:
    """Make one error of the devices' errors: the launch's fault if every device refuses it."""
    if len(errors) == 1 or all(isinstance(one, InputError) for one in errors):
        return errors[0]
    return DeviceError("; ".join(str(one) for one in errors))
