"""Bandwidths of streaming loops: which one is like a kernel, and what so many cores reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from kernelcast.records.cache_volumes import MEMORY
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait, TraitSource

LOADS_PER_STORE: Mapping[str, float] = {
    "copy": 2.0, "daxpy": 2.0, "load": inf, "triad": 4.0, "update": 1.0,
}  # fmt: skip
"""Lines loaded per line stored, those that a store brings in first included."""

_WRITE_ALLOCATE = 1.5
"""Lines that a copy moves per line that its program names: two loads and a store, not one each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRate:
    """The streaming loop that stands for a kernel.

    Parameters
    ----------
    kernel : str
        A key of `LOADS_PER_STORE`.
    bytes_per_s : float
        All lines that move, those loaded for stores included.
    """

    kernel: str
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRates:
    """Bandwidths of streaming loops, by level and loop, in bytes per second.

    Parameters
    ----------
    one_core, all_cores : mapping of str to mapping of str to float
        By level (``L1``, ``L2``, ``MEM``), then by loop.
    cores : int
        Cores that `all_cores` is of.
    notes : tuple of str
        What was assumed.
    """

    one_core: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    all_cores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cores: int = 1
    notes: tuple[str, ...] = ()

    def saturated(self, loaded: float, stored: float) -> StreamRate | None:
        """Give the memory bandwidth of the whole socket that fits a kernel; None if not known.

        Parameters
        ----------
        loaded, stored : float
            Lines that the kernel moves in each direction.
        """
        return _pick(self.all_cores.get(MEMORY, {}), loaded, stored)

    def reached(self, level: str, loaded: float, stored: float, cores: int) -> StreamRate | None:
        """Give the bandwidth from a level that so many cores reach; None if not known.

        Cores add up until all together are at their limit. Where nobody measured one core, each
        has its share of a cache's whole; of memory it may have all, for a few cores saturate it.
        """
        one = _pick(self.one_core.get(level, {}), loaded, stored)
        if one is None:
            most = _pick(self.all_cores.get(level, {}), loaded, stored)
            share = 1.0 if level == MEMORY else cores / self.cores
            return most and replace(most, bytes_per_s=share * most.bytes_per_s)
        rate = cores * one.bytes_per_s
        limit = self.all_cores.get(level, {}).get(one.kernel, inf)
        return StreamRate(kernel=one.kernel, bytes_per_s=min(rate, limit))


def _pick(rates: Mapping[str, float], loaded: float, stored: float) -> StreamRate | None:
    """Choose the loop whose loads per store are nearest to the kernel's."""
    if not rates:
        return None
    wanted = loaded / stored if stored else inf
    if wanted == inf:
        kernel = "load" if "load" in rates else max(rates, key=LOADS_PER_STORE.__getitem__)
    else:
        kernel = min(sorted(rates), key=lambda one: abs(LOADS_PER_STORE[one] - wanted))
    return StreamRate(kernel=kernel, bytes_per_s=rates[kernel])


def read_stream_rates(description: MachineDescription) -> StreamRates:
    """Collect the bandwidths of a machine description.

    Parameters
    ----------
    description : MachineDescription
        Memory's bandwidths are those of its global memory and of the costs
        ``<loop>_bytes_per_s``; bandwidths of one core, and those of a cache by loop, are the
        costs ``one_core_<level>_<loop>_bytes_per_s`` and ``all_cores_<level>_<loop>_bytes_per_s``.
        Caches without such costs have the bandwidths of their own entries.

    Raises
    ------
    InputError
        If a bandwidth is not above 0.
    """
    one: dict[str, dict[str, float]] = {}
    every: dict[str, dict[str, float]] = {}
    notes: list[str] = []
    _read_memory(description, every, notes)
    for cache in description.caches:
        own = {"load": cache.load_bytes_per_s, "copy": cache.copy_bytes_per_s}
        measured = {
            loop: rate.value for loop, rate in own.items()
            if rate is not None and rate.source is TraitSource.MEASURED
        }  # fmt: skip
        if measured:
            every[cache.name] = measured
    for level in (*(cache.name for cache in description.caches), MEMORY):
        for rates, start in ((one, "one_core"), (every, "all_cores")):
            found = _named(description.costs, f"{start}_{level}_")
            if found:
                rates[level] = {**rates.get(level, {}), **found}
    _check(description, one, every)
    cores = description.compute_units.value if description.compute_units else 1
    return StreamRates(one_core=one, all_cores=every, cores=cores, notes=tuple(notes))


def _read_memory(
    description: MachineDescription, every: dict[str, dict[str, float]], notes: list[str]
) -> None:
    rates = _named(description.costs, "")
    memory = description.memory("global")
    if memory is not None and memory.load_bytes_per_s:
        rates["load"] = max(one.value for one in memory.load_bytes_per_s.values())
    if memory is not None and memory.copy_bytes_per_s is not None:
        copy = memory.copy_bytes_per_s
        rates["copy"] = copy.value
        if copy.source is TraitSource.MEASURED:
            # Benchmarks count what their program names; stores bring their lines in first.
            rates["copy"] *= _WRITE_ALLOCATE
            notes.append(
                f"memory bandwidth of copies: {_WRITE_ALLOCATE} times the one measured, for "
                "lines that stores bring in"
            )
    if rates:
        every[MEMORY] = rates


def _named(costs: Mapping[str, Trait[float]], start: str) -> dict[str, float]:
    found = {loop: costs.get(f"{start}{loop}_bytes_per_s") for loop in LOADS_PER_STORE}
    return {loop: cost.value for loop, cost in found.items() if cost is not None}


def _check(description: MachineDescription, *kinds: Mapping[str, Mapping[str, float]]) -> None:
    for rates in kinds:
        for level, by_loop in rates.items():
            for loop, rate in by_loop.items():
                if rate <= 0:
                    msg = (
                        f"{description.name}: the {loop} bandwidth of {level} is {rate} bytes/s; "
                        "expected more than 0. Correct the machine description"
                    )
                    raise InputError(msg)
