"""The Roofline model: the slowest of the core and each level of the hierarchy (section 1.2.1)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelcast.analytic.cpu.in_core import InCoreTerms
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.errors import InputError

CORE = "CPU"
"""The ceiling that is the core itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One bound on the speed of a loop.

    Parameters
    ----------
    level : str
        `CORE`, or the level that data comes from.
    cycles : float
        Core cycles per cache line of work, of all cores together.
    volume_bytes : float
        Bytes per cache line of work; 0 for the core.
    bytes_per_s : float
        Bandwidth of the cores that are busy; 0 for the core.
    kernel : str
        The streaming loop that measured the bandwidth.
    """

    level: str
    cycles: float
    volume_bytes: float = 0.0
    bytes_per_s: float = 0.0
    kernel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePrediction:
    """Bounds on the speed of a loop, the largest time being the prediction.

    Parameters
    ----------
    ceilings : tuple of Ceiling
        The core first, then levels, nearest first.
    notes : tuple of str
        What was assumed or left out.
    """

    ceilings: tuple[Ceiling, ...]
    notes: tuple[str, ...] = ()

    @property
    def bottleneck(self) -> Ceiling:
        """The bound that decides; the nearest of equals."""
        return max(self.ceilings, key=lambda one: one.cycles)

    @property
    def cycles(self) -> float:
        """Core cycles per cache line of work."""
        return self.bottleneck.cycles

    def ceiling(self, level: str) -> Ceiling | None:
        """Find a bound."""
        return next((one for one in self.ceilings if one.level == level), None)


def predict_roofline(
    volumes: CacheVolumes,
    machine: CpuMachine,
    in_core: InCoreTerms,
    *,
    loaded_bytes: float | None = None,
    cores: int = 1,
) -> RooflinePrediction:
    """Compare the core with all levels of the hierarchy.

    Parameters
    ----------
    volumes : CacheVolumes
        Traffic of one core.
    machine : CpuMachine
        Measured bandwidths.
    in_core : InCoreTerms
        Time of the core.
    loaded_bytes : float or None
        Bytes that the core loads per cache line of work: the variant that counts flops compares
        them with the bandwidth of L1. None is the in-core variant, whose terms hold the loads.
    cores : int
        Busy cores; `volumes` are of one of them.

    Raises
    ------
    InputError
        If no bandwidth is known at all.
    """
    notes = [*machine.notes, *volumes.notes, *in_core.notes]
    core = in_core.hidden if loaded_bytes is not None else in_core.cycles
    ceilings = [Ceiling(level=CORE, cycles=core / cores)]
    for level, volume, loaded, stored in _levels(volumes, machine, loaded_bytes):
        rate = machine.streams.reached(level, loaded, stored, cores)
        if rate is None:
            notes.append(f"{level}: its bandwidth is not known; it is left out")
            continue
        ceilings.append(
            Ceiling(
                level=level, cycles=volume / rate.bytes_per_s * machine.clock_hz,
                volume_bytes=volume, bytes_per_s=rate.bytes_per_s, kernel=rate.kernel,
            )
        )  # fmt: skip
    if len(ceilings) == 1:
        msg = (
            f"{machine.name}: no bandwidth is known; measure them with `kernelcast calibrate "
            "--only caches --only bandwidth`"
        )
        raise InputError(msg)
    return RooflinePrediction(ceilings=tuple(ceilings), notes=tuple(dict.fromkeys(notes)))


def _levels(
    volumes: CacheVolumes, machine: CpuMachine, loaded_bytes: float | None
) -> Iterator[tuple[str, float, float, float]]:
    """Give levels, bytes from each, and lines in both directions."""
    if loaded_bytes is not None:
        yield machine.caches[0].name, loaded_bytes, 1.0, 0.0
    for one in volumes.transfers():
        yield one.farther, one.lines * volumes.line_bytes, one.loaded, one.stored
