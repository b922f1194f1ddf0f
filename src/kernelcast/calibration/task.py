"""What a child process of a calibration does: one microbenchmark on one device."""

from collections.abc import Callable
from dataclasses import dataclass

from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.microbenchmarks.bench import Bench, BenchmarkResult, Effort
from kernelcast.sampling.microbenchmarks.suite import suite
from kernelcast.sampling.session import open_session


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkTask:
    """A microbenchmark to be run in a child process."""

    name: str
    device_id: str
    effort: Effort


def run_benchmark(task: BenchmarkTask, report: Callable[[str], None]) -> BenchmarkResult:
    """Run one microbenchmark on one device."""
    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    benchmark = next(one for one in suite() if one.name == task.name)
    report("measuring")
    with session.lock:
        return benchmark.run(Bench(session, task.effort))
