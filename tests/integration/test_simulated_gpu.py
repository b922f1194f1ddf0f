import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.simulated_gpu import load_simulated_kernels

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    """Import the benchmark's cases as its script does."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("simulated_gpu_cases")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def cases(benchmark: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Read what is known of every kernel."""
    found: list[Any] = benchmark.make_cases(load_simulated_kernels(), tmp_path_factory.mktemp("i"))
    return found


def test_volumes_borders_and_work_take_half_the_error(
    benchmark: ModuleType, cases: list[Any]
) -> None:
    """Halves the mean error of the two-point formula on all kernels without learning anything."""
    assert len(cases) == 37
    plain, corrected = [], []
    for case in cases:
        first = benchmark.sample_first(case, 2, 3)
        chosen = first if case.are_all_alike else benchmark.sample_typical(case)
        plain.append(abs(first.reach(case.kernel.work_groups) / case.whole.cycles - 1))
        corrected.append(
            abs(benchmark.correct(case, chosen, cases).seconds / case.whole.cycles - 1)
        )
    assert sum(corrected) < 0.5 * sum(plain)
    assert max(corrected) < 0.15


def test_borders_and_uneven_work_are_found(cases: list[Any]) -> None:
    """Finds the kernels whose first work-groups do not stand for all."""
    assert {one.kernel.name for one in cases if not one.are_all_alike} == {
        "small/mandel", "small/stencil25", "npb_lu/setiv", "sad/calc_16", "gemm/syrk",
        "fractal/mandelbrot",
    }  # fmt: skip
