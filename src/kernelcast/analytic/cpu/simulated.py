"""Cache traffic by simulation, in place of layer conditions (Kerncraft paper, section 2.4.1)."""

from collections.abc import Mapping
from dataclasses import replace

from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
    Replacement,
)
from kernelcast.analytic.cpu.layer_conditions.evaluation import note_decisions
from kernelcast.analytic.cpu.machine import CpuCache, CpuMachine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.cache_volumes import CacheVolumes

_MOST_WAYS = 64
"""More than any cache has: so many ways are what stands in for an unknown number."""
_USUAL_WAYS = 16


class SimulatedVolumes:
    """Predicts cache traffic by running a nest's accesses through simulated caches.

    Slower than `LayerConditions`, and exact where those assume: any order of loops, any step,
    sets and ways.

    Parameters
    ----------
    nest : LoopNest
        Loops and accesses; addresses may be any expression.
    machine : CpuMachine
        Caches.
        One of more than 64 ways, which is how an unknown associativity is described, is simulated
        with 16; a note says so.
    replacement : Replacement
        Which line of a full set goes, in all caches: descriptions of machines do not tell.

    Raises
    ------
    InputError
        If the caches do not fit one behind the other.
    """

    name = "sim"

    def __init__(
        self, nest: LoopNest, machine: CpuMachine, *, replacement: Replacement = Replacement.LRU
    ) -> None:
        self._nest = nest
        self._machine = machine
        self._replacement = replacement
        self._hierarchies = {1: self.hierarchy()}
        self._notes = (*nest.notes, *note_decisions(nest), *_note_ways(machine))

    def predict(self, constants: Mapping[str, int], cores: int = 1) -> CacheVolumes:
        """Give the traffic of every level.

        Raises
        ------
        InputError
            If a constant is missing, a bound is no sum of outer loops' variables, a loop never
            runs, or the machine has not so many cores.
        """
        # numba takes half a second to import; whoever only wants layer conditions need not wait.
        from kernelcast.analytic.cpu.cache_simulator.nest import simulate_nest

        hierarchy = self._hierarchies.get(cores)
        if hierarchy is None:
            hierarchy = self._hierarchies[cores] = self.hierarchy(cores)
        found = simulate_nest(self._nest, hierarchy, constants)
        return replace(found, notes=(*self._notes, *found.notes)) if self._notes else found

    def hierarchy(self, cores: int = 1) -> CacheHierarchy:
        """Give the caches that one of so many busy cores has.

        Raises
        ------
        InputError
            If the machine has not so many cores, or its caches do not fit one behind the other.
        """
        shares = self._machine.shares(cores)
        return CacheHierarchy(
            levels=tuple(
                self._describe(cache, share)
                for cache, share in zip(self._machine.caches, shares, strict=True)
            )
        )

    def _describe(self, cache: CpuCache, share_bytes: int) -> CacheLevel:
        ways = cache.ways
        if ways > _MOST_WAYS:
            ways = _USUAL_WAYS
            share_bytes -= share_bytes % (ways * cache.line_bytes)
        return CacheLevel(
            name=cache.name,
            size_bytes=share_bytes,
            ways=ways,
            line_bytes=cache.line_bytes,
            replacement=self._replacement,
            role=CacheRole.VICTIM if cache.is_victim else CacheRole.CACHE,
            writes_back=cache.writes_back,
            writes_allocate=cache.writes_allocate,
            is_inclusive=cache.is_inclusive,
        )


def _note_ways(machine: CpuMachine) -> tuple[str, ...]:
    return tuple(
        f"{cache.name}: {cache.ways} ways are taken for an unknown number; simulated with "
        f"{_USUAL_WAYS}"
        for cache in machine.caches
        if cache.ways > _MOST_WAYS
    )
