"""Compiles each kernel of the corpus and of the examples for GPUs, and assembles PTX.

    python -m benchmarks compiled_corpus [--targets sm_70 sm_90 gfx90a gfx942] [--fresh]

Writes results/compiled_corpus/corpus.json: how many compile and are assembled for each target, what
fails and why, seconds of the compiler. ``--fresh`` leaves the cache of compiled code alone.
"""

import argparse
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

from harness import RESULTS, write_json

from kernelcast.compiling import Target, assemble_ptx, compile_kernel, find_compiler
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from support.corpus_kernels import list_kernels

TARGET = RESULTS / "compiled_corpus" / "corpus.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one kernel on one target."""

    name: str
    seconds: float
    failure: str
    registers: int | None = None


def compile_and_assemble(name: str, kernel: Kernel, target: Target) -> Outcome:
    """Compile a kernel; PTX is assembled as well."""
    start = time.perf_counter()
    seconds, failure, registers = 0.0, "", None
    try:
        compiled = compile_kernel(
            kernel.source, kernel.build_options, target, source_name=kernel.source_name
        )
        seconds = time.perf_counter() - start
        compiled.require_builtins()
        if kernel.name not in {one.name for one in compiled.kernels}:
            failure = "the text does not define the kernel"
        elif str(target).startswith("sm_"):
            registers = assemble_ptx(compiled.text, target.processor)[kernel.name].registers
    except KernelcastError as error:
        failure = str(error).partition("\n")[0]
    return Outcome(name=name, seconds=seconds, failure=failure, registers=registers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="+", default=["sm_70", "sm_90", "gfx90a", "gfx942"])
    parser.add_argument("--fresh", action="store_true")
    arguments = parser.parse_args()
    kernels, table = list_kernels(), {}
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(os.cpu_count()) as pool:
        if arguments.fresh:
            os.environ["XDG_CACHE_HOME"] = cache
        for target in map(Target.parse, arguments.targets):
            compile_kernel("kernel void k() {}", (), target)  # built-in functions, once
            outcomes = list(
                pool.map(compile_and_assemble, kernels, kernels.values(), repeat(target))
            )
            for suite in ("corpus", "examples"):
                rows = [one for one in outcomes if one.name.startswith(suite)]
                failures = {one.name: one.failure for one in rows if one.failure}
                table[f"{target} {suite}"] = {
                    "kernels": len(rows), "compiled": len(rows) - len(failures),
                    "median_s": round(statistics.median(one.seconds for one in rows), 3),
                    "longest_s": round(max(one.seconds for one in rows), 3),
                    "failures": failures,
                }  # fmt: skip
                print(f"{target} {suite}: {table[f'{target} {suite}']}")
    write_json(TARGET, {"compiler": find_compiler().identity, "targets": table})


if __name__ == "__main__":
    main()
