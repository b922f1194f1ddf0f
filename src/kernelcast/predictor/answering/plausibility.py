"""What a launch can have taken, by all that is known of it beside its observations.

An observation contradicts an estimate that differs from it by a factor of more than 4, or of more
than twice the estimate's interval on the logarithmic scale where that is wider. A whole run on a
busy machine takes up to 3.5 times what samples say, and the worst bias of samples that was met is a
factor of 2.6: what is nearer than a factor of 4 may well be true.

What contradicts physics is impossible, however often it is observed. So is what is that much less
than samples say on a device whose events tell wrong times.
"""

import math
import os
from dataclasses import dataclass
from typing import Final

from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.estimates import Estimate, Tier
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange

FAR: Final = 4.0
"""Factor beyond which times contradict each other."""
SAMPLES: Final = "samples of the launch say"
MODEL: Final = "the analytic model says"
_SOURCES: Final = {
    Tier.ANALYTIC: MODEL,
    Tier.LEARNED: "a model of one's own says",
    Tier.SIZES: "other sizes of the kernel say",
}
# Measured peaks are beaten by faster clocks and by kernels that mix loads and stores.
_PEAK_SLACK: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A time that no run can be below, and why."""

    # No device starts and ends a kernel in less: the fastest need about a microsecond.
    seconds: float = 1e-7
    reason: str = "no device runs a kernel in less than 100 ns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """An estimate that observations are held against."""

    seconds: float
    factor: float = FAR
    source: str = SAMPLES
    """Whose estimate it is, to be followed by the time."""
    by_clock: bool = False
    """Whether the host's clock has told it, since the device's events tell wrong times."""

    def holds(self, seconds: float) -> bool:
        return self.seconds / self.factor <= seconds <= self.seconds * self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausible:
    """What is known of a launch beside its observations."""

    floor: Floor = Floor()
    """By physics."""
    launch: Floor = Floor()
    """By the time of a launch that does nothing: less is only doubted."""
    expected: tuple[Expected, ...] = ()
    """By estimates; one that is near suffices."""

    def supports(self, seconds: float) -> bool:
        least_s = max(self.floor.seconds, self.launch.seconds)
        return seconds >= least_s and any(one.holds(seconds) for one in self.expected)

    def exclude(self, seconds: float) -> str:
        """Say why no run can take so little; empty if one can."""
        if seconds < self.floor.seconds:
            return f"less than {self.floor.seconds:.3g} s is impossible: {self.floor.reason}"
        for one in self.expected:
            if one.by_clock and seconds < one.seconds / one.factor:
                return (
                    f"{one.source} {one.seconds:.3g} s by the host's clock, and this device's "
                    "events tell wrong times: report seconds by the clock"
                )
        return ""

    def contradict(self, seconds: float) -> str:
        """Say what speaks against a time; empty if nothing does."""
        if reason := self.exclude(seconds):
            return reason
        if seconds < self.launch.seconds:
            return f"less than {self.launch.seconds:.3g} s is unlikely: {self.launch.reason}"
        if not self.expected or self.supports(seconds):
            return ""
        nearest = min(self.expected, key=lambda one: abs(math.log(one.seconds / seconds)))
        return f"{nearest.source} {nearest.seconds:.3g} s"


def expect(estimate: Estimate, *, by_clock: bool = False) -> Expected:
    interval = estimate.interval
    width = max(math.log(interval.high / interval.seconds),
                math.log(interval.seconds / interval.low))  # fmt: skip
    return Expected(
        seconds=interval.seconds,
        factor=max(FAR, math.exp(min(2.0 * width, 50.0))),
        source=_SOURCES.get(estimate.tier, SAMPLES),
        by_clock=by_clock,
    )


def bound_launch(device: DeviceDescription, ndrange: NDRange) -> Floor:
    """Give the time below which no launch of this size is, whatever it does."""
    units, items = _count_units(device), ndrange.work_item_count
    # Three instructions a cycle on 64 lanes of a byte each, at 6 GHz: below 1.2e12.
    floor = Floor(
        seconds=items / (2e12 * units),
        reason=f"{items:,} work-items on {units} compute units",
    )
    return max(Floor(), floor, key=lambda one: one.seconds)


def doubt_launch(machine: MachineDescription | None) -> Floor:
    """Give the time below which a launch on a calibrated device is unlikely to be."""
    launch = None if machine is None else machine.costs.get("launch_s")
    if launch is None:
        return Floor()
    reason = f"a launch that does nothing takes {launch.value:.3g} s on this device"
    # A launch takes a quarter of one that does nothing at least: that was measured on another day.
    # It is a reason for doubt, no bound: one of PoCL's ends in 180 ns by its event where another
    # that does as little, and wakes a thread, takes 7 us.
    return Floor(seconds=0.25 * launch.value, reason=reason)


def bound_traffic(
    moved_bytes: float, device: DeviceDescription, machine: MachineDescription | None
) -> Floor:
    """Give the time in which a device cannot have moved so many different bytes."""
    units = _count_units(device)
    # Beyond its nearest cache the best core of today moves 64 bytes a cycle at 6 GHz, a GPU's unit
    # 128 bytes at 2 GHz: below 0.4e12 bytes/s.
    floor = Floor(
        seconds=moved_bytes / (1e12 * units),
        reason=f"{moved_bytes / 1e6:,.3g} MB move, by {units} compute units",
    )
    memory = None if machine is None else machine.memory("global")
    if machine is None or memory is None:
        return floor
    rates = [one.value for one in memory.load_bytes_per_s.values()]
    rates += [memory.copy_bytes_per_s.value] if memory.copy_bytes_per_s else []
    if not rates:
        return floor
    cached_bytes = 0.0
    for cache in machine.caches:
        sizes = [one.value for one in (cache.size_bytes, cache.reported_size_bytes) if one]
        shared = cache.shared_by.value if cache.shared_by else 1
        cached_bytes += max(sizes, default=0) * max(1.0, _count_units(device) / max(shared, 1))
    rest = moved_bytes - cached_bytes
    peak = max(rates)
    if rest <= 0 or rest / (_PEAK_SLACK * peak) < floor.seconds:
        return floor
    return Floor(
        seconds=rest / (_PEAK_SLACK * peak),
        reason=f"{rest / 1e6:,.3g} MB more than its caches hold move, at {peak / 1e9:,.3g} GB/s",
    )


def _count_units(device: DeviceDescription) -> int:
    """Count the compute units that may work: runtimes run parts of a CPU on all of its cores."""
    cores = os.cpu_count() or 1 if device.kind is DeviceKind.CPU else 1
    return max(device.compute_units, cores)
