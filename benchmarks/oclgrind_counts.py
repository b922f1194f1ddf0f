"""Executed operations beside Oclgrind's: loads, stores, branches and arithmetic.

For every example, made small: the counting copy of its kernel runs over the whole index space on a
device, and the kernel itself under ``oclgrind --inst-counts``, built without optimisation, with
the same buffers. Writes ``results/oclgrind_counts/<device>.json``.

Run ``python -m benchmarks oclgrind_counts``, ``--device ID`` for another device than the first,
``--only NAME`` for one example.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import describe_machine
from oclgrind_output import SHOWN, Executed, sort_oclgrind, sort_own
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from kernelcast.expressions.kernel_facts import ONCE, KernelFacts
from kernelcast.features.access import infer_accesses
from kernelcast.features.analysis import analyse
from kernelcast.features.instrumentation.source import instrument
from kernelcast.features.instrumentation.translation import translate_sample
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.operations import OperationCounts, add_weighted
from kernelcast.records.problem import Problem
from kernelcast.sampling.counting import CountingLaunch, make_sample
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.workers.environment import child_environment

ROOT = Path(__file__).resolve().parent.parent
CHILD = Path(__file__).with_name("oclgrind_child.py")
RESULTS = ROOT / "benchmarks" / "results" / "oclgrind_counts"
SEED = 0
TIMEOUT_S = 300
TOLERANCE = 0.05
# Sizes at which Oclgrind, some million instructions a second, needs a few seconds at most; with
# remainders, so that guards have something to do.
SIZES: Mapping[str, Mapping[str, int]] = {
    "chebyshev_fp64": {"N": 2048, "TERMS": 48},
    "convolution": {"WIDTH": 70, "HEIGHT": 53, "RADIUS": 3},
    "grid_stride": {"N": 40_001, "WORK_ITEMS": 1024},
    "histogram": {"N": 100_000, "PER_WORK_ITEM": 16},
    "inplace_update": {"N": 16_200, "ELEMENTS": 8, "STEPS": 20},
    "mandelbrot": {"SIDE": 96, "LIMIT": 60},
    "matmul_tiled": {"N": 128, "TILE": 16},
    "nbody": {"N": 256, "GROUP": 64},
    "pointer_chase": {"N": 65_536, "WORK_ITEMS": 1024, "STEPS": 220},
    "reduction": {"N": 30_000, "GROUPS": 16, "GROUP": 64},
    "scan_blocks": {"N": 10_001, "GROUP": 64},
    "spmv_csr": {"ROWS": 300, "COLUMNS": 65_536, "NNZ": 200_000},
    "stencil2d": {"NX": 128, "NY": 96},
    "stencil3d": {"NX": 42, "NY": 29, "NZ": 17},
    "transcendental": {"N": 4096, "ROUNDS": 4},
    "transpose": {"WIDTH": 150, "HEIGHT": 133, "TILE": 16},
    "triad": {"N": 12_800, "SWEEPS": 4},
    "triangular": {"N": 832},
}
# Why the two may differ although both are right; in brackets, which side counts more. No example
# does it, but stores to single lanes of a vector would: Oclgrind rewrites what clang makes of
# them, a load and a store of the whole vector, into a store per lane; and it runs vload, vstore
# and copies of structures as calls, without loads and stores.
WHY: Mapping[str, str] = {
    "float add": "a contracted difference (a * b - c) negates an operand first (Oclgrind)",
    "integer add": "pointers are subtracted as integers, p - n negates n (Oclgrind)",
    "integer divide": "a difference of pointers is divided by the element's size (Oclgrind)",
    "integer compare": "?: of vectors compares its condition with zero (Oclgrind)",
    "integer logic": "?: of vectors is and, or, xor; shift distances are masked (Oclgrind)",
    "select": "?: of vectors is and, or, xor (kernelcast)",
    "branches": "blocks that only jump are none in compiled code",
    "convert": "an index is widened to the width of a pointer; no work in the source (Oclgrind)",
    "address": "an array's constant subscript is folded (kernelcast); lanes of a vector of three "
    "and members are addressed one by one (Oclgrind)",
}
UNEXPLAINED = "not explained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One example, counted twice."""

    problem: str
    parameters: Mapping[str, int]
    own: Executed
    oclgrind: Executed
    instructions: Counter[str]
    oclgrind_s: float

    @property
    def is_exact(self) -> bool:
        """Whether loads, stores, branches, atomics and barriers agree to the last one."""
        return self.own.exact == self.oclgrind.exact

    @property
    def arithmetic_ratio(self) -> float:
        """Arithmetic operations, ours by Oclgrind's."""
        own, other = self.own.arithmetic.total(), self.oclgrind.arithmetic.total()
        return own / other if other else float(own == 0)

    @property
    def verdict(self) -> str:
        """What the comparison came to."""
        if not self.is_exact:
            return "differs"
        if self.own.arithmetic == self.oclgrind.arithmetic:
            return "equal"
        return "within 5 %" if abs(self.arithmetic_ratio - 1) <= TOLERANCE else "arithmetic"


