"""CPU time of what is asked of integer sets: write safety and overruns.

Two stencils have bars of their own; all corpus kernels (near sixteen times their least size),
examples and held-out problems are judged by their median. Launches are cut as `kernelcast balance`
cuts them, across the slowest dimension. Times are the least of several repeats, in milliseconds of
CPU time. Writes ``results/integer_sets/cpu.json``.

    python benchmarks/integer_sets.py
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from machine import describe_machine

from kernelcast.balancing.settings import BalanceSettings
from kernelcast.balancing.splitting import cut_axis
from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.features.overruns import OverrunCheck
from kernelcast.features.write_safety import assess_split
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import find_kernels

HERE = Path(__file__).resolve().parent
TARGET = HERE / "results/integer_sets/cpu.json"
REPEATS = 7
MOST_SLABS = BalanceSettings().most_slabs
GOALS_MS = {"3D 25-point": 10.0, "2D 5-point": 5.0}
OVERRUNS_GOAL_MS = 5.0


def measure(compute: Callable[[], object]) -> float:
    """Give the least CPU milliseconds of several calls."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        compute()
        found.append(time.process_time() - start)
    return 1e3 * min(found)


def write_star(dimensions: int, radius: int) -> str:
    """Write a star stencil in OpenCL C, its borders guarded."""
    names, sizes = "xyz"[:dimensions], ["nx", "ny", "nz"][:dimensions]
    strides = ["1", "nx", "nx * ny"]
    ids = " ".join(f"int {name} = get_global_id({axis});" for axis, name in enumerate(names))
    inside = " && ".join(
        f"{name} >= {radius} && {name} < {size} - {radius}"
        for name, size in zip(names, sizes, strict=True)
    )
    place = " + ".join(f"{name} * {one}" for name, one in zip(names, strides, strict=False))
    reads = [f"a[{place}]"] + [
        f"a[{place} {sign} {step} * {strides[axis]}]"
        for axis in range(dimensions)
        for step in range(1, radius + 1)
        for sign in "+-"
    ]
    parameters = ", ".join(f"int {size}" for size in sizes)
    return (
        f"kernel void star(global const float *a, global float *b, {parameters})"
        f"{{ {ids} if ({inside}) b[{place}] = {' + '.join(reads)}; }}"
    )


def measure_star(
    dimensions: int, radius: int, side: int, local: tuple[int, ...]
) -> dict[str, object]:
    """Measure a stencil on a cube or a square."""
    facts = analyse(Kernel(name="star", source=write_star(dimensions, radius))).facts
    ndrange = NDRange(global_size=(side,) * dimensions, local_size=local)
    scalars = dict.fromkeys(("nx", "ny", "nz")[:dimensions], side)
    sizes = dict.fromkeys("ab", 4 * side**dimensions)
    return measure_launch(facts, ndrange, scalars, sizes) | {"side": side, "local_size": local}


def measure_launch(
    facts: KernelFacts, ndrange: NDRange, scalars: dict[str, int], sizes: dict[str, int]
) -> dict[str, object]:
    """Measure both questions for a launch."""
    space = cut_axis(ndrange, ndrange.dimensions - 1, MOST_SLABS)
    return {
        "write_safety_ms": measure(lambda: assess_split(facts, space, scalars, sizes)),
        "overruns_ms": measure(lambda: OverrunCheck(facts).find(ndrange, sizes, scalars)),
        "is_proven": assess_split(facts, space, scalars, sizes).is_proven,
        "overruns": len(OverrunCheck(facts).find(ndrange, sizes, scalars)),
    }


def list_problems(folder: Path) -> Iterator[tuple[str, Problem]]:
    """Give the problems of corpus, examples and held-out set."""
    root = HERE.parent
    for path in sorted(
        [*root.glob("examples/**/*.yaml"), *root.glob("benchmarks/heldout/*/*.yaml")]
    ):
        if path.stem == path.parent.name:
            yield str(path.relative_to(root)), read_problem(path)
    for kernel in find_kernels():
        size = {kernel.size.parameter: kernel.size.fit(16 * kernel.size.least)}
        # Inputs of small launches may come out empty.
        with suppress(InputError):
            local_size = kernel.local_sizes[0]
            yield (
                kernel.name,
                prepare_launch(kernel, size, local_size=local_size, cache_folder=folder).problem,
            )


def measure_problem(problem: Problem) -> dict[str, object]:
    """Measure the launch of a problem."""
    facts = analyse(problem.kernel).facts
    ndrange = problem.ndrange
    if ndrange.local_size is None:
        ndrange = replace(ndrange, local_size=(1,) * ndrange.dimensions)
    sizes = {
        parameter.name: argument.bytes
        for parameter, argument in zip(facts.parameters, problem.arguments, strict=True)
        if isinstance(argument, BufferArgument)
    }
    return measure_launch(facts, ndrange, bind_scalars(facts, problem.arguments), sizes)


def summarise(rows: dict[str, dict[str, object]]) -> dict[str, object]:
    """Give median and greatest times."""
    found: dict[str, object] = {"problems": len(rows)}
    for name in ("write_safety_ms", "overruns_ms"):
        times = [float(str(row[name])) for row in rows.values()]
        found[name] = {"median": statistics.median(times), "most": max(times)}
    return found


def main() -> None:
    """Measure, print and write."""
    stencils = {
        "3D 25-point": measure_star(3, 4, 512, (32, 4, 2)),
        "2D 5-point": measure_star(2, 1, 4096, (32, 8)),
    }
    with tempfile.TemporaryDirectory() as folder:
        rows = {name: measure_problem(one) for name, one in list_problems(Path(folder))}
    result = {
        "machine": describe_machine(),
        "stencils": {
            name: row | {"goal_ms": GOALS_MS[name]} for name, row in stencils.items()
        },
        "summary": summarise(rows) | {"overruns_goal_ms": OVERRUNS_GOAL_MS},
        "problems": rows,
    }  # fmt: skip
    for name in ("stencils", "summary"):
        print(json.dumps(result[name], indent=1))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
