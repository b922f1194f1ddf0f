"""The microbenchmarks on every device: numbers, or reasons."""

import math
import os
from collections.abc import Callable, Iterator

import pytest

from kernelcast.calibration.calibration import SUITE, measure_benchmark
from kernelcast.compiling import Target, assemble_ptx, compile_kernel, find_ptxas
from kernelcast.records.device import DeviceKind, Trait
from kernelcast.records.machine import CacheFacts
from kernelcast.sampling import read_source
from kernelcast.sampling.microbenchmarks import instructions
from kernelcast.sampling.microbenchmarks.bench import FEWEST_REPEATS, Bench, BenchmarkResult, Effort
from kernelcast.sampling.microbenchmarks.loops import READ_CYCLES, count_cycles
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

Runner = Callable[..., BenchmarkResult]
# Of instructions those that differ in how they are measured.
NAMES = [name for name in SUITE if name.partition("-")[2] in {"", "int32", "fp32_fma", "special"}]
_MOST_RUNS = 3
# Arrays of four times the last cache, long runs and wide kernels make numbers good, and take
# minutes on a busy machine; no promise of the tests depends on them.
_IS_FULL = bool(os.environ.get("KERNELCAST_FULL_BENCHMARKS"))
_LARGEST_ARRAY_BYTES = 2**20
_PEAK_SHAPES = slice(0, 8, 4)
_EXPECTED_COSTS = {
    "atomics": {
        "atomic_global_same_per_s",
        "atomic_global_distinct_per_s",
        "atomic_local_same_per_s",
        "atomic_local_distinct_per_s",
    },
    "barrier": {"barrier_s"},
    "dispatch": {"work_group_dispatch_s"},
    "launch": {"launch_s", "launch_in_batch_s"},
}

READ_TIME_STAMP = (
    "*(volatile global uint *)&out[get_global_id(0)] = x; into = __builtin_readcyclecounter();"
)


@pytest.fixture(scope="module")
def run_benchmark() -> Runner:
    """Run a microbenchmark once per device for all tests, with short runs and small arrays.

    Again where a result is not as `until` asks: a neighbour on the machine may have disturbed it.
    """
    benches: dict[str, Bench] = {}
    results: dict[tuple[str, str], BenchmarkResult] = {}

    def run(
        session: DeviceSession,
        name: str,
        until: Callable[[BenchmarkResult], bool] = lambda _: True,
    ) -> BenchmarkResult:
        device_id = session.description.id
        key = (device_id, name)
        for _ in range(_MOST_RUNS):
            if key in results and until(results[key]):
                break
            with session.lock, pytest.MonkeyPatch.context() as changes:
                bench = benches.setdefault(device_id, Bench(session, Effort.QUICK))
                if not _IS_FULL:
                    _shorten(bench, changes)
                results[key] = measure_benchmark(bench, name)
        return results[key]

    return run


def _shorten(bench: Bench, changes: pytest.MonkeyPatch) -> None:
    """Make the quickest effort quicker than any that is offered.

    Caches that the arrays fit in are left out: the last one of a server has 100 MiB and more.
    """
    bench.repeats, bench.run_s, bench.patience_s = FEWEST_REPEATS, 0.5e-3, 0.0
    bench.most_bytes = _LARGEST_ARRAY_BYTES
    bench.host_caches = tuple(
        one
        for one in bench.host_caches
        if one.size_bytes and 4 * one.size_bytes.value <= _LARGEST_ARRAY_BYTES
    )
    changes.setattr(instructions, "CHAINS", instructions.CHAINS[:2])
    changes.setattr(instructions, "PEAK_SHAPES", instructions.PEAK_SHAPES[_PEAK_SHAPES])


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


def _list_traits(result: BenchmarkResult) -> Iterator[Trait[float] | Trait[int]]:
    for cache in result.caches:
        yield from filter(None, (cache.size_bytes, cache.latency_s, cache.load_bytes_per_s))
    for memory in result.memories:
        yield from memory.load_bytes_per_s.values()
        yield from filter(None, (memory.latency_s, memory.copy_bytes_per_s))
    yield from result.costs.values()


