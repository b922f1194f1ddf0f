"""Which configuration is fast on a CPU, and which lines nested loops touch."""

import json
from collections.abc import Sequence
from itertools import product
from math import prod
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.launches.machines import read_machine
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.tuning.cpu_cost import Axis, Walk, cost_launch, count_moved
from kernelcast.tuning.space import read_space

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks/results"


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_chosen_configurations_are_fast_where_they_were_measured(name: str) -> None:
    """On two runtimes, one of which leaves vectors to compilers: the best of five is nearly the
    best of all, and the first far better than a random one."""
    space = read_space(ROOT / f"examples/tuning/{name}/{name}.yaml").configurations
    problems = [one.problem for one in space if one.problem]
    kernels = [model_kernel(one) for one in problems]
    for device_id in ("intel-intel-xeon-processor-9121", "pocl-skylake-avx512-intel-366a"):
        device = read_device(read_machine(RESULTS / f"calibration/{device_id}.yaml"))
        costs = [
            cost_launch(kernel, problem.ndrange, device)
            for kernel, problem in zip(kernels, problems, strict=True)
        ]
        stored = json.loads((RESULTS / f"tuning/{device_id}.json").read_text(encoding="utf-8"))
        measured = stored["examples"][name]["configurations"]
        assert [one["parameters"] for one in measured] == [dict(one.parameters) for one in space]
        times_s = [median(one["cpu_s"]) for one in measured]
        order = sorted(range(len(costs)), key=lambda place: costs[place].seconds)
        assert min(times_s[place] for place in order[:5]) < 1.1 * min(times_s)
        assert times_s[order[0]] < 0.6 * median(times_s)
        widths = {one.quantities["vector_work_items_count"] for one in costs}
        assert widths == ({1, device.width} if device.width > 1 else {1})


LINE = 64
L1 = (32768, 8)


def walk(*steps: int, inside: tuple[bool, ...] | None = None) -> Walk:
    """Make a walk through floats that all axes are around."""
    return Walk("", 4, steps, (True,) * len(steps) if inside is None else inside)


def count_loaded(walks: Sequence[Walk], extents: Sequence[int], cache: tuple[int, int]) -> float:
    """Count the lines that a cache loads for walks that store nothing."""
    axes = [Axis(one) for one in extents]
    return count_moved(dict.fromkeys(walks, False), axes, LINE, *cache)[0]


def test_lines_that_a_cache_loads() -> None:
    """A column read row by row is reused where its rows fall into different sets only; what stands
    behind a loop is not executed by its iterations."""
    extents = 64, 16  # 64 rows, then the next of 16 floats in each
    assert count_loaded([walk(4096 + 64, 4)], extents, L1) == pytest.approx(64, rel=0.02)
    assert count_loaded([walk(4096, 4)], extents, L1) == pytest.approx(64 * 16)
    walks = [walk(0, 64, inside=(False, True)), walk(64, 640_000)]
    assert count_loaded(walks, (10_000, 10_000), L1) == pytest.approx(1e8, rel=1e-3)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0, 4, 8, 64, 256, 4096])),
             min_size=1, max_size=4)
)  # fmt: skip
def test_lines_are_bounded_by_enumeration(dims: list[tuple[int, int]]) -> None:
    """At least half and at most twice the lines that really differ, and never above executions."""
    extents, steps = zip(*dims, strict=True)
    counted = walk(*steps).find_shape([Axis(one) for one in extents], LINE).lines
    places = product(*(range(extent) for extent in extents))
    real = {sum(at * step for at, step in zip(place, steps, strict=True)) // LINE
            for place in places}  # fmt: skip
    assert counted <= prod(extents) + 1e-9
    assert len(real) / 2 <= counted <= 2 * len(real) + 1
