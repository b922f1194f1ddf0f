"""Compares the cache simulator with the reference's published volumes, and measures its speed.

    python benchmarks/cache_simulator.py [shared/reference/kerncraft] > results.md

The reference's descriptions list reads in alphabetical order and without their order in the
source. Here an iteration reads array by array in order of declaration, the nearest elements
first, as the paper's listings do; then it writes. Where a volume differs by more than 2 %, the
same nest is simulated with other orders of reads and over other stretches of the loop: a spread
of more than 2 % says that the number depends on what the description does not tell.
"""

import json
import random
import re
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
)
from kernelcast.analytic.cpu.cache_simulator.nest import Effort, simulate_nest
from kernelcast.analytic.cpu.cache_simulator.simulation import Simulator
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.loop_nest import LoopNest, NestAccess, NestArray, NestLoop
from kernelcast.records.operations import OperationCounts
from kernelcast.records.quasi_affine import Expr, Symbol, SymbolKind

TOLERANCE = 0.02
REPEATS = 5


def read_expression(text: str, loops: list[str]) -> Expr:
    """Read a sum of names and numbers."""
    total = Expr.constant(0)
    for sign, term in re.findall(r"([+-]?)\s*(\w+)", text):
        kind = SymbolKind.LOOP if term in loops else SymbolKind.SCALAR
        value = Expr.of(int(term) if term.isdigit() else Symbol(kind, term))
        total = total - value if sign == "-" else total + value
    return total


def rank_index(text: str) -> tuple[int, int, bool]:
    """Place an element among those of its array: by distance, then by dimension."""
    parts = [one for one in text.strip("()").split(",") if one.strip()]
    for place, part in enumerate(reversed(parts)):
        shift = re.search(r"([+-]) (\d+)", part)
        if shift:
            return int(shift[2]), place, shift[1] == "-"
    return 0, 0, False


def read_nest(name: str, described: dict) -> LoopNest:
    """Make a loop nest of the reference's description."""
    loops = [one[0] for one in described["loop_stack"]]
    sizes = {
        array: tuple(read_expression(one, []) for one in dimensions)
        for array, (_, dimensions) in described["variables"].items()
        if dimensions is not None
    }

    def list_accesses(key: str, *, is_store: bool) -> Iterator[NestAccess]:
        for array in sizes:
            for text in sorted(described[key].get(array, ()), key=rank_index):
                offset = Expr.constant(0)
                parts = [one for one in text.strip("()").split(",") if one.strip()]
                for extent, part in zip(sizes[array], parts, strict=True):
                    offset = offset * extent + read_expression(part, loops)
                yield NestAccess(array=array, offset_bytes=8 * offset, is_store=is_store, bytes=8)

    return LoopNest(
        name=name,
        loops=tuple(
            NestLoop(name=one, start=read_expression(start, []), stop=read_expression(stop, []))
            for one, start, stop, _ in described["loop_stack"]
        ),
        arrays=tuple(
            NestArray(name=one, element_bytes=8, dimensions=dims) for one, dims in sizes.items()
        ),
        accesses=(
            *list_accesses("sources", is_store=False),
            *list_accesses("destinations", is_store=True),
        ),
        executed=OperationCounts(operations={}, memory={}),
    )


def read_hierarchy(machine: dict) -> CacheHierarchy:
    """Make the caches of the reference's machine, for one core."""
    levels = [one for one in machine["memory hierarchy"] if one.get("cache per group")]
    victims = {one["cache per group"].get("victims_to") for one in levels}
    return CacheHierarchy(
        levels=tuple(
            CacheLevel(
                name=one["level"],
                size_bytes=machine["cachesim sizes 1 core"][one["level"]],
                ways=one["cache per group"]["ways"],
                line_bytes=one["cache per group"]["cl_size"],
                role=CacheRole.VICTIM if one["level"] in victims else CacheRole.CACHE,
                writes_back=one["cache per group"]["write_back"],
                writes_allocate=one["cache per group"]["write_allocate"],
            )
            for one in levels
        )
    )


def list_volumes(found: CacheVolumes) -> list[float]:
    """Give the lines that cross each boundary."""
    memory = found.levels[-1]
    inner = [one.misses + one.evicts for one in found.levels[:-2]]
    return [*inner, (memory.loads or 0) + (memory.stores or 0)]


def list_reference(published: dict) -> list[float]:
    """Give the same lines of the reference."""
    inner = zip(published["misses"][:-2], published["evicts"][:-2], strict=True)
    return [*(one + two for one, two in inner), published["loads"][-1] + published["stores"][-1]]


def differs(found: float, published: float) -> bool:
    """Tell whether a volume is further off than the tolerance."""
    return abs(found - published) > TOLERANCE * published


