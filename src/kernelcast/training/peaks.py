"""A device's peaks in four numbers, for features that mean the same on every device."""

import math
from dataclasses import dataclass

from kernelcast.records.device import MaybeKnown
from kernelcast.records.machine import MachineDescription

_FLOATS = ("fp32_fma", "fp32_add", "fp32_mul")


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePeaks:
    """What a device can do at most; NaN is what is not known."""

    compute_units: MaybeKnown = math.nan
    cache_bytes: MaybeKnown = math.nan
    bandwidth_bytes_per_s: MaybeKnown = math.nan
    """Loads from global memory, of the best element size."""
    flops_per_s: MaybeKnown = math.nan
    """Single-precision operations per second."""


UNKNOWN = DevicePeaks()


def read_peaks(machine: MachineDescription) -> DevicePeaks:
    memory = machine.memory("global")
    loads = [one.value for one in memory.load_bytes_per_s.values()] if memory else []
    kinds = (machine.instruction(name) for name in _FLOATS)
    rates = [one.peak_per_s.value for one in kinds if one is not None and one.peak_per_s]
    sizes = [one.size_bytes.value for one in machine.caches if one.size_bytes]
    return DevicePeaks(
        compute_units=math.nan
        if machine.compute_units is None
        else float(machine.compute_units.value),
        cache_bytes=float(max(sizes, default=math.nan)),
        bandwidth_bytes_per_s=max(loads, default=math.nan),
        flops_per_s=max(rates, default=math.nan),
    )
