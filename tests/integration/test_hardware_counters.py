import time

import numpy as np
import pytest

from kernelcast.sampling.building import build_program
from kernelcast.sampling.hardware_counters.perf_event import (
    HARDWARE_EVENTS,
    SOFTWARE_EVENTS,
    PerfEventCounters,
)
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

SOURCE = """
kernel void spin(global float *values, int steps)
{
    float x = values[get_global_id(0)];
    for (int i = 0; i < steps; ++i)
        x = x * 0.999f + 0.5f;
    values[get_global_id(0)] = x;
}
"""
ITEMS = 4096
# rusticl's llvmpipe (Mesa 22.3) ends all loops of a work-item after 65,535 turns together.
STEPS = 10_000
LONG_ENOUGH_S = 0.1


class Spinning:
    """A kernel on one device, launched as often as it takes for 0.1 s."""

    def __init__(self, session: DeviceSession) -> None:
        self._queue = session.queue
        program = build_program(session.context, session.device, SOURCE, ())
        self._kernel = cl.Kernel(program, "spin")
        self._values = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size=4 * ITEMS)
        cl.enqueue_fill_buffer(session.queue, self._values, np.float32(1), 0, 4 * ITEMS)
        self._kernel.set_args(self._values, np.int32(STEPS))
        self.launches = 1
        self.run()
        while self.time() < LONG_ENOUGH_S:
            self.launches *= 2

    def run(self) -> None:
        """Run all launches and wait for their end."""
        for _ in range(self.launches):
            cl.enqueue_nd_range_kernel(self._queue, self._kernel, (ITEMS,), (64,))
        self._queue.finish()

    def time(self) -> float:
        """Run them; give the time in seconds."""
        start = time.perf_counter()
        self.run()
        return time.perf_counter() - start


@pytest.fixture
def spinning(session: DeviceSession) -> Spinning:
    """Prepare a kernel of at least 0.1 s on a device that runs in this process."""
    if session.description.kind not in PerfEventCounters().device_kinds:
        pytest.skip("kernels of this device do not run in this process")
    return Spinning(session)


def test_counts_the_runtimes_threads(spinning: Spinning) -> None:
    """Counts the processor time of the runtime's own threads, none of it twice."""
    counters = PerfEventCounters(SOFTWARE_EVENTS)
    if not counters.probe().is_available:
        pytest.skip(counters.probe().reason)
    start_ns = time.process_time_ns()
    _, counts = counters.count(spinning.run)
    used_ns = time.process_time_ns() - start_ns
    assert counts.by_name["task_clock_ns"] == pytest.approx(used_ns, rel=0.4, abs=5e6)


def test_counts_in_proportion(spinning: Spinning) -> None:
    """Counts twice the instructions where the kernel does twice the work."""
    counters = PerfEventCounters(HARDWARE_EVENTS[:2])
    if "instructions" not in counters.probe().counter_names:
        pytest.skip(counters.probe().reason)
    _, once = counters.count(spinning.run)
    spinning.launches *= 2
    _, twice = counters.count(spinning.run)
    assert 1.7 < twice.by_name["instructions"] / once.by_name["instructions"] < 2.3
