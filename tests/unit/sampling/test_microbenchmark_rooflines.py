import time
from dataclasses import replace
from itertools import count
from unittest.mock import Mock, create_autospec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.sampling.microbenchmarks.clock import judge
from kernelcast.sampling.microbenchmarks.divergence import infer_width
from kernelcast.sampling.microbenchmarks.effort import Effort
from kernelcast.sampling.microbenchmarks.instruction_kernels import KINDS, Shape, expect
from kernelcast.sampling.microbenchmarks.instruction_runs import InstructionRuns, plan_points
from kernelcast.sampling.microbenchmarks.rooflines import build_shapes, choose_proven, find_ridge
from kernelcast.sampling.microbenchmarks.statistics import summarise
from kernelcast.sampling.microbenchmarks.suite import COMPUTE, suite
from support.builders import make_description


@given(
    warp_width=st.sampled_from([16, 32, 64]),
    most=st.sampled_from([256, 512, 1024]),
    effort=st.sampled_from(list(Effort)),
)
def test_gpu_points_run_from_one_warp_to_a_full_unit(
    warp_width: int, most: int, effort: Effort
) -> None:
    """Points on a GPU are whole warps in equal work-groups that local memory keeps apart."""
    device = replace(
        make_description(),
        kind=DeviceKind.GPU,
        max_work_group_size=most,
        local_memory_bytes=49152,
    )
    points = plan_points(device, effort, warp_width=warp_width)
    assert points[0].work_items_per_unit == warp_width
    assert points[-1].work_items_per_unit == 64 * warp_width
    for point in points:
        assert point.local_size <= most
        assert point.local_size % warp_width == 0
        assert point.groups_per_unit * point.local_bytes <= 49152
        assert (point.groups_per_unit + 1) * point.local_bytes > 49152 - point.groups_per_unit


def test_cpu_points_vary_the_work_group() -> None:
    """A CPU thread runs one work-group at a time: its size is the concurrency."""
    points = plan_points(make_description(), Effort.FULL, warp_width=1)
    assert [point.work_items_per_unit for point in points] == [point.local_size for point in points]
    assert points[0].local_size == 1
    assert points[0].global_size(2) == 16


@given(st.integers(0, 6), st.floats(1e6, 1e12))
def test_ridge_of_a_planted_roof(steps: int, peak: float) -> None:
    """The ridge of a roof that rises in proportion is where it becomes flat."""
    counts = [2**power for power in range(8)]
    rates = [peak * min(1.0, one / 2**steps) for one in counts]
    assert find_ridge(counts, rates) == 2**steps


@pytest.mark.parametrize("proven", ["fastest", "second", "last"])
def test_a_peak_is_the_fastest_whose_work_is_proven(proven: str) -> None:
    """A kernel whose work cannot be proven, for noise or a clever compiler, leaves its place."""

    def prove(one: str) -> None:
        if one != proven:
            raise MeasurementError(one)

    assert choose_proven(["fastest", "second", "last"], prove) == proven
    with pytest.raises(MeasurementError, match="second"):
        choose_proven(["fastest", "second"], lambda one: prove(f"no {one}"))


@pytest.mark.parametrize("clock", ["perf_counter", "process_time"])
def test_only_builds_that_take_a_processor_long_end_the_search_for_a_peak(
    clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine in use makes builds long by the clock, and the widest kernels alone reach it."""
    runs = create_autospec(InstructionRuns)
    runs.bench = Mock(launch_overhead_s=0.0)
    seconds = count(step=100)
    monkeypatch.setattr(time, clock, lambda: float(next(seconds)))
    shapes = build_shapes(runs, plan_points(make_description(), Effort.FULL, warp_width=1)[0])
    assert (Shape(width=16, chains=8) in shapes) == (clock == "perf_counter")
    assert shapes


@given(width=st.sampled_from([4, 8, 16, 32, 64]), noise=st.floats(0.97, 1.03))
def test_width_of_planted_lock_step(width: int, noise: float) -> None:
    """Four branches cost lock-step devices up to four times as long; the curve gives the width."""
    counts = [1, 2, 4, 8, 16, 32, 64]
    rates = [noise / min(4, max(1, width / one)) for one in counts[:-1]] + [1.0]
    assert infer_width(counts, rates) == width


def test_flat_divergence_curve_tells_no_width() -> None:
    """Where branches cost nothing, no width is claimed."""
    with pytest.raises(MeasurementError, match="lock-step"):
        infer_width([1, 2, 4], [1.0, 1.01, 1.02])


def test_clock_is_reported_only_where_a_second_chain_bears_it_out() -> None:
    """Multiplications must take two thirds of their chain, or the clock is not known."""
    assert judge(summarise([2e-3]), 1e6, 2.02).value == pytest.approx(1e9)
    with pytest.raises(MeasurementError, match="latencies"):
        judge(summarise([2e-3]), 1e6, 1.25)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_results_depend_on_start_and_iterations(kind: object) -> None:
    """What numpy expects differs between work-items, and stays finite and bounded."""
    found = next(one for one in KINDS if one is kind)
    few, many = (expect(found, Shape(width=4), count, 8) for count in (1, 200))
    assert abs(few.astype(float)).max() < 2**33
    assert abs(many.astype(float)).max() < 2**33
    assert few.dtype == found.dtype


def test_benchmarks_have_names_of_their_own() -> None:
    """`--only` and resuming go by the names."""
    names = [one.name for one in suite()]
    assert len(names) == len(set(names))
    assert {one.name for one in COMPUTE} <= set(names)