def explain(nest: LoopNest, hierarchy: CacheHierarchy, constants: dict, at: int) -> str:
    """Simulate variants, and tell how far a boundary's volume moves."""
    orders, stretches = [], []
    for seed in range(3):
        shuffled = list(nest.accesses)
        reads = [one for one in shuffled if not one.is_store]
        random.Random(seed).shuffle(reads)
        other = replace(nest, accesses=(*reads, *(x for x in shuffled if x.is_store)))
        orders.append(list_volumes(simulate_nest(other, hierarchy, constants))[at])
    efforts = (Effort(warm_share=1.0), Effort(warm_share=2), Effort(window_lines=3000))
    stretches.extend(
        list_volumes(simulate_nest(nest, hierarchy, constants, effort=one))[at] for one in efforts
    )
    return (
        f"order of reads {min(orders):.4g} to {max(orders):.4g}, "
        f"stretch counted {min(stretches):.4g} to {max(stretches):.4g}"
    )


def compare(folder: Path) -> None:
    """Print the comparison with the published volumes."""
    data = json.loads((folder / "cases.json").read_text())
    cases = [x for x in data["cases"] if "SIM" in x and x["kernel"] in data["kernels"]]
    bad = boundaries = bad_boundaries = 0
    spent = 0.0
    print("## Volumes against the reference simulator\n")
    print("| machine | kernel | sizes | boundary | here | reference | why |")
    print("|---|---|---|---|---|---|---|")
    for case in cases:
        nest = read_nest(case["kernel"], data["kernels"][case["kernel"]])
        hierarchy = read_hierarchy(data["machines"][case["machine"]])
        begin = time.process_time()
        found = list_volumes(simulate_nest(nest, hierarchy, case["defines"]))
        spent += time.process_time() - begin
        pairs = list(zip(found, list_reference(case["SIM"]), strict=True))
        off = [at for at, (here, there) in enumerate(pairs) if differs(here, there)]
        bad, boundaries = bad + bool(off), boundaries + len(pairs)
        bad_boundaries += len(off)
        for at in off:
            sizes = ", ".join(f"{key}={value}" for key, value in case["defines"].items())
            name = f"{hierarchy.levels[at].name} and behind"
            why = explain(nest, hierarchy, case["defines"], at)
            print(f"| {case['machine'][:7]} | {case['kernel']} | {sizes} | {name} "
                  f"| {pairs[at][0]:.4g} | {pairs[at][1]:.4g} | {why} |")  # fmt: skip
    within, total = len(cases) - bad, len(cases)
    good = boundaries - bad_boundaries
    print(f"\n{within} of {total} cases ({within / total:.1%}) within 2 % at every boundary,")
    print(f"{good} of {boundaries} boundaries ({good / boundaries:.1%});")
    print(f"{spent / total:.2f} CPU s per case.")
    skipped = sum("SIM" in x for x in data["cases"]) - total
    print(f"{skipped} more cases are of kernels that are not described.\n")


def measure(folder: Path) -> None:
    """Print the throughput and the memory of the 5-point stream."""
    caches = read_hierarchy(
        json.loads((folder / "cases.json").read_text())["machines"]["IvyBridgeEP_E5-2690v2"]
    )
    kinds = np.array([[0, 8]] * 4 + [[1, 8]])
    i = np.arange(1_000_000)
    row = 1000
    stream = np.stack([i + row - 1, i + row + 1, i, i + 2 * row, i + 10**8 + row], 1).ravel() * 8
    best = np.inf
    for _ in range(REPEATS):
        simulator = Simulator(caches)
        simulator.feed(stream[:5], is_store=kinds[:, 0], size_bytes=8)
        begin = time.process_time()
        simulator.feed(stream, is_store=kinds[:, 0], size_bytes=8)
        best = min(best, time.process_time() - begin)
    published = json.loads((folder / "cache_simulator_throughput.json").read_text())["results"]
    there = published["2d-5pt (4 loads+1 store) W=1000, IVB"]["Maccess_per_cpu_s"]
    print("## Speed: 2-D 5-point stream of 1000 columns through three levels\n")
    print(f"{stream.size / best / 1e6:.1f} million accesses per CPU second "
          f"(best of {REPEATS}); the reference's published figure is {there:.1f}.")  # fmt: skip
    peaks = []
    for rounds in (1, 10):
        tracemalloc.start()
        simulator = Simulator(caches)
        for _ in range(rounds):
            simulator.feed(stream, is_store=kinds[:, 0], size_bytes=8)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    print(f"Memory while it runs: {peaks[0] / 1e6:.2f} MB for 5 million accesses, "
          f"{peaks[1] / 1e6:.2f} MB for 50 million.")  # fmt: skip


if __name__ == "__main__":
    usual = Path(__file__).parents[1] / "../shared/reference/kerncraft"
    reference = Path(sys.argv[1]) if len(sys.argv) > 1 else usual
    print("# Cache simulator\n")
    compare(reference)
    measure(reference)
