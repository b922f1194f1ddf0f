"""Layer conditions in numbers: hits, misses and evictions of every cache for given sizes."""

from collections.abc import Mapping, Sequence

from kernelcast.analytic.cpu.layer_conditions.affine import read_accesses
from kernelcast.analytic.cpu.layer_conditions.assumptions import (
    note_conflicts,
    note_nest,
    note_order,
    note_victims,
)
from kernelcast.analytic.cpu.layer_conditions.bound import BoundNest, bind
from kernelcast.analytic.cpu.layer_conditions.polynomial_chains import (
    NotPolynomialError,
    read_polynomial_nest,
)
from kernelcast.analytic.cpu.layer_conditions.profile import ReuseProfile, profile_nest
from kernelcast.analytic.cpu.layer_conditions.regime_traffic import Lines, RegimeTraffic
from kernelcast.analytic.cpu.layer_conditions.regimes import Regime, RegimeFinder
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.cache_volumes import MEMORY, CacheVolumes, LevelVolume


class LayerConditions:
    """Predicts cache traffic without simulating it (paper, section 2.4.2).

    Parameters
    ----------
    nest : LoopNest
        Loops and accesses.
    machine : CpuMachine
        Caches.
    counts_victims : bool
        Whether a victim cache remembers what the nearer cache remembers and its own share on top,
        as in hardware. The reference tool counts the victim cache alone.

    Raises
    ------
    InputError
        If an index is not affine.
    """

    name = "lc"

    def __init__(
        self, nest: LoopNest, machine: CpuMachine, *, counts_victims: bool = False
    ) -> None:
        self._nest = nest
        self._machine = machine
        self._counts_victims = counts_victims
        self._accesses = read_accesses(nest)
        self._notes = (
            *note_nest(nest, self._accesses),
            *(() if counts_victims else note_victims(machine)),
        )
        self._capacities = {1: self.capacities()}
        self._answers: dict[Regime, CacheVolumes] = {}
        self._finder: RegimeFinder | None = None
        if nest.has_branches:
            return
        try:
            polynomials = read_polynomial_nest(nest, machine.line_bytes)
        except NotPolynomialError:
            return
        self._finder = RegimeFinder(polynomials)
        self._traffic = RegimeTraffic(polynomials, machine.line_bytes)

    def predict(self, constants: Mapping[str, int], cores: int = 1) -> CacheVolumes:
        """Give the traffic of every level.

        Raises
        ------
        InputError
            If a constant is missing or below 1, a loop never runs, or the machine has not so
            many cores.
        """
        capacities = self._capacities.get(cores)
        if capacities is None:
            capacities = self._capacities[cores] = self.capacities(cores)
        if self._finder is None:
            return self._evaluate(constants, capacities)
        known = {**self._nest.constants, **constants} if self._nest.constants else constants
        regime = self._finder.find(known, capacities)
        if regime is None:
            return self._evaluate(constants, capacities)
        found = self._answers.get(regime)
        if found is None:
            lines = self._traffic.count(regime)
            found = self._compose(lines, self._traffic.iterations, self._notes)
            self._answers[regime] = found
        return found

    def capacities(self, cores: int = 1) -> tuple[int, ...]:
        """Give the bytes that each cache remembers for one of so many busy cores."""
        shares = list(self._machine.shares(cores))
        if self._counts_victims:
            for place, cache in enumerate(self._machine.caches):
                if cache.is_victim and place:
                    shares[place] += shares[place - 1]
        return tuple(shares)

    def profile(self, constants: Mapping[str, int]) -> ReuseProfile:
        """Give what any cache would see; for tables and advice.

        Raises
        ------
        InputError
            As `predict`.
        """
        return profile_nest(self.bind(constants), self._machine.line_bytes)

    def conflicts(self, constants: Mapping[str, int]) -> tuple[str, ...]:
        """Say where rows compete for few sets of a cache, which these conditions do not see.

        Raises
        ------
        InputError
            As `predict`.
        """
        return note_conflicts(self.bind(constants).accesses, self._machine.caches)

    def bind(self, constants: Mapping[str, int]) -> BoundNest:
        """Give the nest in numbers.

        Raises
        ------
        InputError
            As `predict`.
        """
        return bind(self._nest, self._accesses, constants)

    def _evaluate(self, constants: Mapping[str, int], capacities: Sequence[int]) -> CacheVolumes:
        bound = self.bind(constants)
        profile = profile_nest(bound, self._machine.line_bytes)
        notes = (*note_order(self._nest, bound), *self._notes)
        return self._compose(
            [_count_lines(profile, one) for one in capacities], profile.iterations, notes
        )

    def _compose(
        self, lines: Sequence[Lines], iterations: float, notes: tuple[str, ...]
    ) -> CacheVolumes:
        """Make levels that know what the nearer one asks of them and hands to them."""
        levels = []
        loads = stores = None
        for cache, (hits, misses, evicts) in zip(self._machine.caches, lines, strict=True):
            levels.append(
                LevelVolume(
                    name=cache.name, hits=hits, misses=misses, evicts=evicts, loads=loads,
                    stores=stores,
                )
            )  # fmt: skip
            loads, stores = misses, evicts
        levels.append(
            LevelVolume(
                name=MEMORY, hits=loads or 0.0, misses=0.0, evicts=0.0, loads=loads, stores=stores
            )
        )
        return CacheVolumes(
            predictor=self.name, levels=tuple(levels), line_bytes=self._machine.line_bytes,
            iterations=iterations, notes=notes,
        )  # fmt: skip


def _count_lines(profile: ReuseProfile, capacity: int) -> Lines:
    horizon = profile.remembered(capacity)
    misses = profile.missed_lines(horizon)
    return profile.accessed_lines() - misses, misses, profile.evicted_lines(horizon)
