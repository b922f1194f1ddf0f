"""Layer conditions beside a plain least-recently-used cache, where the reference is silent."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.layer_conditions import LayerConditions
from kernelcast.analytic.cpu.machine import CpuCache, CpuMachine, StreamRates
from kernelcast.analytic.cpu.simulated import simulate_nest
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


@pytest.mark.parametrize("name", sorted(NESTS))
def test_agrees_with_a_simulated_cache(name: str) -> None:
    """Counts misses and evictions of strided, transposed, tiled and repeated loops within 6 %."""
    nest, constants = NESTS[name]
    volumes = LayerConditions(nest, MACHINE).predict(constants)
    moved = tuple(one for one in nest.accesses if not one.strides[-1].is_zero)
    for level, size in zip(volumes.levels, SIZES, strict=False):
        cache = CpuCache(name="L1", size_bytes=size, line_bytes=64, ways=size // 64)
        simulated = simulate_nest(replace(nest, accesses=moved), [cache], constants).levels[0]
        assert level.misses == pytest.approx(simulated.misses, rel=0.06, abs=0.06)
        assert level.evicts == pytest.approx(simulated.evicts, rel=0.06, abs=0.06)