@pytest.mark.parametrize("name", NAMES)
def test_gives_positive_numbers_or_a_reason(
    session: DeviceSession, run_benchmark: Runner, name: str
) -> None:
    """Every microbenchmark gives positive numbers, or says what is missing and why."""
    result = run_benchmark(session, name)
    numbers, traits = _numbers(result), list(_list_traits(result))
    assert numbers or traits or result.not_obtained
    for trait in traits:
        assert 0 < (trait.low or trait.value) <= trait.value <= (trait.high or trait.value)
        assert trait.origin
    assert all(math.isfinite(number) and number > 0 for number in numbers)
    assert all(len(reason) > 10 for reason in result.not_obtained.values())
    wanted = _EXPECTED_COSTS.get(name, set())
    assert wanted == (set(result.costs) | set(result.not_obtained)) & wanted


def test_latencies_are_in_order(session: DeviceSession, run_benchmark: Runner) -> None:
    """An instruction completes no sooner than the next one can be issued."""
    result = run_benchmark(session, "instructions-int32")
    for one in result.instructions:
        for chains, issue in one.issue_latency_s.items():
            assert issue.value <= one.completion_latency_s[chains].value


def test_a_gpus_clock_is_what_it_counts_in_a_second(session: DeviceSession) -> None:
    """Reads the rate of a counter of cycles; here the processor's, as no GPU is at hand."""
    if session.description.kind is not DeviceKind.CPU or "llvmpipe" in session.description.id:
        pytest.skip("needs a processor whose compiler knows its counter of cycles")
    with session.lock:
        clock_hz = count_cycles(Bench(session, Effort.QUICK), READ_TIME_STAMP, size=1)
    # A counter of cycles goes no slower than 100 MHz, and no faster than processors do.
    assert 1e8 < clock_hz.value < 6e9
    assert clock_hz.origin == "clock"


@pytest.mark.parametrize(
    ("extension", "target"),
    [("cl_nv_device_attribute_query", "sm_90"), ("cl_amd_device_attribute_query", "gfx90a")],
)
def test_gpus_cycles_are_read_around_the_loop(extension: str, target: str) -> None:
    """Compiles to code that reads the counter twice; NVIDIA's assembler takes it."""
    chosen = f"#define CYCLES\n#define READ_CYCLES(into) {READ_CYCLES[extension]}\n"
    source = chosen + read_source("microbenchmarks.cl")
    compiled = compile_kernel(source, ("-Dasm=__asm__",), Target.parse(target))
    counter = "%clock64" if target == "sm_90" else "s_memtime"
    assert compiled.text.count(counter) == 2
    if target == "sm_90" and find_ptxas():
        assert assemble_ptx(compiled.text, target)["kc_cycles"].registers > 0


def _list_latencies(result: BenchmarkResult) -> list[float]:
    latencies = [cache.latency_s.value for cache in result.caches if cache.latency_s]
    return latencies + [one.latency_s.value for one in result.memories if one.latency_s]


def test_cache_latencies_increase(session: DeviceSession, run_benchmark: Runner) -> None:
    """A farther cache takes longer, and memory beyond all caches longest."""

    def increase(result: BenchmarkResult) -> bool:
        latencies = _list_latencies(result)
        return bool(latencies) and latencies == sorted(latencies)

    result = run_benchmark(session, "caches", increase)
    assert increase(result), (_list_latencies(result), result.not_obtained)


def test_nearest_cache_size(session: DeviceSession, run_benchmark: Runner) -> None:
    """On a CPU the measured size of the nearest cache is within a factor of two of the system's."""
    if session.description.kind is not DeviceKind.CPU:
        pytest.skip("the operating system reports the caches of CPUs only")

    def find_nearest(result: BenchmarkResult) -> list[CacheFacts]:
        return [cache for cache in result.caches if cache.name == "L1"]

    def is_right(result: BenchmarkResult) -> bool:
        return all(
            one.reported_size_bytes is None
            or (one.size_bytes and 0.5 <= one.size_bytes.value / one.reported_size_bytes.value <= 2)
            for one in find_nearest(result)
        ) and bool(find_nearest(result))

    result = run_benchmark(session, "caches", is_right)
    nearest = find_nearest(result)
    if nearest and nearest[0].reported_size_bytes is None:
        pytest.skip("the operating system does not report its caches")
    assert is_right(result), (nearest, result.not_obtained)


def test_every_element_size(session: DeviceSession, run_benchmark: Runner) -> None:
    """Loads of 1 to 16 bytes, as in the paper, have a bandwidth or a reason."""
    result = run_benchmark(session, "bandwidth")
    (memory,) = result.memories
    for size in (1, 2, 4, 8, 16):
        reason = result.not_obtained.get(f"memories/global/load_bytes_per_s/{size}")
        assert size in memory.load_bytes_per_s or reason
