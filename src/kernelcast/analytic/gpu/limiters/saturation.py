"""Bandwidth of the DRAM by concurrency: Little's law where nobody measured it."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Self

from kernelcast.records.errors import InputError
from kernelcast.records.machine import Curve, MachineDescription

ELEMENT_BYTES = 8
"""Bytes that a work-item of the published saturation curves has in flight."""
_MIXED = 0.05
"""Part of stores from which a stream is as slow as a copy: the bus turns around anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """Bandwidth over concurrent work-items of 8 bytes each."""

    items: tuple[float, ...]
    """Work-items per compute unit, ascending."""
    bytes_per_s: tuple[float, ...]
    """Of the whole device."""

    def at(self, items: float) -> float:
        """Give the bandwidth, proportional below the first point, flat above the last one.

        Examples
        --------
        >>> curve = Saturation(items=(100.0, 200.0), bytes_per_s=(4e9, 6e9))
        >>> curve.at(50), curve.at(150), curve.at(999)
        (2000000000.0, 5000000000.0, 6000000000.0)
        """
        place = bisect_right(self.items, items)
        if place == 0:
            return self.bytes_per_s[0] * items / self.items[0]
        if place == len(self.items):
            return self.bytes_per_s[-1]
        left, right = self.items[place - 1], self.items[place]
        low, high = self.bytes_per_s[place - 1], self.bytes_per_s[place]
        return low + (high - low) * (items - left) / (right - left)


@dataclass(frozen=True, slots=True, kw_only=True)
class DramRate:
    """Bandwidth of the DRAM."""

    load: Saturation
    copy: Saturation
    """Of loads alone, and of as many loads as stores."""

    @classmethod
    def flat(cls, bytes_per_s: float) -> Self:
        """Make one that depends on nothing."""
        # The first point is so low that no launch falls below it.
        one = Saturation(items=(1e-9,), bytes_per_s=(bytes_per_s,))
        return cls(load=one, copy=one)

    def at(self, items: float, store_share: float) -> float:
        """Give bytes per second.

        Parameters
        ----------
        items : float
            Work-items per compute unit with 8 bytes in flight each.
        store_share : float
            Stored bytes over all.
        """
        mixed = min(store_share / _MIXED, 1.0)
        return (1 - mixed) * self.load.at(items) + mixed * self.copy.at(items)


def read_dram_rate(machine: MachineDescription, notes: list[str]) -> DramRate:
    """Take the bandwidth of the DRAM from a machine description.

    Parameters
    ----------
    machine : MachineDescription
        Its curves ``saturation/global/load`` and ``copy``, else bandwidth and latency count.

    Raises
    ------
    InputError
        If no bandwidth is known.
    """
    memory = machine.memory("global")
    loads = [one.value for one in memory.load_bytes_per_s.values()] if memory else []
    copy = memory.copy_bytes_per_s.value if memory and memory.copy_bytes_per_s else 0.0
    if not loads and not copy:
        msg = (
            f"machine {machine.id}: the bandwidth of global memory is missing, and the GPU model "
            "cannot do without it; `kernelcast calibrate --only bandwidth` measures it, or write "
            "it into the machine file"
        )
        raise InputError(msg)
    peaks = {"load": max(loads, default=copy), "copy": copy or max(loads)}
    found = {name: _read_curve(machine, name, peak, notes) for name, peak in peaks.items()}
    return DramRate(load=found["load"], copy=found["copy"])


def _read_curve(
    machine: MachineDescription, name: str, peak: float, notes: list[str]
) -> Saturation:
    curve: Curve | None = machine.curve(f"saturation/global/{name}")
    if curve is not None:
        return Saturation(items=curve.x, bytes_per_s=curve.y)
    memory = machine.memory("global")
    if memory is not None and memory.latency_s is not None and machine.compute_units is not None:
        enough = peak * memory.latency_s.value / ELEMENT_BYTES / machine.compute_units.value
        notes.append(f"saturation of {name}: not measured, from latency by Little's law")
        return Saturation(items=(enough,), bytes_per_s=(peak,))
    notes.append(f"saturation of {name}: not measured and no latency known, taken as saturated")
    return DramRate.flat(peak).load
