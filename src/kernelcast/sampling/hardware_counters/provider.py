"""What every source of hardware counters offers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kernelcast.records.device import DeviceKind
from kernelcast.records.hardware_counts import HardwareCounts

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a provider can count on this machine."""

    is_available: bool
    reason: str
    """What can be counted, or why nothing can and what to do about it."""
    counter_names: tuple[str, ...] = ()
    """Counters that work; empty where none does."""


class HardwareCounterProvider(Protocol):
    """A source of hardware counters; an optional part of a measurement."""

    @property
    def name(self) -> str:
        """Short name, stored with the counts."""
        ...

    @property
    def device_kinds(self) -> frozenset[DeviceKind]:
        """Kinds of devices whose kernels it counts.

        Counters of this process's threads say nothing of a kernel on a GPU.
        """
        ...

    def probe(self) -> Availability:
        """Try the counters; never raises."""
        ...

    def count(self, work: Callable[[], T]) -> tuple[T, HardwareCounts]:
        """Run some work and count what happens meanwhile.

        Parameters
        ----------
        work : callable
            Takes nothing; returns when the device has finished.

        Raises
        ------
        DeviceError
            If nothing can be counted; says why. What the work raises passes unchanged.
        """
        ...
