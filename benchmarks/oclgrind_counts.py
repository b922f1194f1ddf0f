"""Executed operations beside Oclgrind's: loads, stores, branches and arithmetic.

For every example, made small: the counting copy of its kernel runs over the whole index space on a
device, and the kernel itself under ``oclgrind --inst-counts``, built without optimisation, with
the same buffers. Writes ``results/oclgrind_counts/<device>.json``.

Run ``python -m benchmarks oclgrind_counts``, ``--device ID`` for another device than the first,
``--only NAME`` for one example. Started by ``oclgrind`` with ``--child``, the script runs one
problem once: Oclgrind's library stands before the OpenCL loader and is then the only platform.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness import RESULTS, make_table, write_result
from machine import describe_machine

from kernelcast.features.analysis import infer_accesses, read_facts
from kernelcast.features.counting_copy import write_counting_copy
from kernelcast.features.ir.operations import find_parts, is_atomic
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    OperationCounts,
    OperationKind,
    add_weighted,
)
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.instrumented import count_boxes, make_sample
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import ProblemArguments, prepared_problem
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.workers.process import VARIABLES

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SEED = 0
TIMEOUT_S = 300
TOLERANCE = 0.05
# Loads and stores as the source has them: the simulator's own default, -Os, merges and hoists.
# Without it, functions that are just `inline` are not defined (C99 6.7.4), so the word goes.
BUILD_OPTIONS = ("-cl-opt-disable", "-Dinline=")
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
SPACES = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL)
# Kinds that must agree to the last one; those within 5 %; those shown only.
CONTROL = {OperationKind.ATOMIC, OperationKind.BARRIER}
ARITHMETIC = {
    OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.FUSED, OperationKind.DIVIDE,
    OperationKind.LOGIC, OperationKind.COMPARE, OperationKind.SELECT, OperationKind.SPECIAL,
    OperationKind.SPECIAL_NATIVE,
}  # fmt: skip
SHOWN = {OperationKind.CONVERT, OperationKind.ADDRESS}

_F, _I = NumberClass.FLOAT, NumberClass.INTEGER
_KINDS = {
    OperationKind.ADD: "add sub fadd fsub fneg",
    OperationKind.MULTIPLY: "mul fmul",
    OperationKind.DIVIDE: "udiv sdiv urem srem fdiv frem",
    OperationKind.LOGIC: "shl lshr ashr and or xor",
    OperationKind.COMPARE: "icmp fcmp",
    OperationKind.SELECT: "select",
    OperationKind.CONVERT: "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp",
    OperationKind.ADDRESS: "getelementptr",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_LINE = re.compile(r"\s*(?P<count>\d+) - (?P<name>.+?)(?: \((?P<bytes>\d+) bytes\))?")
_CALL = re.compile(r"call _Z(?P<length>\d+)(?P<rest>\w+)\(\)")
_LANES = re.compile(r"Dv(\d+)_")
_FLOAT_TYPE = re.compile(r"(?:Dv\d+_)?(?:PU3AS\d+V?)?[fd]|(?:Dv\d+_)?Dh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What a launch executed, under the names that both sides use.

    Parameters
    ----------
    exact : Counter of str
        Loads, stores and their bytes by address space, branches, atomics, barriers.
    arithmetic : Counter of str
        Operations by kind and class of numbers; a vector operation is one.
    shown : Counter of str
        Conversions and address arithmetic.
    """

    exact: Counter[str] = field(default_factory=Counter)
    arithmetic: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)

    def add(self, kind: OperationKind, number: NumberClass, times: float) -> None:
        """Add operations of one kind."""
        if kind in CONTROL:
            self.exact[f"{kind}s"] += round(times)
        elif kind in (OperationKind.BRANCH, OperationKind.JUMP):
            self.exact["branches"] += round(times)
        elif kind in ARITHMETIC | SHOWN:
            group = self.arithmetic if kind in ARITHMETIC else self.shown
            has_class = kind in ARITHMETIC and kind is not OperationKind.SELECT
            name = f"{number if number is _F else _I} {kind}" if has_class else kind.value
            group[name] += round(times)

    def add_memory(self, space: str, what: str, times: float, moved_bytes: float) -> None:
        """Add loads or stores of one address space; private memory is not compared."""
        if space in SPACES and times:
            self.exact[f"{what}s {space}"] += round(times)
            self.exact[f"{what} bytes {space}"] += round(moved_bytes)

    @property
    def groups(self) -> dict[str, Counter[str]]:
        """The three groups by name."""
        return {"exact": self.exact, "arithmetic": self.arithmetic, "shown": self.shown}


