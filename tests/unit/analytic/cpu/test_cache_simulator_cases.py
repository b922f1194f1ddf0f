"""The simulator against the reference's own tests and closed forms; what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
)
from kernelcast.analytic.cpu.cache_simulator.simulation import Simulator, simulate
from kernelcast.records.errors import InputError

REFERENCE = Path(__file__).parents[4] / "../shared/reference/kerncraft/assertions.json"
FIELDS = {
    "LOAD_count": "loads", "HIT_count": "hits", "MISS_count": "misses", "STORE_count": "stores",
    "EVICT_count": "evicts", "LOAD_byte": "loaded_bytes", "HIT_byte": "hit_bytes",
    "STORE_byte": "stored_bytes", "EVICT_byte": "evicted_bytes", "MISS_byte": "missed_bytes",
}  # fmt: skip
SCENARIOS = json.loads(REFERENCE.read_text())["cache_simulation"]


def _read_hierarchy(described: dict) -> CacheHierarchy:
    victims = {one.get("victims_to") for one in described.values()}
    levels = []
    for name, one in described.items():
        role = CacheRole.VICTIM if name in victims else CacheRole.CACHE
        role = CacheRole.WRITE_COMBINING if one.get("write_combining") else role
        levels.append(
            CacheLevel(
                name=name, size_bytes=one["sets"] * one["ways"] * one["cl_size"],
                ways=one["ways"], line_bytes=one["cl_size"], role=role,
                writes_back=one["write_back"], writes_allocate=one["write_allocate"],
            )
        )  # fmt: skip
    return CacheHierarchy(levels=tuple(levels))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one["name"].split()[0])
def test_the_reference_simulators_own_tests(scenario: dict) -> None:
    """What the reference simulator's tests assert holds here, to the last count."""
    simulator = Simulator(_read_hierarchy(scenario["hierarchy"]))
    for step in scenario["steps"]:
        _follow(step, simulator, scenario["hierarchy"])


def _follow(scenario_step: list, simulator: Simulator, described: dict) -> None:
    what, *details = scenario_step
    if what in ("load", "store"):
        first, behind, step, size = details
        places = np.arange(first, behind, step)
        simulator.feed(places, is_store=what == "store", size_bytes=size)
    elif what in ("load1", "store1"):
        simulator.feed(details[0], is_store=what == "store1", size_bytes=details[1])
    elif what == "reset":
        simulator.reset_counts()
    elif what == "wb":
        simulator.write_back()
    elif what == "cached":
        for name, (first, behind) in details[0].items():
            line = described[name]["cl_size"]
            assert simulator.held_lines(name) == frozenset(range(first, behind, line))
    else:
        for name, expected in details[0].items():
            level = simulator.traffic().level(name)
            found = {key: getattr(level, FIELDS[key]) for key in expected}
            assert found == expected, name


def test_lines_of_different_lengths() -> None:
    """A long line is fetched in pieces from short ones, and a short one from a part of a long."""
    short = CacheLevel(name="S", size_bytes=256, ways=2, line_bytes=32)
    long = CacheLevel(name="L", size_bytes=2048, ways=2, line_bytes=128)
    inward = simulate(CacheHierarchy(levels=(short, long)), [(np.arange(0, 256, 32), False, 8)])
    assert (inward.level("L").loads, inward.level("L").hits, inward.memory.loads) == (8, 6, 2)
    assert inward.memory.loaded_bytes == 256
    big = replace(long, name="B")
    outward = simulate(
        CacheHierarchy(levels=(big, replace(short, size_bytes=4096))), [([0], False, 8)]
    )
    assert (outward.level("S").loads, outward.memory.loaded_bytes) == (4, 128)


def test_write_combining_sends_what_was_written() -> None:
    """A line written in part goes on in stretches, a full one as a whole."""
    l1 = CacheLevel(name="L1", size_bytes=256, ways=2, writes_back=False, writes_allocate=False)
    buffer = CacheLevel(name="WC", size_bytes=64, ways=1, role=CacheRole.WRITE_COMBINING)
    simulator = Simulator(CacheHierarchy(levels=(l1, buffer)))
    simulator.feed([0, 8, 32], is_store=True, size_bytes=8)
    simulator.write_back()
    assert (simulator.traffic().memory.stores, simulator.traffic().memory.stored_bytes) == (2, 24)
    simulator.reset_counts()
    simulator.feed(np.arange(64, 128, 8), is_store=True, size_bytes=8)
    simulator.write_back()
    assert (simulator.traffic().memory.stores, simulator.traffic().memory.stored_bytes) == (1, 64)


def test_an_access_across_lines_touches_both() -> None:
    """Bytes of two lines are two loads."""
    level = CacheLevel(name="L1", size_bytes=256, ways=2)
    found = simulate(CacheHierarchy(levels=(level,)), [([60], False, 8)]).level("L1")
    assert (found.loads, found.loaded_bytes, found.misses) == (2, 8, 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size_bytes": 0}, "0 bytes"),
        ({"size_bytes": 1000}, "whole sets of 8 ways of 64 bytes, such as 512"),
        ({"ways": 0}, "0 ways"),
        ({"line_bytes": 48}, "a power of two"),
        ({"line_bytes": 0}, "a power of two"),
        ({"role": CacheRole.VICTIM, "is_inclusive": True}, "inclusive"),
        ({"role": CacheRole.VICTIM, "writes_back": False}, "writes back"),
        ({"role": CacheRole.WRITE_COMBINING, "line_bytes": 128}, "at most 64"),
    ],
)
def test_impossible_caches_are_refused(change: dict, said: str) -> None:
    """Geometry that no cache has is named, with what is expected."""
    with pytest.raises(InputError, match=said) as caught:
        CacheLevel(**{"name": "L7", "size_bytes": 32768, "ways": 8, **change})
    assert "cache L7" in str(caught.value)


def test_impossible_hierarchies_are_refused() -> None:
    """No levels, doubled names and misplaced or ill-fitting victim caches are named."""
    l1 = CacheLevel(name="L1", size_bytes=32768, ways=8)
    victim = CacheLevel(name="L2", size_bytes=32768, ways=8, role=CacheRole.VICTIM)
    for levels, said in (
        ((), "no cache"),
        ((l1, l1), "a name of its own"),
        ((victim,), "a plain cache there"),
        ((l1, victim, replace(victim, name="L3")), "behind a plain cache"),
        ((l1, replace(victim, line_bytes=128)), "lines of one size"),
    ):
        with pytest.raises(InputError, match=said):
            CacheHierarchy(levels=levels)


def test_senseless_streams_are_refused() -> None:
    """Fractions, negative addresses, empty accesses and lengths that do not fit are named."""
    simulator = Simulator(CacheHierarchy(levels=(CacheLevel(name="L1", size_bytes=512, ways=8),)))
    for addresses, is_store, size, said in (
        ([0.5], False, 8, "whole numbers"),
        ([-8], False, 8, "from 0"),
        ([8], False, 0, "at least 1 byte"),
        ([8, 16, 24], [True, False], 8, "a period"),
    ):
        with pytest.raises(InputError, match=said):
            simulator.feed(addresses, is_store=is_store, size_bytes=size)
    simulator.feed([], is_store=False, size_bytes=8)
    assert simulator.traffic().level("L1").loads == 0
    with pytest.raises(InputError, match="no cache L9"):
        simulator.held_lines("L9")
