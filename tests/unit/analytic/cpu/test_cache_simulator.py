"""The simulator against a slow model in plain Python."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
)
from kernelcast.analytic.cpu.cache_simulator.simulation import Simulator, simulate


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
    in_front: list["SlowCache"] = field(default_factory=list)
    victim: "SlowCache | None" = None
    sets: dict[int, list[Way | None]] = field(default_factory=dict)
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("loads", "hits", "misses", "stores", "evicts"), 0)
    )

    def ways(self, line: int) -> list[Way | None]:
        """Give the set of a line."""
        return self.sets.setdefault(line % self.level.sets, [None] * self.level.ways)

    def find(self, line: int) -> Way | None:
        """Give the way of a line."""
        return next((way for way in self.ways(line) if way and way.line == line), None)

    def touch(self, line: int) -> None:
        """Note a use."""
        self.clock[0] += 1
        self.find(line).used = self.clock[0]

    def choose(self, line: int) -> int:
        """Give the place for a new line."""
        ways = self.ways(line)
        if None in ways:
            return ways.index(None)
        used = [way.used for way in ways]
        return used.index(min(used))

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
        self.touch(line)
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

    def store(self, line: int, *, is_evicted: bool = False) -> None:
        """Write a part of a line, or a whole one that the level in front evicts."""
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
            if is_evicted:
                self.behind.take(line, dirty=True)
            else:
                self.behind.store(line)

    def take(self, line: int, *, dirty: bool) -> None:
        """Take an evicted line in."""
        held = self.find(line)
        is_victim = self.level.role is CacheRole.VICTIM
        if not held and not (self.level.writes_back and (is_victim or self.level.writes_allocate)):
            self.store(line, is_evicted=True)
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
    clock = [0]
    caches: list = [SlowMemory()]
    for level in reversed(hierarchy.levels):
        cache = SlowCache(level, caches[0], clock)
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
                role=CacheRole.VICTIM if is_victim else CacheRole.CACHE,
                writes_back=is_victim or draw(st.booleans()),
                writes_allocate=draw(st.booleans()),
                is_inclusive=not is_victim and draw(st.booleans()),
            )
        )
    return CacheHierarchy(levels=tuple(levels))


STREAMS = st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=150)


PASSES_EVICTED_LINES_ON = CacheHierarchy(
    levels=tuple(
        CacheLevel(
            name=f"L{number}", size_bytes=16, ways=1, line_bytes=16, writes_back=number != 2,
            writes_allocate=number != 2,
        )
        for number in (1, 2, 3)
    )
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@example(hierarchy=PASSES_EVICTED_LINES_ON, accesses=[(0, True), (1, False)])
@given(hierarchy=hierarchies(), accesses=STREAMS)
def test_counts_are_those_of_a_slow_model(
    hierarchy: CacheHierarchy, accesses: list[tuple[int, bool]]
) -> None:
    """Every way to write counts what a plain model counts."""
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
@given(accesses=STREAMS)
def test_inclusive_caches_hold_what_nearer_ones_hold(accesses: list[tuple[int, bool]]) -> None:
    """No line stays in front of an inclusive level that has evicted it."""
    l1 = CacheLevel(name="L1", size_bytes=64, ways=2, line_bytes=16)
    l2 = CacheLevel(name="L2", size_bytes=128, ways=4, line_bytes=16, is_inclusive=True)
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