def main() -> None:
    """Compare every example, print the table and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", help="id of a device, or its beginning; the first without")
    parser.add_argument("--only", action="append", default=[], help="name of an example")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_once(Path(options.child[0]), json.loads(options.child[1]))
        return
    if shutil.which("oclgrind") is None:
        sys.exit("oclgrind is not installed; on Debian and Ubuntu: apt-get install oclgrind")
    os.environ.update({**VARIABLES, **os.environ})
    devices = find_devices()
    session = open_session(
        *(choose_device(options.device, devices) if options.device else devices[0])
    )
    rows = [
        compare(session, path, SIZES[path.stem])
        for path in sorted(EXAMPLES.glob("*/*.yaml"))
        if not options.only or path.stem in options.only
    ]
    print("\n".join(make_table(
        ["example", "arithmetic, ours over theirs", "verdict", "differences, ours / theirs"],
        (
            (row["problem"], f"{row['arithmetic_ratio']:.4f}", row["verdict"],
             "; ".join(f"{name} {one['own']:,} / {one['oclgrind']:,}"
                       for name, one in row["differences"].items()))
            for row in rows
        ),
    )))  # fmt: skip
    names = dict.fromkeys(name for row in rows for name in row["differences"])
    print(*(f"{name}: {WHY.get(name, UNEXPLAINED)}" for name in names), sep="\n")
    device = session.description.id
    shown = subprocess.run(["oclgrind", "--version"], capture_output=True, text=True, check=True)
    machine = {**describe_machine(), "oclgrind": " ".join(shown.stdout.split()[:2])}
    target = options.json or RESULTS / "oclgrind_counts" / f"{device}.json"
    write_result(target, {"device": device, "machine": machine, "rows": rows})


def compare(session: DeviceSession, path: Path, parameters: Mapping[str, int]) -> dict[str, Any]:
    """Count an example on a device and in Oclgrind."""
    own = sort_own(count_own(session, read_problem(path, parameters=parameters)))
    started_s = time.perf_counter()
    theirs, instructions = sort_oclgrind(run_oclgrind(path, parameters))
    wall_s = time.perf_counter() - started_s
    counted, expected = own.arithmetic.total(), theirs.arithmetic.total()
    ratio = counted / expected if expected else float(counted == 0)
    if own.exact != theirs.exact:
        verdict = "differs"
    elif own.arithmetic == theirs.arithmetic:
        verdict = "equal"
    else:
        verdict = "within 5 %" if abs(ratio - 1) <= TOLERANCE else "arithmetic"
    differences = {
        name: {"own": one[name], "oclgrind": other[name], "why": WHY.get(name, UNEXPLAINED)}
        for one, other in zip(own.groups.values(), theirs.groups.values(), strict=True)
        for name in sorted(one | other)
        if one[name] != other[name]
    }
    return {
        "problem": path.stem, "parameters": dict(parameters), "verdict": verdict,
        "arithmetic_ratio": ratio, "oclgrind_s": round(wall_s, 3), "own": own.groups,
        "oclgrind": theirs.groups, "differences": differences,
        "instructions": dict(instructions.most_common()),
    }  # fmt: skip


def count_own(session: DeviceSession, problem: Problem) -> OperationCounts:
    """Run the counting copy over the whole index space; return all that was executed."""
    facts = read_facts(problem.kernel)
    copy = write_counting_copy(problem.kernel)
    accesses = infer_accesses(problem.kernel, len(problem.arguments))
    with (
        session.lock,
        prepared_problem(session, problem, seed=SEED, inferred=accesses) as launch,
    ):
        groups = launch.ndrange.group_counts
        whole = GroupBox(start=(0,) * len(groups), shape=groups)
        counted = count_boxes(launch, copy, launch.build_copy(copy.kernel, copy.header), [whole])
        counts = make_sample(launch.ndrange, counted)
    totals = [*map(round, counts.counts.sum(axis=(0, 1)).tolist()), problem.ndrange.work_item_count]
    # What is last stands at -1, which is `ONCE`.
    return add_weighted((block.operations, totals[block.counter]) for block in facts.blocks)


def run_oclgrind(path: Path, parameters: Mapping[str, int]) -> str:
    """Run an example under Oclgrind; return what it printed.

    Raises
    ------
    RuntimeError
        If the launch failed or touched memory that is not its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        done = subprocess.run(
            ["oclgrind", "--inst-counts", "--log", str(log), sys.executable, __file__,
             "--child", str(path), json.dumps(parameters)],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            env={**os.environ, "PYOPENCL_NO_CACHE": "1"},
        )  # fmt: skip
        errors = log.read_text(encoding="utf-8") if log.exists() else ""
    if done.returncode or errors:
        raise RuntimeError(f"{path.stem}: oclgrind: {(errors or done.stderr).strip()[:2000]}")
    return done.stdout


