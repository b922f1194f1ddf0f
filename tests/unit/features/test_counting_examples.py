"""The example kernels, counted without a device."""

from pathlib import Path

import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.bindings import bind_scalars, choose_work_groups
from kernelcast.features.counting.requests import compute_requests
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import summarise
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.software_counters import SoftwareCounters

EXAMPLES = Path(__file__).parents[3] / "examples"
# What depends on data, so that its counters are estimates.
ON_DATA = {"histogram", "mandelbrot", "spmv_csr"}
# Unsigned sums of which the analysis may or may not see that they stay below 2**32.
MAY_WRAP = {"reduction"}


def count_example(name: str) -> SoftwareCounters:
    """Count an example statically, with the arguments of its problem file."""
    problem = read_problem(EXAMPLES / name / f"{name}.yaml")
    facts = read_facts(problem.kernel)
    scalars = bind_scalars(facts, problem.arguments)
    groups = choose_work_groups(problem.ndrange)
    sample = count_statically(facts, problem.ndrange, scalars, groups)
    patterns = compute_requests(facts, problem.ndrange, scalars, work_groups=groups)
    return summarise(facts, sample, patterns=patterns)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/*.yaml")))
def test_every_example_is_counted(name: str) -> None:
    """Counts are exact where no data decides, and every warp issues something."""
    found = count_example(name)
    assert found.is_exact == (name not in ON_DATA) or name in MAY_WRAP
    assert all(0 < warp.lane_efficiency <= 1 for warp in found.warps)
    assert found.patterns


@pytest.mark.parametrize(
    ("name", "trips"),
    [("nbody", [256, 64]), ("matmul_tiled", [92, 16]), ("convolution", [7, 7]),
     ("pointer_chase", [220]), ("scan_blocks", [7]), ("chebyshev_fp64", [479])],
)  # fmt: skip
def test_trips_of_examples_are_what_their_arguments_say(name: str, trips: list[int]) -> None:
    """16,384 bodies in tiles of 64; 1,472 columns in tiles of 16; log2 of 128 work-items."""
    assert [loop.mean for loop in count_example(name).loops] == trips


@pytest.mark.parametrize(
    ("name", "line", "sectors"),
    [("triad", 12, 4), ("inplace_update", 16, 32), ("nbody", 30, 1), ("transcendental", 15, 32)],
)
def test_sectors_of_examples_are_what_their_strides_say(
    name: str, line: int, sectors: float
) -> None:
    """Stride 4 bytes, stride 32 bytes, a broadcast, and float8 by float8."""
    found = [one for one in count_example(name).patterns if one.line == line]
    assert found
    assert all(one.sectors_per_request == sectors for one in found)
