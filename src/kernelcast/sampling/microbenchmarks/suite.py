"""All microbenchmarks, in the order in which a calibration runs them."""

from kernelcast.sampling.microbenchmarks.benchmark import Benchmark
from kernelcast.sampling.microbenchmarks.compute_suite import COMPUTE
from kernelcast.sampling.microbenchmarks.memory_suite import MEMORY

__all__ = ["Benchmark", "suite"]


def suite() -> tuple[Benchmark, ...]:
    """Give every microbenchmark: compute, then memory."""
    return (*COMPUTE, *MEMORY)
