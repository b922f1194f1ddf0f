"""Simulated caches: against a slow model in plain Python, and in the place of layer conditions."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernelcast.analytic.cpu import simulated
from kernelcast.analytic.cpu.cache_engine import Simulator
from kernelcast.analytic.cpu.machine import CpuCache, CpuMachine
from kernelcast.analytic.cpu.simulated import NestAddresses, predict_by_simulation, simulate_nest
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestAccess, split_address
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.records.errors import InputError
from kernelcast.records.operations import OperationCounts
from support.loop_nests import count_loops
from support.machines import IVY_BRIDGE

KINDS = ("loads", "hits", "misses", "stores", "evicts")


class SlowMemory:
    """What lies behind the last cache."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(KINDS, 0)

    def load(self, _: int) -> None:
        self.counts["loads"] += 1
        self.counts["hits"] += 1

    def store(self, _: int, *, dirty: bool = True) -> None:
        """Write a part of a line, or take an evicted one."""
        self.counts["stores"] += 1

    take = store


class SlowCache:
    """One level; `behind` loads and stores, the last one's is memory."""

    def __init__(self, level: CpuCache, behind: Any) -> None:  # noqa: ANN401 - cache or memory
        is_victim = isinstance(behind, SlowCache) and behind.level.is_victim
        self.level: CpuCache = level
        self.behind = behind
        self.victim: SlowCache | None = behind if is_victim else None
        self.in_front: list[SlowCache] = []
        # Of each set the lines, that used last at the end, and whether they are modified.
        self.sets = defaultdict[int, dict[int, bool]](dict)
        self.counts = dict.fromkeys(KINDS, 0)

    def lines(self, line: int) -> dict[int, bool]:
        return self.sets[line % self.level.sets]

    def use(self, line: int, *, dirty: bool) -> bool:
        """Use a line that is held, and modify it; tell whether it is held."""
        held = self.lines(line)
        if line in held:
            held[line] = held.pop(line) or dirty
        return line in held

    def load(self, line: int) -> None:
        self.counts["loads"] += 1
        if self.use(line, dirty=False):
            self.counts["hits"] += 1
        else:
            self.fetch(line, dirty=False)

    def fetch(self, line: int, *, dirty: bool) -> None:
        """Bring a line in that was missed."""
        self.counts["misses"] += 1
        if self.victim is not None and line in self.victim.lines(line):
            self.victim.counts["loads"] += 1
            self.victim.counts["hits"] += 1
            dirty |= self.victim.lines(line).pop(line)
        else:
            (self.victim or self).behind.load(line)
        self.insert(line, dirty=dirty)

    def insert(self, line: int, *, dirty: bool) -> None:
        """Put a line in, and send another one on."""
        held = self.lines(line)
        old = next(iter(held)) if len(held) == self.level.ways else None
        is_modified = old is not None and held.pop(old)
        held[line] = dirty
        if old is None:
            return
        if self.level.is_inclusive:
            for cache in self.in_front:
                is_modified |= cache.lines(old).pop(old, False)
        if self.victim is not None or is_modified:
            self.counts["evicts"] += 1
            (self.victim or self.behind).take(old, dirty=is_modified)

    def store(self, line: int, *, is_evicted: bool = False) -> None:
        """Write a part of a line, or a whole one that the level in front evicts."""
        writes_back = self.level.writes_back
        self.counts["stores"] += 1
        is_held = self.use(line, dirty=writes_back)
        if not is_held and self.level.writes_allocate and not self.level.is_victim:
            self.counts["loads"] += 1
            self.fetch(line, dirty=writes_back)
        if not writes_back or line not in self.lines(line):
            self.counts["evicts"] += 1
            if is_evicted:
                self.behind.take(line, dirty=True)
            else:
                self.behind.store(line)

    def take(self, line: int, *, dirty: bool) -> None:
        """Take an evicted line in."""
        held, level = self.lines(line), self.level
        if line not in held and not (
            level.writes_back and (level.is_victim or level.writes_allocate)
        ):
            self.store(line, is_evicted=True)
            return
        self.counts["stores"] += 1
        if line not in held:
            self.insert(line, dirty=dirty)
        elif level.writes_back:
            held[line] |= dirty
        else:
            self.counts["evicts"] += 1
            self.behind.take(line, dirty=dirty)


