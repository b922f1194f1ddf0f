"""Simulation as a cache predictor: machines as hierarchies, in the place of layer conditions."""

from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.cache_simulator.hierarchy import CacheRole
from kernelcast.analytic.cpu.layer_conditions import LayerConditions
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.analytic.cpu.simulated import SimulatedVolumes
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.errors import InputError
from support.machines import IVY_BRIDGE
from support.reference_nests import make_nest

FIVE_POINTS = make_nest(
    [("j", "1", "M - 1", 1), ("i", "1", "N - 1", 1)], {"a": ["M", "N"], "b": ["M", "N"]},
    [("a", "j, i-1"), ("a", "j, i+1"), ("a", "j-1, i"), ("a", "j+1, i")], [("b", "j, i")],
)  # fmt: skip


def change_cache(name: str, **changes: object) -> CpuMachine:
    """Give the Ivy Bridge with another cache of a name."""
    caches = tuple(
        replace(one, **changes) if one.name == name else one for one in IVY_BRIDGE.caches
    )
    return replace(IVY_BRIDGE, caches=caches)


def misses(found: CacheVolumes) -> list[float]:
    """Give the lines that each cache misses."""
    return [one.misses for one in found.levels[:-1]]


@pytest.mark.parametrize("columns", [200, 3000])
def test_agrees_with_layer_conditions(columns: int) -> None:
    """Where layer conditions hold, the simulation says the same, but for the edges of rows."""
    predictors: list[SimulatedVolumes | LayerConditions] = [
        SimulatedVolumes(FIVE_POINTS, IVY_BRIDGE), LayerConditions(FIVE_POINTS, IVY_BRIDGE),
    ]  # fmt: skip
    sizes = {"M": 60_000_000 // columns, "N": columns}
    simulated, conditions = (one.predict(sizes) for one in predictors)
    assert [one.name for one in predictors] == ["sim", "lc"]
    assert misses(simulated) == pytest.approx(misses(conditions), rel=0.02)


def test_busy_cores_share_caches() -> None:
    """Ten cores have a tenth of the shared cache each: three planes of rows no longer stay."""
    predictor = SimulatedVolumes(FIVE_POINTS, IVY_BRIDGE)
    sizes = {"M": 200, "N": 200_000}
    alone, together = (misses(predictor.predict(sizes, cores)) for cores in (1, 10))
    assert alone[-1] == pytest.approx(2, rel=0.02)
    assert together[-1] == pytest.approx(4, rel=0.02)
    with pytest.raises(InputError, match="11 cores"):
        predictor.predict(sizes, 11)


def test_describes_the_machine() -> None:
    """Role, write policy, inclusion and geometry of a cache are those of the machine."""
    machine = change_cache("L3", is_victim=True, writes_allocate=False)
    predictor = SimulatedVolumes(FIVE_POINTS, machine)
    nearest, _, last = predictor.hierarchy().levels
    assert (nearest.role, last.role) == (CacheRole.CACHE, CacheRole.VICTIM)
    assert (nearest.sets, nearest.ways, nearest.writes_back) == (64, 8, True)
    through = change_cache("L1", writes_back=False, writes_allocate=False)
    described = SimulatedVolumes(FIVE_POINTS, through).hierarchy().levels[0]
    assert (described.writes_back, described.writes_allocate) == (False, False)
    inclusive = change_cache("L2", is_inclusive=True)
    assert SimulatedVolumes(FIVE_POINTS, inclusive).hierarchy().levels[1].is_inclusive


def test_unknown_associativity_is_bounded() -> None:
    """A cache described as fully associative, for want of a number, gets ways and a note."""
    cache = IVY_BRIDGE.caches[2]
    machine = change_cache("L3", ways=cache.size_bytes // cache.line_bytes)
    predictor = SimulatedVolumes(FIVE_POINTS, machine)
    assert predictor.hierarchy().levels[2].ways == 16
    [note] = predictor.predict({"M": 300, "N": 300}).notes
    assert "L3" in note


def test_missing_constant_is_named() -> None:
    """A size without a value is an error that names it."""
    with pytest.raises(InputError, match="-D N"):
        SimulatedVolumes(FIVE_POINTS, IVY_BRIDGE).predict({"M": 100})
