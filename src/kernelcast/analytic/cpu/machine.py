"""A CPU in the numbers that the analytic models need, taken from a machine description."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from kernelcast.analytic.cpu.caches import CacheReader, CpuCache, need, remedy
from kernelcast.analytic.cpu.streaming import StreamRates, read_stream_rates
from kernelcast.records.cache_volumes import MEMORY
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.machine import InstructionFacts, MachineDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuMachine:
    """A CPU for the analytic models.

    Parameters
    ----------
    id, name : str
        Of the description.
    cores : int
        Cores, of one socket where the description is of one.
    clock_hz : float
        Core clock.
    caches : tuple of CpuCache
        Nearest first.
    streams : StreamRates
        Measured bandwidths.
    instructions : mapping of str to InstructionFacts
        Throughput and latency by kind of instruction.
    overlapping : frozenset of str
        Levels whose transfers to the nearer level go on while the core loads and others
        transfer: none on Intel's processors.
    notes : tuple of str
        Numbers that were missing, and what stands in for them.
    """

    id: str
    name: str
    cores: int
    clock_hz: float
    caches: tuple[CpuCache, ...]
    streams: StreamRates
    instructions: Mapping[str, InstructionFacts] = field(default_factory=dict)
    overlapping: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.caches:
            msg = f"{self.name}: no caches; {remedy('cache')}"
            raise InputError(msg)
        for nearer, farther in pairwise(self.caches):
            if nearer.line_bytes != farther.line_bytes:
                msg = (
                    f"{self.name}: lines of {nearer.line_bytes} bytes in {nearer.name} and of "
                    f"{farther.line_bytes} in {farther.name}; the models count lines of one size"
                )
                raise InputError(msg)
            if nearer.size_bytes > farther.size_bytes * farther.shared_by:
                msg = (
                    f"{self.name}: {farther.name} ({farther.size_bytes} bytes) is smaller than "
                    f"{nearer.name} ({nearer.size_bytes}); correct the machine description"
                )
                raise InputError(msg)

    @property
    def line_bytes(self) -> int:
        """Bytes of a cache line."""
        return self.caches[0].line_bytes

    def shares(self, cores: int) -> tuple[int, ...]:
        """Give the bytes of each cache that one of so many busy cores has.

        Raises
        ------
        InputError
            If the machine has not so many cores.
        """
        if not 1 <= cores <= self.cores:
            msg = f"{cores} cores; {self.name} has 1 to {self.cores}"
            raise InputError(msg)
        return tuple(one.share_bytes(cores) for one in self.caches)


def read_machine(
    description: MachineDescription, *, overlapping: Collection[str] = ()
) -> CpuMachine:
    """Take what the CPU models need from a machine description.

    Parameters
    ----------
    description : MachineDescription
        Of a CPU, shipped or calibrated.
    overlapping : collection of str
        Levels whose transfers overlap with everything else; none is the rule of the ECM model on
        Intel's processors.

    Raises
    ------
    InputError
        If it is no CPU, or lacks a number without which there is no model; says which, and the
        command that measures it.
    """
    if description.kind is not DeviceKind.CPU:
        msg = f"{description.name} is a {description.kind}; the CPU model needs a CPU"
        raise InputError(msg)
    cores = int(need(description, description.compute_units, "compute_units", "clock"))
    clock_hz = need(description, description.clock_hz, "clock_hz", "clock")
    known = {cache.name for cache in description.caches} | {MEMORY}
    unknown = sorted(set(overlapping) - known)
    if unknown:
        msg = f"{', '.join(unknown)}: no level of {description.name}; it has {sorted(known)}"
        raise InputError(msg)
    reader = CacheReader(description, cores * clock_hz, frozenset(overlapping))
    caches = tuple(reader.read(cache) for cache in description.caches)
    streams = read_stream_rates(description)
    return CpuMachine(
        id=description.id,
        name=description.name,
        cores=cores,
        clock_hz=clock_hz,
        caches=caches,
        streams=streams,
        instructions={one.name: one for one in description.instructions},
        overlapping=frozenset(overlapping),
        notes=(*reader.notes, *streams.notes),
    )
