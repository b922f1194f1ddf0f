"""The microbenchmarks on every device: numbers, or reasons."""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass

import pytest

from kernelcast.calibration.calibration import SUITE
from kernelcast.compiling import Target, assemble_ptx, compile_kernel, find_ptxas
from kernelcast.records.device import DeviceKind, Trait
from kernelcast.sampling import read_source
from kernelcast.sampling.microbenchmarks import operations
from kernelcast.sampling.microbenchmarks.bench import FEWEST_REPEATS, Bench, BenchmarkResult, Effort
from kernelcast.sampling.microbenchmarks.operations import READ_CYCLES, count_cycles
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
        f"atomic_{space}_{places}_per_s"
        for space in ("global", "local")
        for places in ("same", "distinct")
    },
    "barrier": {"barrier_s"},
    "dispatch": {"work_group_dispatch_s"},
    "launch": {"launch_s", "launch_in_batch_s"},
}


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
                results[key] = BenchmarkResult(name=name)
                SUITE[name][1](bench, results[key])
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
    changes.setattr(operations, "CHAINS", operations.CHAINS[:2])
    changes.setattr(operations, "PEAK_SHAPES", operations.PEAK_SHAPES[_PEAK_SHAPES])


def list_traits(value: object) -> Iterator[Trait[float]]:
    if isinstance(value, Trait):
        yield value
    elif isinstance(value, Mapping):
        yield from list_traits([*value.values()])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from list_traits(one)
    elif is_dataclass(value):
        yield from list_traits([getattr(value, one.name) for one in fields(value)])


@pytest.mark.parametrize("name", NAMES)
def test_gives_positive_numbers_or_a_reason(
    session: DeviceSession, run_benchmark: Runner, name: str
) -> None:
    """Every microbenchmark gives positive numbers, or says what is missing and why.

    An instruction completes no sooner than the next one can be issued.
    """
    result = run_benchmark(session, name)
    traits = list(list_traits(result))
    assert traits or result.curves or result.not_obtained
    for trait in traits:
        assert 0 < (trait.low or trait.value) <= trait.value <= (trait.high or trait.value)
        assert math.isfinite(trait.value)
        assert trait.origin
    assert all(0 < one < math.inf for curve in result.curves for one in curve.y)
    assert all(len(reason) > 10 for reason in result.not_obtained.values())
    wanted = _EXPECTED_COSTS.get(name, set())
    assert wanted == (set(result.costs) | set(result.not_obtained)) & wanted
    for one in result.instructions:
        for chains, issue in one.issue_latency_s.items():
            assert issue.value <= one.completion_latency_s[chains].value
    if name == "bandwidth":  # of loads of 1 to 16 bytes, as in the paper
        (memory,) = result.memories
        for size in (1, 2, 4, 8, 16):
            reason = result.not_obtained.get(f"memories/global/load_bytes_per_s/{size}")
            assert size in memory.load_bytes_per_s or reason


def test_a_gpus_clock_is_what_it_counts_in_a_second(session: DeviceSession) -> None:
    """Reads the rate of a counter of cycles; here the processor's, as no GPU is at hand."""
    if session.description.kind is not DeviceKind.CPU or "llvmpipe" in session.description.id:
        pytest.skip("needs a processor whose compiler knows its counter of cycles")
    read = (
        "*(volatile global uint *)&out[get_global_id(0)] = x; into = __builtin_readcyclecounter();"
    )
    with session.lock:
        clock_hz = count_cycles(Bench(session, Effort.QUICK), read, size=1)
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


def test_caches_are_in_order(session: DeviceSession, run_benchmark: Runner) -> None:
    """A farther cache takes longer, memory longest; the first is within a factor of two of L1."""

    def complain(result: BenchmarkResult) -> str:
        latencies = [one.latency_s.value for one in (*result.caches, *result.memories)
                     if one.latency_s]  # fmt: skip
        if not latencies or latencies != sorted(latencies):
            return f"latencies {latencies}"
        if session.description.kind is not DeviceKind.CPU:
            return ""  # the operating system reports the caches of CPUs only
        nearest = [one for one in result.caches if one.name == "L1"]
        for one in nearest:
            if (told := one.reported_size_bytes) is not None and not (
                one.size_bytes and 0.5 <= one.size_bytes.value / told.value <= 2
            ):
                return f"sizes {one}"
        return "" if nearest else "no L1"

    result = run_benchmark(session, "caches", lambda found: not complain(found))
    assert not complain(result), result.not_obtained
