"""The microbenchmarks of memories and transfers."""

from kernelcast.sampling.microbenchmarks.bandwidth import run_bandwidth
from kernelcast.sampling.microbenchmarks.benchmark import Benchmark
from kernelcast.sampling.microbenchmarks.caches import run_caches
from kernelcast.sampling.microbenchmarks.findings import Findings
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.latency_curves import add_space
from kernelcast.sampling.microbenchmarks.result import BenchmarkResult
from kernelcast.sampling.microbenchmarks.transfers import run_transfers


def run_spaces(bench: Bench) -> BenchmarkResult:
    """Walk at random through local, constant and private memory."""
    findings = Findings("latency")
    for space in ("local", "constant", "private"):
        add_space(bench, findings, space)
    return findings.result()


MEMORY: tuple[Benchmark, ...] = (
    Benchmark(name="caches", title="cache sizes, latencies and bandwidths", run=run_caches),
    Benchmark(name="latency", title="local, constant and private memory", run=run_spaces),
    Benchmark(name="bandwidth", title="global memory, loads and copies", run=run_bandwidth),
    Benchmark(name="transfers", title="between host and device", run=run_transfers),
)
