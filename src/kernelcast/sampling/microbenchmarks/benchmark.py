"""One microbenchmark: its name and what runs it."""

from collections.abc import Callable
from dataclasses import dataclass

from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.result import BenchmarkResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A microbenchmark that a calibration can run, repeat or leave out.

    Parameters
    ----------
    name : str
        Short and stable: ``kernelcast calibrate --only`` takes it.
    run : callable
        Measures on a bench; a number that cannot be vouched for goes into `not_obtained`.
    """

    name: str
    title: str
    run: Callable[[Bench], BenchmarkResult]
