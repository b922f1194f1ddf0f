"""A CPU in the numbers that the analytic models need, taken from a machine description."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import TypeAlias

from kernelcast.records.cache_volumes import MEMORY
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.machine import InstructionFacts, MachineDescription, refuse_missing

LOADS_PER_STORE: Mapping[str, float] = {
    "copy": 2.0, "daxpy": 2.0, "load": inf, "triad": 4.0, "update": 1.0,
}  # fmt: skip
"""Lines loaded per line stored by streaming loops, those that a store brings in first included."""

_WRITE_ALLOCATE = 1.5
"""Lines that a copy moves per line that its program names: two loads and a store, not one each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCache:
    name: str
    size_bytes: int
    line_bytes: int
    ways: int
    """Lines of a set; all lines of the cache if the description does not say."""
    shared_by: int = 1
    """Cores that share one cache."""
    cycles_per_line: float | None = None
    """Core cycles to move one line between this level and the next nearer one; None for the nearest
    cache, and where it was not measured."""
    is_full_duplex: bool = False
    """Whether lines in and out of the nearer cache move at the same time."""
    is_victim: bool = False
    """Whether it holds only what the nearer cache evicted."""
    is_inclusive: bool = False
    """Whether it holds whatever nearer caches hold."""
    writes_allocate: bool = True
    writes_back: bool = True
    """Whether a store brings the line in first, and whether it stays until evicted."""

    def __post_init__(self) -> None:
        if self.line_bytes < 1 or self.line_bytes & (self.line_bytes - 1):
            self._refuse(f"lines of {self.line_bytes} bytes", "a power of two")
        if self.ways < 1 or self.shared_by < 1:
            self._refuse(f"{self.ways} ways, shared by {self.shared_by}", "at least 1 of each")
        if self.size_bytes < 1 or self.size_bytes % (self.ways * self.line_bytes):
            self._refuse(
                f"{self.size_bytes} bytes",
                f"whole sets of {self.ways} ways of {self.line_bytes} bytes",
            )
        if self.is_victim and (self.is_inclusive or not self.writes_back):
            self._refuse("a victim cache", "that it writes back and is not inclusive")

    @property
    def sets(self) -> int:
        return self.size_bytes // (self.ways * self.line_bytes)

    def _refuse(self, given: str, expected: str) -> None:
        msg = f"cache {self.name}: {given}; expected {expected}. Correct the machine description"
        raise InputError(msg)


