"""Compares the cache simulator with the reference's published volumes, and measures its speed.

    python benchmarks/cache_simulator.py [--reference-python PYTHON] [--others CASES KERNELS]
        > benchmarks/results/cache_simulator/results.md

PYTHON has pycachesim installed, in an environment of its own. With it, the speed of both is
measured side by side, and where a volume differs by more than 2 % the reference runs the stream
of accesses that was simulated here: a difference that is gone then lies in the order of reads,
which the published descriptions do not tell; one that stays lies in the caches. CASES are more
results of the reference, made by `reference_cache_simulator.py cases`, and KERNELS their listings.

The descriptions list reads in alphabetical order and without their order in the source. Here an
iteration reads array by array in order of declaration, the nearest elements first, as the paper's
listings do; then it writes.
"""

import argparse
import json
import re
import statistics
import struct
import subprocess
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernelcast.analytic.cpu.cache_simulator import nest as nest_module
from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
)
from kernelcast.analytic.cpu.cache_simulator.nest import simulate_nest
from kernelcast.analytic.cpu.cache_simulator.simulation import Simulator
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestAccess, NestArray, NestLoop
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.operations import OperationCounts

TOLERANCE = 0.02
REPEATS = 7
ITERATIONS = 1_000_000
HELPER = Path(__file__).with_name("reference_cache_simulator.py")


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


def list_levels(machine: dict) -> list[dict]:
    """List the caches of the reference's machine, for one core."""
    sizes = machine["cachesim sizes 1 core"]
    found = []
    for one in machine["memory hierarchy"]:
        if cache := one.get("cache per group"):
            sets = sizes[one["level"]] // (cache["ways"] * cache["cl_size"])
            found.append({**cache, "level": one["level"], "sets": sets})
    return found


