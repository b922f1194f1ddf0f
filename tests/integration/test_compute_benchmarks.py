import math
from collections.abc import Callable

import pytest

from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult
from kernelcast.sampling.microbenchmarks.suite import COMPUTE, Benchmark
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

Runner = Callable[[DeviceSession, Benchmark], BenchmarkResult]
_EXPECTED_COSTS = {
    "atomics": {
        "atomic_global_same_per_s",
        "atomic_global_distinct_per_s",
        "atomic_local_same_per_s",
        "atomic_local_distinct_per_s",
    },
    "barrier": {"barrier_s"},
    "dispatch": {"work_group_dispatch_s"},
    "launch": {"launch_s", "launch_in_batch_s", "launch_queued_to_start_s"},
}


def _numbers(result: BenchmarkResult) -> list[float]:
    """Give every number of a result."""
    numbers = [cost.value for cost in result.costs.values()]
    for one in result.instructions:
        numbers += [one.peak_per_s.value] if one.peak_per_s else []
        numbers += [one.ridge_work_items.value] if one.ridge_work_items else []
        numbers += [trait.value for trait in one.issue_latency_s.values()]
        numbers += [trait.value for trait in one.completion_latency_s.values()]
    numbers += [result.clock_hz.value] if result.clock_hz else []
    numbers += [result.warp_width.value] if result.warp_width else []
    for curve in result.curves:
        numbers += curve.y
    return numbers


@pytest.mark.parametrize("benchmark", COMPUTE, ids=lambda one: one.name)
def test_gives_positive_numbers_or_a_reason(
    session: DeviceSession, run_benchmark: Runner, benchmark: Benchmark
) -> None:
    """Every microbenchmark gives positive numbers, or says what is missing and why."""
    result = run_benchmark(session, benchmark)
    numbers = _numbers(result)
    assert numbers or result.not_obtained
    assert all(math.isfinite(number) and number > 0 for number in numbers)
    assert all(len(reason) > 10 for reason in result.not_obtained.values())
    wanted = _EXPECTED_COSTS.get(benchmark.name, set())
    assert wanted == (set(result.costs) | set(result.not_obtained)) & wanted


def test_latencies_are_in_order(session: DeviceSession, run_benchmark: Runner) -> None:
    """An instruction completes no sooner than the next one can be issued."""
    benchmark = next(one for one in COMPUTE if one.name == "instructions-int32")
    result = run_benchmark(session, benchmark)
    for one in result.instructions:
        for chains, issue in one.issue_latency_s.items():
            assert issue.value <= one.completion_latency_s[chains].value
