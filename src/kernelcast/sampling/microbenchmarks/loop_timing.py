"""Times kernels whose last argument says how many times a loop runs."""

from dataclasses import dataclass

from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.statistics import Measured
from kernelcast.sampling.opencl import cl


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLaunch:
    """A kernel with its launch; the iteration count is its last argument.

    Parameters
    ----------
    arguments : tuple
        All arguments but the last.
    """

    bench: Bench
    kernel: cl.Kernel
    arguments: tuple[object, ...]
    global_size: int
    local_size: int

    def time(self, iterations: int) -> float:
        """Run once and give the time in seconds."""
        self.bench.set_args(self.kernel, *self.arguments, iterations)
        return self.bench.time_launch(self.kernel, self.global_size, self.local_size)

    def measure_proven(self) -> tuple[Measured, int]:
        """Choose a length, show that time grows with it, and measure."""
        iterations = self.bench.prove_work(self.time, self.bench.calibrate_length(self.time))
        return self.measure(iterations), iterations

    def measure(self, iterations: int) -> Measured:
        """Measure launches of so many iterations."""
        return self.bench.measure(lambda: self.time(iterations))