def main() -> None:
    """Compare every example, print the table and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", help="id of a device, or its beginning; the first without")
    parser.add_argument("--only", action="append", default=[], help="name of an example")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    if shutil.which("oclgrind") is None:
        sys.exit("oclgrind is not installed; on Debian and Ubuntu: apt-get install oclgrind")
    os.environ.update(child_environment())
    devices = find_devices()
    session = open_session(
        *(choose_device(options.device, devices) if options.device else devices[0])
    )
    found = [
        compare(session, path, SIZES[path.stem])
        for path in sorted((ROOT / "examples").glob("*/*.yaml"))
        if not options.only or path.stem in options.only
    ]
    Console().print(make_table(found))
    print_differences(found)
    name = session.description.id
    target = options.json or RESULTS / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "device": name,
        "machine": describe_machine() | {"oclgrind": read_oclgrind_version()},
        "rows": [to_row(one) for one in found],
    }
    target.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def compare(session: DeviceSession, path: Path, parameters: Mapping[str, int]) -> Comparison:
    """Count an example on a device and in Oclgrind."""
    own = sort_own(count_own(session, read_problem(path, parameters=parameters)))
    started_s = time.perf_counter()
    oclgrind, instructions = sort_oclgrind(run_oclgrind(path, parameters))
    return Comparison(
        problem=path.stem,
        parameters=parameters,
        own=own,
        oclgrind=oclgrind,
        instructions=instructions,
        oclgrind_s=time.perf_counter() - started_s,
    )


def count_own(session: DeviceSession, problem: Problem) -> OperationCounts:
    """Run the counting copy over the whole index space; give all that was executed."""
    analysis = analyse(problem.kernel)
    copy = instrument(problem.kernel, analysis)
    accesses = infer_accesses(problem.kernel, len(problem.arguments))
    with (
        session.lock,
        prepared_problem(session, problem, CountingLaunch, seed=SEED, inferred=accesses) as launch,
    ):
        groups = launch.ndrange.group_counts
        whole = GroupBox(start=(0,) * len(groups), shape=groups)
        counted = launch.count(copy, launch.build_counting(copy), [whole])
        counts = make_sample(launch.ndrange, [whole], counted, copy.counter_count)
    sums = np.nansum(translate_sample(analysis, counts).counts, axis=(0, 1))
    totals = {ONCE: problem.ndrange.work_item_count}
    totals |= {index: round(float(total)) for index, total in enumerate(sums)}
    return total_operations(analysis.facts, totals)


def total_operations(facts: KernelFacts, totals: Mapping[int, int]) -> OperationCounts:
    """Add up blocks, each as often as the sums of the counters say."""
    return add_weighted(
        (block.operations, sum(factor * totals[counter] for counter, factor in block.count))
        for block in facts.blocks
    )


def run_oclgrind(path: Path, parameters: Mapping[str, int]) -> str:
    """Run an example under Oclgrind; give what it printed.

    Raises
    ------
    RuntimeError
        If the launch failed or touched memory that is not its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        done = subprocess.run(
            ["oclgrind", "--inst-counts", "--log", str(log), sys.executable, str(CHILD),
             str(path), json.dumps(parameters), str(SEED)],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            env={**os.environ, "PYOPENCL_NO_CACHE": "1"},
        )  # fmt: skip
        errors = log.read_text(encoding="utf-8") if log.exists() else ""
    if done.returncode or errors:
        msg = f"{path.stem}: oclgrind failed: {(errors or done.stderr).strip()[:2000]}"
        raise RuntimeError(msg)
    return done.stdout


def read_oclgrind_version() -> str:
    """Give Oclgrind's version."""
    shown = subprocess.run(["oclgrind", "--version"], capture_output=True, text=True, check=True)
    return " ".join(shown.stdout.split()[:2])


def make_table(found: list[Comparison]) -> Table:
    """Show one example a row."""
    title = "Executed operations: kernelcast beside oclgrind --inst-counts"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("example", no_wrap=True)
    for heading in ("loads", "stores", "branches", "operations", "ratio", "s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in found:
        table.add_row(
            one.problem,
            *(show_pair(one, what) for what in ("loads", "stores", "branches")),
            f"{one.own.arithmetic.total():,}",
            f"{one.arithmetic_ratio:.4f}",
            f"{one.oclgrind_s:.1f}",
            one.verdict,
        )
    return table


def show_pair(one: Comparison, what: str) -> str:
    """Show a number that both agree on once, else both."""
    own, other = (
        sum(times for name, times in side.exact.items() if name.startswith(what))
        for side in (one.own, one.oclgrind)
    )
    return f"{own:,}" if own == other else f"{own:,} / {other:,}"


def find_differences(one: Comparison) -> dict[str, dict[str, int | str]]:
    """Give what differs, by name: both numbers and why."""
    return {
        name: {"own": own[name], "oclgrind": other[name], "why": WHY.get(name, UNEXPLAINED)}
        for own, other in (
            (one.own.exact, one.oclgrind.exact),
            (one.own.arithmetic, one.oclgrind.arithmetic),
            (one.own.shown, one.oclgrind.shown),
        )
        for name in sorted(own | other)
        if own[name] != other[name]
    }


def print_differences(found: list[Comparison]) -> None:
    """Print what differs, kind by kind: the reasons are the same for all examples."""
    by_name: dict[str, list[str]] = {}
    for one in found:
        for name, row in find_differences(one).items():
            text = f"{one.problem} {row['own']:,} / {row['oclgrind']:,}"
            by_name.setdefault(name, []).append(text)
    for name, rows in by_name.items():
        compared = "" if name not in SHOWN else ", not compared"
        print(f"{name}{compared}: {WHY.get(name, UNEXPLAINED)}\n    {'; '.join(rows)}")


def to_row(one: Comparison) -> dict[str, object]:
    """Give a comparison as it is written."""
    return {
        "problem": one.problem,
        "parameters": dict(one.parameters),
        "verdict": one.verdict,
        "arithmetic_ratio": one.arithmetic_ratio,
        "oclgrind_s": round(one.oclgrind_s, 3),
        "own": one.own.to_dict(),
        "oclgrind": one.oclgrind.to_dict(),
        "differences": find_differences(one),
        "instructions": dict(one.instructions.most_common()),
    }


if __name__ == "__main__":
    main()
