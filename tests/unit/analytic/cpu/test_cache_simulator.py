"""The simulator against a slow model in plain Python, and against the reference's own tests."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.analytic.cpu.cache_simulator import compiling
from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
    Replacement,
)
from kernelcast.analytic.cpu.cache_simulator.simulation import Simulator, simulate
from kernelcast.records.errors import InputError

REFERENCE = Path(__file__).parents[4] / "../shared/reference/kerncraft/assertions.json"
SEED = 0x1E3779B97F4A7C15


@dataclass
class Way:
    """A line in its place."""

    line: int
    used: int
    dirty: bool


@dataclass
class SlowCache:
    """One level; `behind` loads and stores, the last one's is memory."""

    level: CacheLevel
    behind: "SlowCache | None"
    clock: list[int]
    seed: list[int]
    in_front: list["SlowCache"] = field(default_factory=list)
    victim: "SlowCache | None" = None
    sets: dict[int, list[Way | None]] = field(default_factory=dict)
    trees: dict[int, dict[int, int]] = field(default_factory=dict)
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("loads", "hits", "misses", "stores", "evicts"), 0)
    )

    def ways(self, line: int) -> list[Way | None]:
        """Give the set of a line."""
        return self.sets.setdefault(line % self.level.sets, [None] * self.level.ways)

    def find(self, line: int) -> Way | None:
        """Give the way of a line."""
        return next((way for way in self.ways(line) if way and way.line == line), None)

    def touch(self, line: int, *, is_new: bool = False) -> None:
        """Note a use."""
        policy = self.level.replacement
        if policy in (Replacement.LRU, Replacement.MRU) or (policy is Replacement.FIFO and is_new):
            self.clock[0] += 1
            self.find(line).used = self.clock[0]
        if policy is Replacement.TREE_PLRU:
            place = [way.line if way else None for way in self.ways(line)].index(line)
            tree = self.trees.setdefault(line % self.level.sets, {})
            low, high, node = 0, self.level.ways, 1
            while high - low > 1:
                middle = (low + high) // 2
                right = place >= middle
                tree[node] = 0 if right else 1
                low, high = (middle, high) if right else (low, middle)
                node = 2 * node + right

    def choose(self, line: int) -> int:
        """Give the place for a new line."""
        ways = self.ways(line)
        if None in ways:
            return ways.index(None)
        policy = self.level.replacement
        if policy is Replacement.RANDOM:
            self.seed[0] = (self.seed[0] * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            return ((self.seed[0] >> 33) & 0x7FFFFFFF) % len(ways)
        if policy is Replacement.TREE_PLRU:
            tree, node = self.trees.get(line % self.level.sets, {}), 1
            while node < len(ways):
                node = 2 * node + tree.get(node, 0)
            return node - len(ways)
        used = [way.used for way in ways]
        return used.index(max(used) if policy is Replacement.MRU else min(used))

    def load(self, line: int) -> None:
        """Read a part of a line."""
        self.counts["loads"] += 1
        if self.find(line):
            self.counts["hits"] += 1
            self.touch(line)
            return
        self.counts["misses"] += 1
        self.fetch(line, dirty=False)

    def fetch(self, line: int, *, dirty: bool) -> None:
        """Bring a line in."""
        source = self.behind
        if self.victim is not None:
            held = self.victim.find(line)
            if held:
                self.victim.counts["loads"] += 1
                self.victim.counts["hits"] += 1
                ways = self.victim.ways(line)
                ways[ways.index(held)] = None
                self.insert(line, dirty=dirty or held.dirty)
                return
            source = self.victim.behind
        source.load(line)
        self.insert(line, dirty=dirty)

    def insert(self, line: int, *, dirty: bool) -> None:
        """Put a line in, and send another one on."""
        at = self.choose(line)
        old = self.ways(line)[at]
        self.ways(line)[at] = Way(line, 0, dirty)
        self.touch(line, is_new=True)
        if old is None:
            return
        if self.level.is_inclusive:
            for cache in self.in_front:
                held = cache.find(old.line)
                if held:
                    old.dirty |= held.dirty
                    ways = cache.ways(old.line)
                    ways[ways.index(held)] = None
        if self.victim is not None or old.dirty:
            self.counts["evicts"] += 1
            target = self.victim or self.behind
            target.take(old.line, dirty=old.dirty)

    def store(self, line: int) -> None:
        """Write a part of a line."""
        held = self.find(line)
        self.counts["stores"] += 1
        if held:
            self.touch(line)
            held.dirty = self.level.writes_back
        elif self.level.writes_allocate and self.level.role is CacheRole.CACHE:
            self.counts["loads"] += 1
            self.counts["misses"] += 1
            self.fetch(line, dirty=self.level.writes_back)
        if not self.level.writes_back or not self.find(line):
            self.counts["evicts"] += 1
            self.behind.store(line)

    def take(self, line: int, *, dirty: bool) -> None:
        """Take an evicted line in."""
        held = self.find(line)
        is_victim = self.level.role is CacheRole.VICTIM
        if not held and not (self.level.writes_back and (is_victim or self.level.writes_allocate)):
            self.store(line)
            return
        self.counts["stores"] += 1
        if not held:
            self.insert(line, dirty=dirty)
        elif self.level.writes_back:
            held.dirty |= dirty
        else:
            self.counts["evicts"] += 1
            self.behind.take(line, dirty=dirty)


class SlowMemory:
    """What lies behind the last cache."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("loads", "hits", "misses", "stores", "evicts"), 0)

    def load(self, line: int) -> None:
        """Read a part of a line."""
        self.counts["loads"] += 1
        self.counts["hits"] += 1

    def store(self, line: int) -> None:
        """Write a part of a line."""
        self.counts["stores"] += 1

    def take(self, line: int, *, dirty: bool) -> None:
        """Take an evicted line in."""
        self.counts["stores"] += 1


def run_slowly(hierarchy: CacheHierarchy, accesses: list[tuple[int, bool]]) -> list[dict[str, int]]:
    """Run a stream through the slow model; give the counts of each level."""
    clock, seed = [0], [SEED]
    caches: list = [SlowMemory()]
    for level in reversed(hierarchy.levels):
        cache = SlowCache(level, caches[0], clock, seed)
        if isinstance(caches[0], SlowCache) and caches[0].level.role is CacheRole.VICTIM:
            cache.victim = caches[0]
        caches.insert(0, cache)
    for at, cache in enumerate(caches[:-1]):
        cache.in_front = caches[:at]
    for address, is_store in accesses:
        (caches[0].store if is_store else caches[0].load)(address // 16)
    return [cache.counts for cache in caches]


@st.composite
def hierarchies(draw: st.DrawFn) -> CacheHierarchy:
    """Draw up to three levels of lines of 16 bytes."""
    levels: list[CacheLevel] = []
    for at in range(draw(st.integers(1, 3))):
        can_be_victim = bool(levels) and levels[-1].role is CacheRole.CACHE
        is_victim = can_be_victim and draw(st.booleans())
        ways = draw(st.sampled_from((1, 2, 4)))
        levels.append(
            CacheLevel(
                name=f"L{at + 1}",
                size_bytes=16 * ways * draw(st.sampled_from((1, 2, 3, 4))),
                ways=ways,
                line_bytes=16,
                replacement=draw(st.sampled_from(Replacement)),
                role=CacheRole.VICTIM if is_victim else CacheRole.CACHE,
                writes_back=is_victim or draw(st.booleans()),
                writes_allocate=draw(st.booleans()),
                is_inclusive=not is_victim and draw(st.booleans()),
            )
        )
    return CacheHierarchy(levels=tuple(levels))


STREAMS = st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=150)


@settings(max_examples=250, deadline=None)
@given(hierarchy=hierarchies(), accesses=STREAMS)
def test_counts_are_those_of_a_slow_model(
    hierarchy: CacheHierarchy, accesses: list[tuple[int, bool]]
) -> None:
    """Every policy and every way to write counts what a plain model counts."""
    accesses = [(line * 16, is_store) for line, is_store in accesses]
    simulator = Simulator(hierarchy)
    simulator.feed(
        [address for address, _ in accesses], is_store=[one for _, one in accesses], size_bytes=4
    )
    expected = run_slowly(hierarchy, accesses)
    for level, counts in zip(simulator.traffic().levels, expected, strict=True):
        assert {key: getattr(level, key) for key in counts} == counts, level.name


@settings(max_examples=50, deadline=None)
@given(hierarchy=hierarchies(), accesses=STREAMS, cut=st.integers(0, 150))
def test_chunks_do_not_matter(
    hierarchy: CacheHierarchy, accesses: list[tuple[int, bool]], cut: int
) -> None:
    """A stream cut anywhere counts the same."""
    places = np.array([line * 16 for line, _ in accesses])
    stores = np.array([one for _, one in accesses])
    whole = simulate(hierarchy, [(places, stores, 4)])
    parts = [(places[:cut], stores[:cut], 4), (places[cut:], stores[cut:], 4)]
    assert simulate(hierarchy, parts) == whole


@settings(max_examples=50, deadline=None)
@given(accesses=STREAMS, outer=st.sampled_from(Replacement))
def test_inclusive_caches_hold_what_nearer_ones_hold(
    accesses: list[tuple[int, bool]], outer: Replacement
) -> None:
    """No line stays in front of an inclusive level that has evicted it."""
    l1 = CacheLevel(name="L1", size_bytes=64, ways=2, line_bytes=16)
    l2 = CacheLevel(name="L2", size_bytes=128, ways=4, line_bytes=16, replacement=outer,
                    is_inclusive=True)  # fmt: skip
    simulator = Simulator(CacheHierarchy(levels=(l1, l2)))
    for line, is_store in accesses:
        simulator.feed(line * 16, is_store=is_store, size_bytes=16)
        assert simulator.held_lines("L1") <= simulator.held_lines("L2")


@settings(max_examples=50, deadline=None)
@given(accesses=STREAMS)
def test_victim_caches_exclude_what_is_in_front(accesses: list[tuple[int, bool]]) -> None:
    """A line is in the victim cache or in front of it, and none is lost but by eviction."""
    l1 = CacheLevel(name="L1", size_bytes=64, ways=2, line_bytes=16)
    l2 = CacheLevel(name="L2", size_bytes=128, ways=8, line_bytes=16, role=CacheRole.VICTIM)
    simulator = Simulator(CacheHierarchy(levels=(l1, l2)))
    for line, is_store in accesses:
        simulator.feed(line * 16, is_store=is_store, size_bytes=16)
        assert not simulator.held_lines("L1") & simulator.held_lines("L2")


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


FIELDS = {
    "LOAD_count": "loads", "HIT_count": "hits", "MISS_count": "misses", "STORE_count": "stores",
    "EVICT_count": "evicts", "LOAD_byte": "loaded_bytes", "HIT_byte": "hit_bytes",
    "STORE_byte": "stored_bytes", "EVICT_byte": "evicted_bytes", "MISS_byte": "missed_bytes",
}  # fmt: skip
SCENARIOS = json.loads(REFERENCE.read_text())["cache_simulation"]


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
        ({"size_bytes": 3 * 64 * 64, "ways": 3, "replacement": Replacement.TREE_PLRU}, "tree-PLRU"),
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


def twice(numbers: np.ndarray) -> int:
    """Give a function to compile."""
    return int(numbers[0]) * 2


@pytest.mark.parametrize("option", ["_nrt", "_unheard_of"])
def test_another_numba_compiles_too(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option that numba does not know is left out; what is compiled says the same."""
    monkeypatch.setattr(compiling, "_WITHOUT_RUNTIME", option)
    function = compiling.compiled(twice)
    assert function(np.array([21])) == 42
    assert compiling.knows_option("nogil")
    assert not compiling.knows_option("_unheard_of")
