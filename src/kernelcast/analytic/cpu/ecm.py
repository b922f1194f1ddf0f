"""The Execution-Cache-Memory and Roofline models of a loop (Kerncraft paper, section 1.2).

They count core cycles per cache line of work (cy/CL): the iterations of the innermost loop that
produce one cache line of results.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, count, islice

from kernelcast.analytic.cpu.in_core import InCoreTerms
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.errors import InputError
from kernelcast.records.machine import refuse_missing

CORE = "CPU"
"""The ceiling that is the core itself."""


class Unit(StrEnum):
    CYCLES_PER_LINE = "cy/CL"
    CYCLES_PER_ITERATION = "cy/It"
    ITERATIONS_PER_S = "It/s"
    FLOP_PER_S = "FLOP/s"
    SECONDS = "s"
    """Of all iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What conversions between units need to know of a loop and a machine."""

    clock_hz: float
    iterations_per_line: float
    """Iterations of the innermost loop per cache line of work."""
    flops_per_iteration: float = 0.0
    """Floating-point operations; a fused multiply-add is two."""
    iterations: float = 0.0
    """Of the whole nest; 0 if it does not matter."""

    def tell(self, cycles_per_line: float, unit: Unit) -> float:
        """Tell core cycles per cache line of work in another unit."""

        def need(value: float, name: str) -> float:
            if value <= 0:
                msg = f"{unit} needs a {name} above 0, and this loop has {value:g}"
                raise InputError(f"{msg}; choose another unit")
            return value

        cycles = cycles_per_line / self.iterations_per_line
        if unit is Unit.CYCLES_PER_LINE:
            return cycles_per_line
        if unit is Unit.CYCLES_PER_ITERATION:
            return cycles
        if unit is Unit.SECONDS:
            return cycles / self.clock_hz * need(self.iterations, "number of iterations")
        rate = self.clock_hz / need(cycles, "time")
        if unit is Unit.FLOP_PER_S:
            rate *= need(self.flops_per_iteration, "floating-point operations")
        return rate

    def cycles(self, seconds: float) -> float:
        """Give the core cycles per cache line of work of a time of all iterations."""
        return seconds * self.clock_hz / self.iterations * self.iterations_per_line


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferTime:
    nearer: str
    farther: str
    cycles: float
    """Core cycles per cache line of work."""
    overlaps: bool = False
    """Whether everything else goes on meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EcmPrediction:
    """Time of a loop by the ECM model, in core cycles per cache line of work."""

    in_core: InCoreTerms | None
    """Work in the core; None models the data transfers only."""
    transfers: tuple[TransferTime, ...]
    """Nearest first; the last one is memory's."""
    notes: tuple[str, ...] = ()

    @property
    def cycles(self) -> float:
        """Time with data as far away as it comes from: T_ECM,Mem."""
        return self.cumulative()[-1]

    @property
    def memory_cycles(self) -> float:
        """Time of the last boundary, which all cores share."""
        return self.transfers[-1].cycles

    def cumulative(self) -> tuple[float, ...]:
        """List the time if data came from each level: L1 first, then each boundary added."""
        start, beside = 0.0, 0.0
        if self.in_core is not None:
            start, beside = self.in_core.non_overlapping, self.in_core.hidden
        serial = accumulate(
            (0.0 if one.overlaps else one.cycles for one in self.transfers), initial=start
        )
        parallel = accumulate(
            (one.cycles if one.overlaps else 0.0 for one in self.transfers), max, initial=beside
        )
        return tuple(float(max(pair)) for pair in zip(serial, parallel, strict=True))

    @property
    def ideal_saturation_cores(self) -> int | None:
        """Cores from which memory is the limit if cores scale perfectly: the paper's n_s."""
        return math.ceil(self.cycles / self.memory_cycles) if self.memory_cycles else None

    @property
    def saturation_cores(self) -> int | None:
        """Cores from which memory is the limit; None if it never is."""
        if not self.memory_cycles:
            return None
        times = enumerate(self._list_times(), start=1)
        return next(cores for cores, time in times if time <= self.memory_cycles)

    def cycles_of(self, cores: int) -> float:
        """Compute the time per cache line of work that so many cores need together."""
        return next(islice(self._list_times(), cores - 1, None))

    def _list_times(self) -> Iterator[float]:
        # Each core waits for memory the longer the more the others use it: up to the saturated
        # bandwidth, n cores take ``(T_ECM + (n - 1) * u(n - 1) * T_L3Mem / 2) / n``, where u is the
        # share of the bandwidth that is used.
        time, memory = self.cycles, self.memory_cycles
        for others in count(1):
            yield time
            used = memory / time if time else 0.0
            # What a core waits for each other core on a busy memory bus, over its own transfer
            # time: Kerncraft's value, after Hofmann, Hager and Fey (ISC 2018).
            time = max(memory, (self.cycles + 0.5 * others * used * memory) / (others + 1))

    def notation(self) -> str:
        """Write it as the paper does: ``{T_OL || T_nOL | T_L1L2 | T_L2L3 | T_L3Mem}``."""
        core = "? || ?"
        if self.in_core is not None:
            core = f"{self.in_core.hidden:.1f} || {self.in_core.non_overlapping:.1f}"
        return f"{{{' | '.join([core, *(f'{one.cycles:.1f}' for one in self.transfers)])}}}"