def run_slowly(levels: tuple[CpuCache, ...], accesses: list[tuple[int, bool]]) -> list[list[int]]:
    """Run a stream through the slow model; give the counts of each level."""
    caches: list[Any] = [SlowMemory()]
    for level in reversed(levels):
        caches.insert(0, SlowCache(level, caches[0]))
    for at, cache in enumerate(caches[:-1]):
        cache.in_front = caches[:at]
    for address, is_store in accesses:
        (caches[0].store if is_store else caches[0].load)(address // 16)
    return [[cache.counts[kind] for kind in KINDS] for cache in caches]


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[CpuCache, ...]:
    """Draw up to three levels of lines of 16 bytes."""
    levels: list[CpuCache] = []
    for at in range(draw(st.integers(1, 3))):
        is_victim = bool(levels) and not levels[-1].is_victim and draw(st.booleans())
        ways = draw(st.sampled_from((1, 2, 4)))
        levels.append(
            CpuCache(
                name=f"L{at + 1}",
                size_bytes=16 * ways * draw(st.sampled_from((1, 2, 3, 4))),
                ways=ways,
                line_bytes=16,
                is_victim=is_victim,
                writes_back=is_victim or draw(st.booleans()),
                writes_allocate=draw(st.booleans()),
                is_inclusive=not is_victim and draw(st.booleans()),
            )
        )
    return tuple(levels)


PASSES_EVICTED_LINES_ON = tuple(
    CpuCache(
        name=f"L{number}", size_bytes=16, ways=1, line_bytes=16, writes_back=number != 2,
        writes_allocate=number != 2,
    )
    for number in (1, 2, 3)
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@example(levels=PASSES_EVICTED_LINES_ON, accesses=[(0, True), (1, False)], cut=1)
@given(
    levels=hierarchies(),
    accesses=st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=150),
    cut=st.integers(0, 150),
)
def test_counts_are_those_of_a_slow_model(
    levels: tuple[CpuCache, ...], accesses: list[tuple[int, bool]], cut: int
) -> None:
    """Every way to write counts what a plain model counts, wherever the stream is cut."""
    accesses = [(line * 16, is_store) for line, is_store in accesses]
    simulator = Simulator(levels)
    for part in (accesses[:cut], accesses[cut:]):
        if part:
            simulator.feed(
                np.array([address for address, _ in part]),
                np.array([(is_store, 4) for _, is_store in part], dtype=np.int64),
            )
    assert simulator.counts == run_slowly(levels, accesses)


def test_an_access_across_lines_touches_both() -> None:
    simulator = Simulator([CpuCache(name="L1", size_bytes=256, ways=2, line_bytes=64)])
    simulator.feed(np.array([60]), np.array([[0, 8]]))
    assert simulator.counts[0][:3] == [2, 0, 2]


FIVE_POINTS = read_loop_nest(
    "double a[M][N], b[M][N]; for (int j = 1; j < M - 1; j++) for (int i = 1; i < N - 1; i++) "
    "b[j][i] = a[j][i - 1] + a[j][i + 1] + a[j - 1][i] + a[j + 1][i];", {},
)  # fmt: skip
bounds = st.tuples(st.integers(-3, 3), st.integers(-2, 2))


@settings(max_examples=100, deadline=None)
@given(
    outer=st.tuples(st.integers(0, 4), st.integers(-4, 6), st.sampled_from((-2, -1, 1, 3))),
    start=bounds, stop=bounds, step=st.sampled_from((-3, -1, 1, 2)), chunk=st.integers(1, 7),
)  # fmt: skip
def test_triangles_and_any_step_run_as_in_c(
    outer: tuple[int, int, int], start: tuple[int, int], stop: tuple[int, int], step: int,
    chunk: int,
) -> None:  # fmt: skip
    """Iterations come in C's order, however they are cut into chunks."""
    expected = [
        8 * (100 + 10 * j + i)
        for j in range(*outer)
        for i in range(start[0] + start[1] * j, stop[0] + stop[1] * j, step)
    ]
    (first, end, by), (low, rise), (high, fall) = outer, start, stop
    rows, columns = (Expr.symbol(Symbol(SymbolKind.LOOP, name)) for name in "ji")
    loops, values = count_loops([
        ("j", Expr.constant(first), Expr.constant(end), by),
        ("i", low + rise * rows, high + fall * rows, step),
    ])  # fmt: skip
    address = 8 * (100 + 10 * rows + columns)
    places = split_address(address.substitute(values), loops)
    assert places is not None
    nest = LoopNest(
        name="nest", loops=loops, executed=OperationCounts(operations={}, memory={}),
        arrays={"a": Expr.constant(8000)},
        accesses=(NestAccess(
            array="a", is_store=False, bytes=8, strides=places[0], offset=places[1],
        ),),
    )  # fmt: skip
    if not expected:
        with pytest.raises(InputError, match="never run"):
            NestAddresses(nest, {})
        return
    addresses = NestAddresses(nest, {})
    assert addresses.total == len(expected)
    found: list[int] = []
    while addresses.has_more:
        found += addresses.take(chunk)[0].tolist()
    assert found == expected


def test_arrays_lie_behind_one_another_and_are_read_before_writes() -> None:
    """By name, however they are declared, at multiples of the alignment."""
    nest = read_loop_nest(
        "double c[5], p[5], a[9]; for (int i = 2; i < 5; i++) c[i] = p[i] + a[i] + c[i - 1];", {}
    )
    addresses, kinds, _ = NestAddresses(nest, {}).take(1)
    assert addresses.tolist() == [72 + 8, 72 + 40 + 16, 16, 72 + 16]
    assert kinds[:, 0].tolist() == [0, 0, 0, 1]
    aligned, _, _ = NestAddresses(nest, {}, alignment_bytes=64).take(1)
    assert aligned.tolist() == [128 + 8, 192 + 16, 16, 128 + 16]


def test_a_stream_loads_each_line_once() -> None:
    """A copy longer than all caches: 2 lines in, 1 out, at each level, exactly."""
    nest = read_loop_nest("double a[N], b[N]; for (int i = 0; i < N; i++) a[i] = b[i];", {})
    found = simulate_nest(nest, IVY_BRIDGE.caches, {"N": 4_000_000})
    assert found.iterations == 8
    assert [one.lines for one in found.transfers()] == [3, 3, 3]


def test_a_cold_count_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the effort ends before the caches are full, a note tells."""
    sizes = {"N": 2000, "M": 2000}
    assert simulate_nest(FIVE_POINTS, IVY_BRIDGE.caches, sizes).notes == ()
    monkeypatch.setattr(simulated, "_WARM_UP", 0.1)
    [note] = simulate_nest(FIVE_POINTS, IVY_BRIDGE.caches, sizes).notes
    assert "before the caches were full" in note


@pytest.mark.parametrize(
    ("first", "stop", "index", "misses", "stores"),
    [*((shift, "N", "i", 1, 8) for shift in range(8)), (0, "10", "2 * i + 1", None, 4)],
)
def test_counts_begin_with_a_line(
    first: int, stop: str, index: str, misses: int | None, stores: int
) -> None:
    """Wherever a loop begins, whole lines are counted: one miss and one write-back for each; a loop
    that ends before any element begins a line is counted too."""
    nest = read_loop_nest(
        f"double a[N], s; for (int i = {first}; i < {stop}; i++) a[{index}] = s;", {}
    )
    level = CpuCache(name="L1", size_bytes=4096, ways=8, line_bytes=64)
    found = simulate_nest(nest, [level], {"N": 200_000}).levels[0]
    assert found.stores == stores
    assert misses is None or (found.misses, found.evicts) == (misses, misses)


def test_what_cannot_be_simulated_is_named() -> None:
    for sizes, said in (({"N": 100}, "-D M"), ({"N": 100, "M": 1}, "never run for M=1, N=100")):
        with pytest.raises(InputError, match=said):
            predict_by_simulation(FIVE_POINTS, IVY_BRIDGE, sizes)


def change_cache(name: str, **changes: object) -> CpuMachine:
    caches = (
        replace(one, **changes) if one.name == name else one  # type: ignore[arg-type]
        for one in IVY_BRIDGE.caches
    )
    return replace(IVY_BRIDGE, caches=tuple(caches))


def test_unknown_associativity_is_bounded() -> None:
    """A cache described as fully associative, for want of a number, gets ways and a note."""
    cache = IVY_BRIDGE.caches[2]
    machine = change_cache("L3", ways=cache.size_bytes // cache.line_bytes)
    [note] = predict_by_simulation(FIVE_POINTS, machine, {"M": 300, "N": 300}).notes
    assert "L3" in note


def test_misplaced_victim_caches_are_refused() -> None:
    """One in front of all, two behind each other, or one that is inclusive."""
    with pytest.raises(InputError, match="a plain one first"):
        change_cache("L1", is_victim=True)
    caches = [replace(one, is_victim=one.name != "L1") for one in IVY_BRIDGE.caches]
    with pytest.raises(InputError, match="both victim caches"):
        replace(IVY_BRIDGE, caches=tuple(caches))
    with pytest.raises(InputError, match="not inclusive"):
        change_cache("L3", is_victim=True, is_inclusive=True)