Rate: TypeAlias = tuple[str, float]
"""The streaming loop that stands for a kernel, a key of `LOADS_PER_STORE`; and its bytes per
second, of all lines that move, those loaded for stores included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRates:
    """Bandwidths of streaming loops, by level (``L1``, ``L2``, ``MEM``) and loop, in bytes/s."""

    one_core: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    all_cores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cores: int = 1
    """Cores that `all_cores` is of."""
    notes: tuple[str, ...] = ()

    def saturated(self, loaded: float, stored: float) -> Rate | None:
        """Find the memory bandwidth of the whole socket that fits a kernel; None if not known."""
        return _choose_loop(self.all_cores.get(MEMORY, {}), loaded, stored)

    def reached(self, level: str, loaded: float, stored: float, cores: int) -> Rate | None:
        """Find the bandwidth from a level that so many cores reach; None if not known."""
        one = _choose_loop(self.one_core.get(level, {}), loaded, stored)
        # Cores add up until all together are at their limit. Where one core was not measured, each
        # has its share of a cache's whole; of memory it may have all, for a few cores saturate it.
        if one is None:
            most = _choose_loop(self.all_cores.get(level, {}), loaded, stored)
            share = 1.0 if level == MEMORY else cores / self.cores
            return most and (most[0], share * most[1])
        limit = self.all_cores.get(level, {}).get(one[0], inf)
        return one[0], min(cores * one[1], limit)


def _choose_loop(rates: Mapping[str, float], loaded: float, stored: float) -> Rate | None:
    """Choose the loop whose loads per store are nearest to the kernel's."""
    if not rates:
        return None
    if stored:
        kernel = min(sorted(rates), key=lambda one: abs(LOADS_PER_STORE[one] - loaded / stored))
    else:
        kernel = max(rates, key=LOADS_PER_STORE.__getitem__)
    return kernel, rates[kernel]


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuMachine:
    id: str
    name: str
    cores: int
    """Cores, of one socket where the description is of one."""
    clock_hz: float
    caches: tuple[CpuCache, ...]
    """Nearest first."""
    streams: StreamRates
    instructions: Mapping[str, InstructionFacts] = field(default_factory=dict)
    overlapping: frozenset[str] = frozenset()
    """Levels whose transfers to the nearer level go on while the core loads and others transfer:
    none on Intel's processors."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.caches:
            refuse_missing(self.name, "the size of its caches", "caches")
        if self.caches[0].is_victim:
            raise InputError(
                f"{self.name}: {self.caches[0].name} is a victim cache; expected a plain one first"
            )
        for nearer, farther in pairwise(self.caches):
            if nearer.line_bytes != farther.line_bytes:
                raise InputError(
                    f"{self.name}: lines of {nearer.line_bytes} bytes in {nearer.name} and of "
                    f"{farther.line_bytes} in {farther.name}; the models count lines of one size"
                )
            if farther.is_victim and nearer.is_victim:
                msg = f"{self.name}: {farther.name} and {nearer.name} are both victim caches"
                raise InputError(f"{msg}; expected a plain cache between them")
            if nearer.size_bytes > farther.size_bytes * farther.shared_by:
                raise InputError(
                    f"{self.name}: {farther.name} ({farther.size_bytes} bytes) is smaller than "
                    f"{nearer.name} ({nearer.size_bytes}); correct the machine description"
                )

    @property
    def line_bytes(self) -> int:
        return self.caches[0].line_bytes

    @property
    def has_measured_instructions(self) -> bool:
        """Whether throughputs of instructions were measured, not looked up."""
        return any(_is_measured(one.peak_per_s) for one in self.instructions.values())

    def shares(self, cores: int) -> tuple[int, ...]:
        """List the bytes of each cache that one of so many busy cores has: whole sets of it."""
        if not 1 <= cores <= self.cores:
            raise InputError(f"{cores} cores; {self.name} has 1 to {self.cores}")
        return tuple(
            max(1, one.sets // min(cores, one.shared_by)) * one.ways * one.line_bytes
            for one in self.caches
        )


def read_machine(
    description: MachineDescription, *, overlapping: Collection[str] = ()
) -> CpuMachine:
    description.require_kind(DeviceKind.CPU)
    cores = int(_need(description, description.compute_units, "compute_units", "clock"))
    clock_hz = _need(description, description.clock_hz, "clock_hz", "clock")
    known = {cache.name for cache in description.caches} | {MEMORY}
    unknown = sorted(set(overlapping) - known)
    if unknown:
        msg = f"{', '.join(unknown)}: no level of {description.name}; it has {sorted(known)}"
        raise InputError(msg)
    notes: list[str] = []
    caches: list[CpuCache] = []
    before: Trait[float] | None = None
    for cache in description.caches:
        # A fit finds the size of a cache within some ten per cent. A core has all of its own
        # caches, but a virtual machine's part of a shared one is not what the system reports.
        extent = cache.size_bytes
        is_own = cache.shared_by is not None and cache.shared_by.value == 1
        if is_own and cache.reported_size_bytes is not None and _is_measured(extent):
            extent = cache.reported_size_bytes
        key = f"caches.{cache.name}"
        size = int(_need(description, extent, f"{key}.size_bytes", "caches"))
        line = int(_need(description, cache.line_bytes, f"{key}.line_bytes", "caches"))
        ways = cache.ways.value if cache.ways else max(1, size // line)
        if cache.ways is None:
            notes.append(f"{cache.name}: associativity not known, taken as full")
        if cache.ways is None or _is_measured(extent):
            size = max(1, round(size / (ways * line))) * ways * line  # measured: not exact
        line_hz = line * cores * clock_hz
        rate = cache.load_bytes_per_s or cache.copy_bytes_per_s
        cycles = None if rate is None else line_hz / rate.value
        if rate is None and caches:
            notes.append(f"{cache.name}: no bandwidth known; only its traffic is")
        # What is documented is the throughput of the boundary. What is measured is a loop that
        # loads from the level, and holds the way through nearer caches as well.
        if cycles and _is_measured(rate) and before and cache.name not in overlapping:
            cycles = max(0.0, cycles - line_hz / before.value)
        caches.append(
            CpuCache(
                name=cache.name,
                size_bytes=size,
                line_bytes=line,
                ways=ways,
                shared_by=cache.shared_by.value if cache.shared_by else 1,
                cycles_per_line=cycles if caches else None,
                is_full_duplex=bool(cache.is_full_duplex),
                is_victim=bool(cache.is_victim),
                is_inclusive=bool(cache.is_inclusive),
                writes_allocate=not cache.is_victim and cache.write_policy != "write-through",
                writes_back=cache.write_policy != "write-through",
            )
        )
        before = rate if _is_measured(rate) else None
    streams = read_stream_rates(description)
    return CpuMachine(
        id=description.id,
        name=description.name,
        cores=cores,
        clock_hz=clock_hz,
        caches=tuple(caches),
        streams=streams,
        instructions={one.name: one for one in description.instructions},
        overlapping=frozenset(overlapping),
        notes=(*notes, *streams.notes),
    )


def _is_measured(trait: Trait[int] | Trait[float] | None) -> bool:
    return trait is not None and trait.source is TraitSource.MEASURED


def _need(
    description: MachineDescription, trait: Trait[int] | Trait[float] | None, key: str, only: str
) -> float:
    if trait is None:
        refuse_missing(description.name, key, only)
    return trait.value


def read_stream_rates(description: MachineDescription) -> StreamRates:
    # Those of one core, and those of a cache by loop, are costs that name the level and the loop;
    # caches without such costs have the bandwidths of their own entries.

    def collect(start: str) -> dict[str, float]:
        found = {
            loop: description.costs.get(f"{start}{loop}_bytes_per_s") for loop in LOADS_PER_STORE
        }
        return {loop: cost.value for loop, cost in found.items() if cost is not None}

    notes: list[str] = []
    of_memory = collect("")
    memory = description.memory("global")
    if memory is not None and memory.load_bytes_per_s:
        of_memory["load"] = max(one.value for one in memory.load_bytes_per_s.values())
    if memory is not None and memory.copy_bytes_per_s is not None:
        of_memory["copy"] = memory.copy_bytes_per_s.value
        if _is_measured(memory.copy_bytes_per_s):
            # Benchmarks count what their program names; stores bring their lines in first.
            of_memory["copy"] *= _WRITE_ALLOCATE
            notes.append(
                f"memory bandwidth of copies: {_WRITE_ALLOCATE} times the one measured, for "
                "lines that stores bring in"
            )
    rates: dict[str, dict[str, float]] = {MEMORY: of_memory}
    for cache in description.caches:
        own = {"load": cache.load_bytes_per_s, "copy": cache.copy_bytes_per_s}
        rates[cache.name] = {
            loop: rate.value for loop, rate in own.items() if rate and _is_measured(rate)
        }
    one = {level: collect(f"one_core_{level}_") for level in rates}
    every = {level: own | collect(f"all_cores_{level}_") for level, own in rates.items()}
    for level, by_loop in (*one.items(), *every.items()):
        for loop, rate in by_loop.items():
            if rate <= 0:
                raise InputError(
                    f"{description.name}: the {loop} bandwidth of {level} is {rate} bytes/s; "
                    "expected more than 0. Correct the machine description"
                )
    return StreamRates(
        one_core=one,
        all_cores=every,
        cores=description.compute_units.value if description.compute_units else 1,
        notes=tuple(notes),
    )