def read_hierarchy(levels: list[dict]) -> CacheHierarchy:
    """Make caches of the reference's description."""
    victims = {one.get("victims_to") for one in levels}
    return CacheHierarchy(
        levels=tuple(
            CacheLevel(
                name=one["level"],
                size_bytes=one["sets"] * one["ways"] * one["cl_size"],
                ways=one["ways"],
                line_bytes=one["cl_size"],
                role=CacheRole.VICTIM if one["level"] in victims else CacheRole.CACHE,
                writes_back=one["write_back"],
                writes_allocate=one["write_allocate"],
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


class Tee(Simulator):
    """Sends a copy of its stream to the reference."""

    reference: subprocess.Popen

    def feed_checked(self, addresses: np.ndarray, kinds: np.ndarray) -> None:
        """Run accesses here and there."""
        if not hasattr(self, "_has_begun"):
            self._has_begun = True
            self._send(kinds[:, 0])
        self._send(addresses)
        super().feed_checked(addresses, kinds)

    def reset_counts(self) -> None:
        """Count from 0 again, here and there."""
        self._send(np.empty(0, dtype=np.int64))
        super().reset_counts()

    def _send(self, words: np.ndarray) -> None:
        self.reference.stdin.write(struct.pack("q", len(words)) + words.tobytes())


def write_levels(levels: list[dict]) -> str:
    """Write caches as pycachesim reads them."""
    keys = ("sets", "ways", "cl_size", "replacement_policy", "write_back", "write_allocate",
            "load_from", "store_to", "victims_to")  # fmt: skip
    return json.dumps({x["level"]: {k: x[k] for k in keys if k in x} for x in levels})


def replay(nest: LoopNest, levels: list[dict], constants: dict, python: str) -> tuple:
    """Give the reference's volumes for the stream simulated here, and lines held twice."""
    command = [python, HELPER, "replay", write_levels(levels)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reference:
        Tee.reference = reference
        nest_module.Simulator, plain = Tee, nest_module.Simulator
        found = simulate_nest(nest, read_hierarchy(levels), constants)
        nest_module.Simulator = plain
        answer = json.loads(reference.communicate()[0])
    lines = answer["stats"][0]["STORE_count"] / found.levels[0].stores
    counts = {
        key: [one[f"{name}_count"] / lines for one in answer["stats"]]
        for key, name in (
            ("misses", "MISS"),
            ("evicts", "EVICT"),
            ("loads", "LOAD"),
            ("stores", "STORE"),
        )
    }
    unasked = counts["loads"][1] - counts["misses"][0]
    return list_reference(counts), answer["twice"], unasked


def explain(found: float, published: float, replayed: float, twice: int, unasked: float) -> str:
    """Say where a difference lies."""
    if not differs(found, replayed):
        return "order of reads: both agree on the same stream"
    same = "" if differs(replayed, published) else ", as published"
    if twice:
        return f"the reference's victim cache holds {twice} lines twice{same}"
    if unasked > 0:
        return (
            f"the reference's second level loads {unasked:.3g} lines that the first did not ask "
            f"for, to be written over as a whole{same}"
        )
    return "not known"


def compare(folder: Path, python: str | None) -> None:
    """Print the comparison with the published volumes."""
    data = json.loads((folder / "cases.json").read_text())
    cases = [x for x in data["cases"] if "SIM" in x and x["kernel"] in data["kernels"]]
    bad = boundaries = bad_boundaries = 0
    spent = 0.0
    print("## Volumes against the reference simulator\n")
    print("| machine | kernel | sizes | boundary | here | reference | on this stream | why |")
    print("|---|---|---|---|---|---|---|---|")
    for case in cases:
        nest = read_nest(case["kernel"], data["kernels"][case["kernel"]])
        levels = list_levels(data["machines"][case["machine"]])
        begin = time.process_time()
        found = list_volumes(simulate_nest(nest, read_hierarchy(levels), case["defines"]))
        spent += time.process_time() - begin
        pairs = list(zip(found, list_reference(case["SIM"]), strict=True))
        off = [at for at, (here, there) in enumerate(pairs) if differs(here, there)]
        bad, boundaries = bad + bool(off), boundaries + len(pairs)
        bad_boundaries += len(off)
        replayed = replay(nest, levels, case["defines"], python) if off and python else None
        for at in off:
            sizes = ", ".join(f"{key}={value}" for key, value in case["defines"].items())
            name = f"{levels[at]['level']} and behind"
            there, why = "", ""
            if replayed:
                there = f"{replayed[0][at]:.4g}"
                why = explain(*pairs[at], replayed[0][at], *replayed[1:])
            print(f"| {case['machine'][:7]} | {case['kernel']} | {sizes} | {name} "
                  f"| {pairs[at][0]:.4g} | {pairs[at][1]:.4g} | {there} | {why} |")  # fmt: skip
    within, total = len(cases) - bad, len(cases)
    good = boundaries - bad_boundaries
    print(f"\n{within} of {total} cases ({within / total:.1%}) within 2 % at every boundary,")
    print(f"{good} of {boundaries} boundaries ({good / boundaries:.1%});")
    print(f"{spent / total:.2f} CPU s per case.")
    skipped = sum("SIM" in x for x in data["cases"]) - total
    print(f"{skipped} more cases are of kernels that are not described.\n")


def compare_others(results: Path, kernels: Path) -> None:
    """Print the comparison with other machines and sizes, by kind of hierarchy."""
    total: Counter[str] = Counter()
    good: Counter[str] = Counter()
    rows = []
    for case in json.loads(results.read_text()):
        if "error" in case:
            continue
        levels = case["levels"]
        has_victim = any(one.get("victims_to") for one in levels)
        kind = "with a victim cache" if has_victim else "without victim caches"
        listing = (kernels / f"{case['kernel']}.c").read_text()
        nest = read_loop_nest(listing.split("swap(")[0], case["defines"])
        found = list_volumes(simulate_nest(nest, read_hierarchy(levels)))
        pairs = list(zip(found, list_reference(case), strict=True))
        total[kind] += 1
        good[kind] += not any(differs(*one) for one in pairs)
        sizes = ", ".join(f"{key}={value}" for key, value in case["defines"].items())
        rows.extend(
            f"| {case['machine'][:13]} | {case['kernel']} | {sizes} | {levels[at]['level']} "
            f"| {here:.4g} | {there:.4g} |"
            for at, (here, there) in enumerate(pairs)
            if differs(here, there)
        )
    print("## Other machines and sizes\n")
    print(
        "Machines of Kerncraft's examples, sizes that the caches just hold and others. The\n"
        "reference was run for them after the warm-up was settled; the order of reads changed\n"
        "once more since, which added one agreement. Faults of the reference show: a victim\n"
        "cache takes in lines that it holds already, which leaves less room; the victim caches\n"
        "of Zen and ThunderX2 are filled by loads, too;\n"
        "and loops that step by two (2unrolled) pass half of each row.\n"
    )
    for kind in sorted(total):
        print(f"- {kind}: {good[kind]} of {total[kind]} cases within 2 % at every boundary")
    print("\n| machine | kernel | sizes | boundary behind | here | reference |")
    print("|---|---|---|---|---|---|")
    print("\n".join(rows) + "\n")


def measure(folder: Path, python: str | None) -> None:
    """Print the throughput and the memory of the 5-point stream."""
    machine = json.loads((folder / "cases.json").read_text())["machines"]["IvyBridgeEP_E5-2690v2"]
    levels = list_levels(machine)
    caches = read_hierarchy(levels)
    kinds = np.array([[0, 8]] * 4 + [[1, 8]])
    i, row = np.arange(ITERATIONS), 1000
    stream = np.stack([i + row - 1, i + row + 1, i, i + 2 * row, i + 10**8 + row], 1).ravel() * 8
    Simulator(caches).feed(stream[:5], is_store=kinds[:, 0], size_bytes=8)
    here, there = [], []
    command = [python, HELPER, "speed", write_levels(levels)]
    reference = python and subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for _ in range(REPEATS):
        simulator = Simulator(caches)
        begin = time.process_time()
        simulator.feed(stream, is_store=kinds[:, 0], size_bytes=8)
        here.append(stream.size / (time.process_time() - begin) / 1e6)
        if reference:
            reference.stdin.write(f"{ITERATIONS}\n")
            reference.stdin.flush()
            there.append(stream.size / float(reference.stdout.readline()) / 1e6)
    if reference:
        reference.communicate()
    published = json.loads((folder / "cache_simulator_throughput.json").read_text())["results"]
    known = published["2d-5pt (4 loads+1 store) W=1000, IVB"]["Maccess_per_cpu_s"]
    print("## Speed: 2-D 5-point stream of 1000 columns through three levels\n")
    print(
        f"Million accesses per CPU second, {REPEATS} runs, turn by turn, empty caches at first.\n"
    )
    print("| | median | least | most |")
    print("|---|---|---|---|")
    for name, rates in (("here", here), ("pycachesim", there)):
        if rates:
            print(f"| {name} | {statistics.median(rates):.1f} | {min(rates):.1f} "
                  f"| {max(rates):.1f} |")  # fmt: skip
    print(f"\nThe published figure of the reference is {known:.1f}.\n")
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
    parser = argparse.ArgumentParser(description="Cache simulator against the reference.")
    usual = Path(__file__).parents[1] / "../shared/reference/kerncraft"
    parser.add_argument("--reference", type=Path, default=usual)
    parser.add_argument("--reference-python")
    parser.add_argument("--others", type=Path, nargs=2)
    given = parser.parse_args()
    print("# Cache simulator\n")
    compare(given.reference, given.reference_python)
    if given.others:
        compare_others(*given.others)
    measure(given.reference, given.reference_python)
