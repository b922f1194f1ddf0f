"""What a device does with work-groups: how many at once, in which order, from how many on."""

import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelcast.sampling.launch_timer import Enqueue
from kernelcast.sampling.opencl import cl

_PROBE_SOURCE = """
kernel void kc_probe(global volatile int *counters, global float *sink, int steps,
                     local uchar *ballast)
{
    if (get_local_id(0) == 0) {
        ballast[0] = 1;
        atomic_inc(&counters[0]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float x = (float)get_global_id(0);
    for (int i = 0; i < steps; ++i)
        x = x * 0.999f + 0.5f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        atomic_max(&counters[1], counters[0]);
        atomic_dec(&counters[0]);
    }
    if (x == -1.0f)
        *sink = x + ballast[0];
}
"""

TRIAL_SOURCE = """
kernel void kc_trial(global float *out, int steps)
{
    float x = (float)get_global_id(0);
    for (int i = 0; i < steps; ++i)
        x = x * 0.5f + 1.0f;
    out[get_global_id(0)] = x;
}

kernel void kc_local_memory(global int *sink)
{
    local int staged[256];
    staged[get_local_id(0) % 256] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    sink[0] = staged[0];
}

kernel void kc_mark(global int *marks)
{
    marks[get_global_id(0)] = get_global_id(0) + 1;
}

kernel void kc_touch(global const uchar *memory, ulong step, ulong steps, ulong each,
                     global int *sink)
{
    ulong end = min((get_global_id(0) + 1) * each, steps);
    uint sum = 0;
    for (ulong i = get_global_id(0) * each; i < end; ++i)
        sum += memory[i * step];
    if (sum == 0xffffffffu)
        *sink = 1;
}
"""
"""Kernels that every device is tried with: they compile fast."""

PROBE_LOCAL_SIZE = 64
_DECLARED_BYTES = 1024
_STEPS_EACH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One run of the probe kernel."""

    duration_s: float
    concurrency: int
    """Most work-groups that were active together."""


class Probe:
    """The probe kernel on one device."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        build: Callable[[str], cl.Program],
        time_work: Callable[[Sequence[Enqueue]], list[float]],
    ) -> None:
        self._queue, self._build, self._time_work = queue, build, time_work
        self._counters = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size=8)
        self._sink = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size=4)

    @cached_property
    def _working(self) -> cl.Kernel:
        return cl.Kernel(self._build(_PROBE_SOURCE), "kc_probe")

    @cached_property
    def _touching(self) -> cl.Kernel:
        return cl.Kernel(self._build(TRIAL_SOURCE), "kc_touch")

    def run(
        self,
        groups: tuple[int, ...],
        *,
        steps: int,
        local_size: int = PROBE_LOCAL_SIZE,
        local_bytes: int = 1,
    ) -> ProbeResult:
        """Run work-groups that each do `steps` dependent operations per work-item."""
        counters = np.zeros(2, dtype=np.int32)
        cl.enqueue_copy(self._queue, self._counters, counters)
        ballast: object = cl.LocalMemory(max(1, local_bytes))
        self._working.set_args(
            self._counters,
            self._sink,
            np.int32(steps),
            ballast,  # type: ignore[arg-type]  # pyopencl's types leave local memory out
        )
        size = (groups[0] * local_size, *groups[1:])
        local = (local_size, *(1 for _ in groups[1:]))
        [duration_s] = self._time_work(
            [lambda: cl.enqueue_nd_range_kernel(self._queue, self._working, size, local)]
        )
        cl.enqueue_copy(self._queue, counters, self._counters)
        return ProbeResult(duration_s=duration_s, concurrency=int(counters[1]))

    def read_local_memory(self, kernel: cl.Kernel, device: cl.Device) -> int:
        """Ask how much local memory a work-group of a kernel takes, in bytes.

        rusticl reports twice what is declared; a kernel that declares 1 KiB tells.
        """
        info = cl.kernel_work_group_info.LOCAL_MEM_SIZE
        own = cl.Kernel(self._build(TRIAL_SOURCE), "kc_local_memory")
        reported: list[int] = [
            one.get_work_group_info(info, device)  # type: ignore[misc]  # pyopencl says object
            for one in (own, kernel)
        ]
        return reported[1] // max(1, reported[0] // _DECLARED_BYTES)

    def writes_host_memory(self) -> bool:
        """Tell whether kernels write to the host's memory itself where a buffer is made of it.

        Runtimes may keep a copy until the host maps the buffer, or refuse such buffers.
        """
        page = mmap.mmap(-1, mmap.PAGESIZE)
        marks = np.frombuffer(page, dtype=np.int32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        try:
            buffer = cl.Buffer(self._queue.context, flags, hostbuf=marks)
            kernel = cl.Kernel(self._build(TRIAL_SOURCE), "kc_mark")
            kernel.set_args(buffer)
            cl.enqueue_nd_range_kernel(self._queue, kernel, marks.shape, None)
            self._queue.finish()
        except cl.Error:
            return False
        expected = np.arange(1, len(marks) + 1, dtype=np.int32)
        found = bool(np.array_equal(marks, expected))
        buffer.release()
        return found

    def touch(self, buffers: Iterable[tuple[cl.Buffer, int]], step_bytes: int) -> None:
        """Read a byte of the first bytes of buffers every so many, on all threads."""
        kernel = self._touching
        for buffer, size_bytes in buffers:
            steps = -(-size_bytes // step_bytes)
            numbers = [np.uint64(one) for one in (step_bytes, steps, _STEPS_EACH)]
            kernel.set_args(buffer, *numbers, self._sink)
            items = -(-steps // _STEPS_EACH)
            size = -(-items // PROBE_LOCAL_SIZE) * PROBE_LOCAL_SIZE
            cl.enqueue_nd_range_kernel(self._queue, kernel, (size,), (PROBE_LOCAL_SIZE,))
        self._queue.finish()