def run_once(path: Path, parameters: Mapping[str, int]) -> None:
    """Run a problem once, whole, on the first device there is."""
    problem = read_problem(path, parameters=parameters)
    description, device = find_devices()[0]
    session = DeviceSession(description, cl.Context([device]), device)
    options = (*problem.kernel.build_options, *BUILD_OPTIONS)
    kernel = session.whole_kernel(replace(problem.kernel, build_options=options)).kernel
    accesses = [None] * len(problem.arguments)
    held = ProblemArguments(session, problem, accesses, seed=SEED)
    kernel.set_args(*held.arguments)
    where = problem.ndrange
    cl.enqueue_nd_range_kernel(
        session.queue, kernel, where.global_size, where.known_local_size, where.global_offset
    )
    session.queue.finish()
    held.release()  # a kernel does not keep its buffers alive


def sort_own(counts: OperationCounts) -> Executed:
    """Sort what kernelcast counted."""
    executed = Executed()
    for operation, times in counts.operations.items():
        executed.add(operation.kind, operation.number, times)
    for access, times in counts.memory.items():
        what = "store" if access.is_store else "load"
        executed.add_memory(access.space, what, times, times * access.bytes)
    return executed


def sort_oclgrind(text: str) -> tuple[Executed, Counter[str]]:
    """Sort what Oclgrind printed; also count the plain instructions."""
    executed, plain = Executed(), Counter[str]()
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            times, name = int(match["count"]), match["name"]
            plain[name] += times
            _sort_instruction(executed, name, times, int(match["bytes"] or 0))
    return executed, plain


def _sort_instruction(executed: Executed, name: str, times: int, moved_bytes: int) -> None:
    what, _, rest = name.partition(" ")
    if what in ("load", "store"):
        executed.add_memory(rest, what, times, moved_bytes)
    elif name in ("br", "switch"):
        executed.add(OperationKind.BRANCH, NumberClass.NONE, times)
    elif name.startswith("call llvm.fmuladd."):
        executed.add(OperationKind.MULTIPLY, _F, times)
        executed.add(OperationKind.ADD, _F, times)
    elif name in _KIND_OF:
        executed.add(_KIND_OF[name], _F if name.startswith("f") else _I, times)
    elif what == "call":
        _sort_call(executed, name, times)


def _sort_call(executed: Executed, name: str, times: int) -> None:
    """Take a call of a builtin for the operations that kernelcast says it is."""
    match = _CALL.fullmatch(name)
    if match is None:
        return
    length = int(match["length"])
    called, types = match["rest"][:length], match["rest"][length:]
    if is_atomic(called):
        executed.add(OperationKind.ATOMIC, NumberClass.NONE, times)
        return
    lanes = max((int(one) for one in _LANES.findall(types)), default=1)
    number = _F if _FLOAT_TYPE.match(types) else _I
    for kind, parts, _ in find_parts(called, lanes) or ():
        executed.add(kind, number, parts * times)


if __name__ == "__main__":
    main()
