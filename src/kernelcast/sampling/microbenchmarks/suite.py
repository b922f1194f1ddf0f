"""All microbenchmarks, in the order in which a calibration runs them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kernelcast.sampling.microbenchmarks import caches, loops, streams
from kernelcast.sampling.microbenchmarks.bench import Bench, BenchmarkResult
from kernelcast.sampling.microbenchmarks.instructions import INSTRUCTIONS, measure_instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A microbenchmark that a calibration can run, repeat or leave out."""

    name: str
    """Short and stable: ``kernelcast calibrate --only`` takes it."""
    title: str
    run: Callable[[Bench], BenchmarkResult]
    """Measures on a bench; a number that cannot be vouched for goes into `not_obtained`."""


def _make(name: str, title: str, measure: Callable[[Bench, BenchmarkResult], None]) -> Benchmark:
    def run(bench: Bench) -> BenchmarkResult:
        result = BenchmarkResult(name=name)
        measure(bench, result)
        return result

    return Benchmark(name=name, title=title, run=run)


COMPUTE = (
    *(
        _make(
            f"instructions-{kind.name}",
            f"occupancy roofline, peak and latencies of {kind.name}",
            partial(measure_instruction, kind=kind),
        )
        for kind in INSTRUCTIONS
    ),
    _make("clock", "clock, by instructions or by the device's cycles", loops.measure_clock),
    _make("divergence", "branches that neighbours do not share", loops.measure_divergence),
    _make("atomics", "atomic additions", loops.measure_atomics),
    _make("barrier", "barriers", loops.measure_barriers),
    _make("dispatch", "starting work-groups", loops.measure_dispatch),
    _make("launch", "launching kernels", loops.measure_launch),
)
MEMORY = (
    _make("caches", "cache sizes, latencies and bandwidths", caches.measure_caches),
    _make("latency", "local, constant and private memory", caches.measure_spaces),
    _make("gathers", "loads at unrelated addresses", loops.measure_gathers),
    _make("bandwidth", "global memory, loads and copies", streams.measure_bandwidth),
    _make("transfers", "between host and device", streams.measure_transfers),
)


def suite() -> tuple[Benchmark, ...]:
    return (*COMPUTE, *MEMORY)
