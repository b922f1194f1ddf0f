"""Cache traffic by simulation, in place of layer conditions (Kerncraft paper, section 2.4.1)."""

from collections.abc import Mapping
from dataclasses import replace

from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
)
from kernelcast.analytic.cpu.layer_conditions.evaluation import note_decisions
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.cache_volumes import CacheVolumes

_MOST_WAYS, _USUAL_WAYS = 64, 16
"""More ways than any cache has stand for an unknown number; such a cache is simulated with 16."""


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

    Raises
    ------
    InputError
        If the caches do not fit one behind the other.
    """

    name = "sim"

    def __init__(self, nest: LoopNest, machine: CpuMachine) -> None:
        self._nest = nest
        self._machine = machine
        unknown = (
            f"{cache.name}: {cache.ways} ways are taken for an unknown number; simulated with "
            f"{_USUAL_WAYS}"
            for cache in machine.caches
            if cache.ways > _MOST_WAYS
        )
        self._notes = (*nest.notes, *note_decisions(nest), *unknown)
        self.hierarchy()

    def predict(self, constants: Mapping[str, int], cores: int = 1) -> CacheVolumes:
        """Predict the traffic of every level.

        Raises
        ------
        InputError
            If a constant is missing, a loop never runs, or the machine has not so many cores.
        """
        # numba takes half a second to import; layer conditions need not wait for it.
        from kernelcast.analytic.cpu.cache_simulator.nest import simulate_nest

        found = simulate_nest(self._nest, self.hierarchy(cores), constants)
        return replace(found, notes=(*self._notes, *found.notes))

    def hierarchy(self, cores: int = 1) -> CacheHierarchy:
        """Describe the caches that one of so many busy cores has.

        Raises
        ------
        InputError
            If the machine has not so many cores, or its caches do not fit one behind the other.
        """
        levels = []
        for cache, size in zip(self._machine.caches, self._machine.shares(cores), strict=True):
            ways = _USUAL_WAYS if cache.ways > _MOST_WAYS else cache.ways
            levels.append(
                CacheLevel(
                    name=cache.name,
                    size_bytes=size - size % (ways * cache.line_bytes),
                    ways=ways,
                    line_bytes=cache.line_bytes,
                    role=CacheRole.VICTIM if cache.is_victim else CacheRole.CACHE,
                    writes_back=cache.writes_back,
                    writes_allocate=cache.writes_allocate,
                    is_inclusive=cache.is_inclusive,
                )
            )
        return CacheHierarchy(levels=tuple(levels))