def predict_ecm(
    volumes: CacheVolumes, machine: CpuMachine, in_core: InCoreTerms | None = None
) -> EcmPrediction:
    notes = [*machine.notes, *volumes.notes]
    if in_core is None:
        notes.append("in-core terms are not known: data transfers only")
    else:
        notes.extend(in_core.notes)
    *inner, last = volumes.transfers()
    cycles = []
    for one in inner:
        cache = next(each for each in machine.caches if each.name == one.farther)
        lines = max(one.loaded, one.stored) if cache.is_full_duplex else one.lines
        if cache.cycles_per_line is None and lines:
            refuse_missing(machine.name, f"caches.{cache.name}.load_bytes_per_s", "caches")
        cycles.append(lines * (cache.cycles_per_line or 0.0))
    rate = machine.streams.saturated(last.loaded, last.stored)
    if rate is None and last.lines:
        refuse_missing(machine.name, "its memory bandwidth", "bandwidth")
    bytes_per_cycle = rate[1] / machine.clock_hz if rate else math.inf
    cycles.append(last.lines * volumes.line_bytes / bytes_per_cycle)
    return EcmPrediction(
        in_core=in_core,
        transfers=tuple(
            TransferTime(
                nearer=one.nearer, farther=one.farther, cycles=own,
                overlaps=one.farther in machine.overlapping,
            )
            for one, own in zip((*inner, last), cycles, strict=True)
        ),
        notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    level: str
    """`CORE`, or the level that data comes from."""
    cycles: float
    """Core cycles per cache line of work, of all cores together."""
    volume_bytes: float = 0.0
    """Bytes per cache line of work; 0 for the core."""
    bytes_per_s: float = 0.0
    """Bandwidth of the cores that are busy; 0 for the core."""
    kernel: str = ""
    """The streaming loop that measured the bandwidth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePrediction:
    """Bounds on the speed of a loop, the largest time being the prediction."""

    ceilings: tuple[Ceiling, ...]
    """The core first, then levels, nearest first."""
    notes: tuple[str, ...] = ()

    @property
    def bottleneck(self) -> Ceiling:
        """The bound that decides; the nearest of equals."""
        return max(self.ceilings, key=lambda one: one.cycles)

    @property
    def cycles(self) -> float:
        """Core cycles per cache line of work."""
        return self.bottleneck.cycles


def predict_roofline(
    volumes: CacheVolumes, machine: CpuMachine, in_core: InCoreTerms, *, cores: int = 1
) -> RooflinePrediction:
    """Compare the core with all levels of the hierarchy; volumes are of one of the busy cores."""
    notes = [*machine.notes, *volumes.notes, *in_core.notes]
    ceilings = [Ceiling(level=CORE, cycles=in_core.cycles / cores)]
    for one in volumes.transfers():
        level, volume = one.farther, one.lines * volumes.line_bytes
        rate = machine.streams.reached(level, one.loaded, one.stored, cores)
        if rate is None:
            notes.append(f"{level}: its bandwidth is not known; it is left out")
            continue
        kernel, bytes_per_s = rate
        ceilings.append(
            Ceiling(
                level=level, cycles=volume / bytes_per_s * machine.clock_hz,
                volume_bytes=volume, bytes_per_s=bytes_per_s, kernel=kernel,
            )
        )  # fmt: skip
    if len(ceilings) == 1:
        raise InputError(
            f"{machine.name}: no bandwidth is known; measure them with `kernelcast calibrate "
            "--only caches --only bandwidth`"
        )
    return RooflinePrediction(ceilings=tuple(ceilings), notes=tuple(dict.fromkeys(notes)))
