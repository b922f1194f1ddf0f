"""Samples slabs of a launch for real: what has been sampled is done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kernelcast.balancing.messages import Sample, SlabSamples
from kernelcast.launches.settings import DEFAULT_COVERAGE
from kernelcast.models.linear import fit_linear, make_interval
from kernelcast.records.balance import SlabSpace, Span
from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, SaturationPoint
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Interval
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import SampleRun
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import sample

_FEWEST_TO_SAMPLE = 96
_FEWEST_TO_TRY = 8
_OVERHEAD_S = 10e-6
# Launches after which the host is told of the speed: a slow device's samples take their time.
_MOST_HINTS = 4


class SamplingStoppedError(Exception):
    """The host wants no more samples; never leaves this package."""


class BoxRunner(Protocol):
    """What runs boxes of work-groups for real."""

    def run(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Run boxes one after the other; give each one's time in seconds."""


@dataclass(slots=True, kw_only=True)
class SlabLaunch:
    """A launch whose work-groups are slabs, for the sampler: a `PreparedLaunch`."""

    launch: BoxRunner
    space: SlabSpace
    device: DeviceDescription
    kernel_digest: str
    is_stopped: Callable[[], bool] = lambda: False
    """Tells whether the host wants no more samples; asked before each launch."""
    tell: Callable[[float], None] = lambda _: None
    """Is told of the first speeds seen, in slabs per second."""
    spans: list[Span] = field(default_factory=list)
    rates: list[tuple[float, float]] = field(default_factory=list)
    launch_overhead_s: float = _OVERHEAD_S

    @property
    def ndrange(self) -> NDRange:
        """One work-group per slab."""
        return NDRange(global_size=(self.space.count,), local_size=(1,))

    @property
    def saturation(self) -> SaturationPoint:
        """A slab at a time: it is thick enough for that."""
        assumed = Trait(value=1, source=TraitSource.ASSUMED)
        return SaturationPoint(p_sat=assumed, concurrency=1, saturated_from=1)

    def warm_up(self, box: GroupBox) -> None:
        """Run a slab whose time does not count: compilation may be part of it."""
        self._run(box)

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Do nothing: the work itself keeps the device busy."""

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Run slabs and time them.

        Raises
        ------
        SamplingStoppedError
            If the host wants no more.
        """
        durations = []
        for box in boxes:
            duration_s = self._run(box)
            (first,), (extent,) = box.start, box.shape
            middle = (first + extent / 2) / self.space.count
            self.rates.append((middle, duration_s / extent))
            durations.append(duration_s)
        if durations and len(self.rates) <= _MOST_HINTS:
            self.tell(sum(box.shape[0] for box in boxes) / sum(durations))
        return durations

    def measure_contention(self) -> Contention | None:
        """Give none: slabs are whole work, timed as it is now."""
        return None

    def time_whole(self) -> float:
        """Refuse: samples are no whole run."""
        msg = "slabs that count are not run twice"
        raise KernelcastError(msg)

    def _run(self, box: GroupBox) -> float:
        if self.is_stopped():
            raise SamplingStoppedError
        (first,), (extent,) = box.start, box.shape
        span = (first, first + extent)
        [duration_s] = self.launch.run([self.space.box(span)])
        self.spans.append(span)
        return duration_s


def sample_slabs(slabs: SlabLaunch, order: Sample) -> SlabSamples:
    """Sample slabs by the rules of an estimate, or a few where there are few."""
    interval: Interval | None = None
    is_even = True
    try:
        if slabs.space.count >= _FEWEST_TO_SAMPLE:
            plan = SamplingPlan(
                budget=order.budget, seed=order.seed, is_known_even=order.is_known_even
            )
            run = sample(slabs, plan)
            interval, is_even = _read(run), run.is_even
        elif slabs.space.count >= _FEWEST_TO_TRY:
            interval = _try_few(slabs, order.seed)
    except SamplingStoppedError:
        pass
    return SlabSamples(
        spans=() if order.restored else tuple(slabs.spans),
        interval=interval,
        rates=tuple(slabs.rates),
        is_even=is_even,
    )


def _read(run: SampleRun) -> Interval:
    return make_interval(fit_linear(run), coverage=DEFAULT_COVERAGE)


def _try_few(slabs: SlabLaunch, seed: int) -> Interval:
    """Run a slab to warm up and time two others."""
    count = slabs.space.count
    places = [(count // 2 + seed) % count, count // 4, (3 * count) // 4]
    chosen = list(dict.fromkeys((place + seed) % count for place in places))
    slabs.warm_up(GroupBox(start=(chosen[0],), shape=(1,)))
    durations = slabs.time_boxes([GroupBox(start=(one,), shape=(1,)) for one in chosen[1:]])
    seconds = sum(durations) / len(durations) * count
    spread = max(durations) / min(durations)
    return Interval(
        seconds=seconds, low=seconds / spread, high=seconds * spread, coverage=DEFAULT_COVERAGE
    )
