"""Layer conditions beside a plain least-recently-used cache, where the reference is silent."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

import pytest

from kernelcast.analytic.cpu.layer_conditions import LayerConditions
from kernelcast.analytic.cpu.machine import CpuCache, CpuMachine, StreamRates
from kernelcast.expressions import Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest
from support.reference_nests import make_nest

SIZES = (2048, 8192, 65536)
MACHINE = CpuMachine(
    id="small", name="small", cores=1, clock_hz=1e9,
    caches=tuple(
        CpuCache(name=f"L{place}", size_bytes=size, line_bytes=64, ways=size // 64)
        for place, size in enumerate(SIZES, start=1)
    ),
    streams=StreamRates(),
)  # fmt: skip
J, I = ("j", "1", "M - 1", 1), ("i", "1", "N - 1", 1)  # noqa: E741 - the loops' own names
SQUARE = {"a": ["M", "N"], "b": ["M", "N"]}
CROSS = [("a", "j-1, i"), ("a", "j, i-1"), ("a", "j, i+1"), ("a", "j+1, i")]
RESULT = [("b", "j, i")]
MATRICES = {name: ["N", "N"] for name in "ABC"}
PRODUCT = [("A", "i, k"), ("B", "k, j"), ("C", "i, j")]
NESTS: Mapping[str, tuple[LoopNest, Mapping[str, int]]] = {
    "step of two": (
        make_nest([J, ("i", "1", "N - 1", 2)], SQUARE, CROSS, RESULT), {"M": 40, "N": 200},
    ),
    "step of three": (
        make_nest([J, ("i", "1", "N - 1", 3)], SQUARE, CROSS, RESULT), {"M": 40, "N": 301},
    ),
    "every other row": (
        make_nest([("j", "1", "M - 1", 2), I], SQUARE, [*CROSS, ("a", "j, i")], RESULT),
        {"M": 60, "N": 200},
    ),
    "backwards": (
        make_nest([J, I], SQUARE, [("a", "j-1, N-i"), ("a", "j+1, N-i")], RESULT),
        {"M": 40, "N": 200},
    ),
    "down the columns": (make_nest([I, J], SQUARE, CROSS, RESULT), {"M": 40, "N": 100}),
    "two stores": (
        make_nest([J, I], SQUARE, [("a", "j, i")], [*RESULT, ("b", "j+1, i")]),
        {"M": 40, "N": 200},
    ),
    "transposition": (
        make_nest(
            [("i", "0", "N", 1), ("j", "0", "N", 1)], {"a": ["N", "N"], "b": ["N", "N"]},
            [("a", "j, i")], [("b", "i, j")],
        ),
        {"N": 136},
    ),
    "matrix product": (
        make_nest([(one, "0", "N", 1) for one in "ijk"], MATRICES, PRODUCT, [("C", "i, j")]),
        {"N": 36},
    ),
    "matrix product by rows": (
        make_nest([(one, "0", "N", 1) for one in "ikj"], MATRICES, PRODUCT, [("C", "i, j")]),
        {"N": 36},
    ),
    "convolution": (
        make_nest(
            [("i", "0", "N", 1), ("k", "0", "K", 1)], {"x": ["N + K"], "w": ["K"]},
            [("x", "i + k"), ("w", "k")], [],
        ),
        {"N": 2000, "K": 16},
    ),
    "tiles": (
        make_nest(
            [("t", "1", "N - 1", 320), J, ("i", "t", "t + 320", 1)], SQUARE, CROSS, RESULT,
        ),
        {"M": 40, "N": 642},
    ),
}  # fmt: skip


class Cache:
    """One set, least recently used out first, modified lines written back."""

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.held: OrderedDict[int, bool] = OrderedDict()
        self.misses = self.evicts = 0

    def touch(self, line: int, *, is_store: bool) -> None:
        """Load or store a line."""
        self.misses += line not in self.held
        self.held[line] = self.held.pop(line, False) or is_store
        if len(self.held) > self.lines:
            self.evicts += self.held.popitem(last=False)[1]


def iterate(nest: LoopNest, values: Mapping[Symbol, int]) -> Iterator[Mapping[Symbol, int]]:
    """Give the loop variables of every iteration."""

    def descend(place: int, known: dict[Symbol, int]) -> Iterator[Mapping[Symbol, int]]:
        if place == len(nest.loops):
            yield known
            return
        loop = nest.loops[place]
        start, stop = int(loop.start.evaluate(known)), int(loop.stop.evaluate(known))
        for value in range(start, stop, loop.step):
            yield from descend(place + 1, {**known, Symbol(SymbolKind.LOOP, loop.name): value})

    return descend(0, dict(values))


def simulate(nest: LoopNest, constants: Mapping[str, int]) -> tuple[int, Sequence[Cache]]:
    """Run a nest twice and count what the second time misses and evicts."""
    values = {Symbol(SymbolKind.SCALAR, name): value for name, value in constants.items()}
    bases = {array.name: place << 40 for place, array in enumerate(nest.arrays)}
    moved = [
        one for one in nest.accesses
        if Symbol(SymbolKind.LOOP, nest.loops[-1].name) in one.offset_bytes.symbols()
    ]  # fmt: skip
    trace = [
        ((bases[one.array] + int(one.offset_bytes.evaluate(known))) // 64, one.is_store)
        for known in iterate(nest, values)
        for one in moved
    ]
    caches = [Cache(size // 64) for size in SIZES]
    for cache in caches:
        for line, is_store in trace:
            cache.touch(line, is_store=is_store)
        cache.misses = cache.evicts = 0
        for line, is_store in trace:
            cache.touch(line, is_store=is_store)
    return len(trace) // len(moved), caches


@pytest.mark.parametrize("name", sorted(NESTS))
def test_agrees_with_a_simulated_cache(name: str) -> None:
    """Counts misses and evictions of strided, transposed, tiled and repeated loops within 6 %."""
    nest, constants = NESTS[name]
    volumes = LayerConditions(nest, MACHINE).predict(constants)
    iterations, caches = simulate(nest, constants)
    for level, cache in zip(volumes.levels, caches, strict=False):
        scale = volumes.iterations / iterations
        assert level.misses == pytest.approx(cache.misses * scale, rel=0.06, abs=0.06)
        assert level.evicts == pytest.approx(cache.evicts * scale, rel=0.06, abs=0.06)
