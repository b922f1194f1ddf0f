"""The Execution-Cache-Memory model: one core, many cores, saturation (paper, section 1.2.2)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from kernelcast.analytic.cpu.in_core import InCoreTerms
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.records.cache_volumes import MEMORY, CacheVolumes, Transfer
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferTime:
    """Time that one boundary of the hierarchy is busy.

    Parameters
    ----------
    nearer, farther : str
        Levels on both sides.
    cycles : float
        Core cycles per cache line of work.
    overlaps : bool
        Whether everything else goes on meanwhile.
    """

    nearer: str
    farther: str
    cycles: float
    overlaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EcmPrediction:
    """Time of a loop by the ECM model, in core cycles per cache line of work.

    Parameters
    ----------
    in_core : InCoreTerms or None
        Work in the core; None models the data transfers only.
    transfers : tuple of TransferTime
        Nearest first; the last one is memory's.
    memory_kernel : str
        The streaming loop whose bandwidth memory has; empty if nothing comes from memory.
    notes : tuple of str
        What was assumed or missing.
    """

    in_core: InCoreTerms | None
    transfers: tuple[TransferTime, ...]
    memory_kernel: str = ""
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
        """Give the time if data came from each level: L1 first, then each boundary added.

        Examples
        --------
        >>> from kernelcast.analytic.cpu.in_core import InCoreTerms
        >>> times = (("L1", "L2", 40.0), ("L2", "L3", 24.0), ("L3", "MEM", 48.5))
        >>> EcmPrediction(
        ...     in_core=InCoreTerms(overlapping=52, non_overlapping=54, provider="paper"),
        ...     transfers=tuple(TransferTime(nearer=a, farther=b, cycles=c) for a, b, c in times),
        ... ).cumulative()
        (54.0, 94.0, 118.0, 166.5)
        """
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
    def saturation_cores(self) -> int | None:
        """Cores from which memory is the limit: n_s, rounded up; None if memory never is."""
        if not self.memory_cycles:
            return None
        return math.ceil(self.cycles / self.memory_cycles)

    def cycles_of(self, cores: int) -> float:
        """Give the time per cache line of work that so many cores need together.

        They share nothing but memory; caches that they share as well are the business of the
        volumes this was made of, see `scale_cores`.
        """
        return max(self.cycles / cores, self.memory_cycles)

    def notation(self, digits: int = 1) -> str:
        """Write it as the paper does: ``{T_OL || T_nOL | T_L1L2 | T_L2L3 | T_L3Mem}``.

        Terms that are not known are question marks.
        """
        core = ("?", "?")
        if self.in_core is not None:
            core = tuple(
                f"{one:.{digits}f}" for one in (self.in_core.hidden, self.in_core.non_overlapping)
            )  # type: ignore[assignment]  # two of two
        data = " | ".join(f"{one.cycles:.{digits}f}" for one in self.transfers)
        return f"{{{core[0]} || {core[1]} | {data}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """Time at a number of cores.

    Parameters
    ----------
    cores : int
        Busy cores.
    cycles : float
        Core cycles per cache line of work of all together.
    is_saturated : bool
        Whether memory is the limit.
    """

    cores: int
    cycles: float
    is_saturated: bool


def predict_ecm(
    volumes: CacheVolumes, machine: CpuMachine, in_core: InCoreTerms | None = None
) -> EcmPrediction:
    """Turn cache traffic into time.

    Parameters
    ----------
    volumes : CacheVolumes
        Traffic, by layer conditions or simulated.
    machine : CpuMachine
        Cycles per line of each boundary, memory bandwidth, overlap.
    in_core : InCoreTerms or None
        Work in the core.

    Raises
    ------
    InputError
        If lines cross a boundary whose bandwidth is not known.
    """
    notes = [*machine.notes, *volumes.notes]
    if in_core is None:
        notes.append("in-core terms are not known: data transfers only")
    else:
        notes.extend(in_core.notes)
    *inner, last = volumes.transfers()
    transfers = [_time_between_caches(one, machine) for one in inner]
    rate = machine.streams.saturated(last.loaded, last.stored)
    if rate is None and last.lines:
        msg = (
            f"{machine.name}: its memory bandwidth is not known; measure it with `kernelcast "
            "calibrate --only bandwidth`, or write it into the machine description"
        )
        raise InputError(msg)
    bytes_per_cycle = rate.bytes_per_s / machine.clock_hz if rate else math.inf
    transfers.append(
        TransferTime(
            nearer=last.nearer, farther=last.farther,
            cycles=last.lines * volumes.line_bytes / bytes_per_cycle,
            overlaps=MEMORY in machine.overlapping,
        )
    )  # fmt: skip
    return EcmPrediction(
        in_core=in_core,
        transfers=tuple(transfers),
        memory_kernel=rate.kernel if rate and last.lines else "",
        notes=tuple(dict.fromkeys(notes)),
    )


def _time_between_caches(transfer: Transfer, machine: CpuMachine) -> TransferTime:
    cache = next(one for one in machine.caches if one.name == transfer.farther)
    lines = max(transfer.loaded, transfer.stored) if cache.is_full_duplex else transfer.lines
    if cache.cycles_per_line is None and lines:
        msg = (
            f"{machine.name}: caches.{cache.name}.load_bytes_per_s is not known; measure it with "
            "`kernelcast calibrate --only caches`, or write it into the machine description"
        )
        raise InputError(msg)
    return TransferTime(
        nearer=transfer.nearer,
        farther=transfer.farther,
        cycles=lines * (cache.cycles_per_line or 0.0),
        overlaps=cache.name in machine.overlapping,
    )


def scale_cores(
    predict: Callable[[int], CacheVolumes], machine: CpuMachine, in_core: InCoreTerms | None = None
) -> tuple[ScalingPoint, ...]:
    """Predict one core to all, with caches shared by those that are busy (paper, section 3.2).

    Parameters
    ----------
    predict : function of an int
        Gives the traffic of one of so many busy cores: a `CachePredictor` with its sizes.
    machine : CpuMachine
        The CPU.
    in_core : InCoreTerms or None
        Work in the core.
    """
    points = []
    for cores in range(1, machine.cores + 1):
        ecm = predict_ecm(predict(cores), machine, in_core)
        points.append(
            ScalingPoint(
                cores=cores, cycles=ecm.cycles_of(cores),
                is_saturated=ecm.cycles / cores <= ecm.memory_cycles,
            )
        )  # fmt: skip
    return tuple(points)
