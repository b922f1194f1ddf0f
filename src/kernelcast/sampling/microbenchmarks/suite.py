"""All microbenchmarks, in the order in which a calibration runs them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kernelcast.sampling.microbenchmarks import atomics, barriers, clock, divergence, launches
from kernelcast.sampling.microbenchmarks.bandwidth import run_bandwidth
from kernelcast.sampling.microbenchmarks.caches import run_caches
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.gathers import measure_gathers
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.instruction_kernels import KINDS
from kernelcast.sampling.microbenchmarks.latency_curves import add_space
from kernelcast.sampling.microbenchmarks.rooflines import measure_instruction
from kernelcast.sampling.microbenchmarks.transfers import run_transfers


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A microbenchmark that a calibration can run, repeat or leave out."""

    name: str
    """Short and stable: ``kernelcast calibrate --only`` takes it."""
    title: str
    run: Callable[[Bench], BenchmarkResult]
    """Measures on a bench; a number that cannot be vouched for goes into `not_obtained`."""


__all__ = ["Benchmark", "suite"]


def suite() -> tuple[Benchmark, ...]:
    """Give every microbenchmark: compute, then memory."""
    return (*COMPUTE, *MEMORY)


COMPUTE: tuple[Benchmark, ...] = (
    *(
        Benchmark(
            name=f"instructions-{kind.name}",
            title=f"occupancy roofline, peak and latencies of {kind.name}",
            run=partial(measure_instruction, kind=kind),
        )
        for kind in KINDS
    ),
    Benchmark(name=clock.NAME, title="clock, where instructions tell it", run=clock.measure_clock),
    Benchmark(
        name=divergence.NAME,
        title="branches that neighbouring work-items do not share",
        run=divergence.measure_divergence,
    ),
    Benchmark(name=atomics.NAME, title="atomic additions", run=atomics.measure_atomics),
    Benchmark(name=barriers.NAME, title="barriers", run=barriers.measure_barriers),
    Benchmark(name=launches.DISPATCH, title="starting work-groups", run=launches.measure_dispatch),
    Benchmark(name=launches.LAUNCH, title="launching kernels", run=launches.measure_launch),
)


def run_spaces(bench: Bench) -> BenchmarkResult:
    """Walk at random through local, constant and private memory."""
    findings = Findings("latency")
    for space in ("local", "constant", "private"):
        add_space(bench, findings, space)
    return findings.result()


MEMORY: tuple[Benchmark, ...] = (
    Benchmark(name="caches", title="cache sizes, latencies and bandwidths", run=run_caches),
    Benchmark(name="latency", title="local, constant and private memory", run=run_spaces),
    Benchmark(name="gathers", title="loads at unrelated addresses", run=measure_gathers),
    Benchmark(name="bandwidth", title="global memory, loads and copies", run=run_bandwidth),
    Benchmark(name="transfers", title="between host and device", run=run_transfers),
)
