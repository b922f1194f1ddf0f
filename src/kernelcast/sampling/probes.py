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
kernel void kc_trial(global float *out, int steps, global const uchar *memory, ulong apart,
                     ulong places, ulong each)
{
    ulong item = get_global_id(0);
    if (each == 0) {
        float x = (float)item;
        for (int i = 0; i < steps; ++i)
            x = x * 0.5f + 1.0f;
        out[item] = x;
    } else {
        uint sum = 0;
        for (ulong i = item * each; i < min((item + 1) * each, places); ++i)
            sum += memory[i * apart];
        if (sum == 0xffffffffu)
            out[0] = sum;
    }
}

kernel void kc_local_memory(global int *sink)
{
    local int staged[256];
    staged[get_local_id(0) % 256] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    sink[0] = staged[0];
}
"""
"""What every device is tried with. One kernel works, writes its work-items' numbers after no steps,
and reads memory: PoCL takes 50 ms to make one ready."""


def set_trial(
    kernel: cl.Kernel, out: cl.Buffer, steps: int, *, apart: int = 0, places: int = 0, each: int = 0
) -> None:
    """Set the arguments of `kc_trial`: it works and writes, or reads a byte of `out` at places.

    Parameters
    ----------
    apart, places, each : int
        Bytes from one place to the next, how many there are, and how many a work-item reads.
    """
    numbers = [np.uint64(one) for one in (apart, places, each)]
    kernel.set_args(out, np.int32(steps), out, *numbers)


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
        return cl.Kernel(self._build(TRIAL_SOURCE), "kc_trial")

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
        marks = np.frombuffer(page, dtype=np.float32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        try:
            buffer = cl.Buffer(self._queue.context, flags, hostbuf=marks)
            set_trial(self._touching, buffer, 0)
            cl.enqueue_nd_range_kernel(
                self._queue, self._touching, marks.shape, (PROBE_LOCAL_SIZE,)
            )
            self._queue.finish()
        except cl.Error:
            return False
        found = bool(np.array_equal(marks, np.arange(len(marks))))
        buffer.release()
        return found

    def touch(self, buffers: Iterable[tuple[cl.Buffer, int]], step_bytes: int) -> None:
        """Read a byte of the first bytes of buffers every so many, on all threads."""
        for buffer, size_bytes in buffers:
            places = -(-size_bytes // step_bytes)
            set_trial(self._touching, buffer, 0, apart=step_bytes, places=places, each=_STEPS_EACH)
            items = -(-places // _STEPS_EACH)
            size = -(-items // PROBE_LOCAL_SIZE) * PROBE_LOCAL_SIZE
            cl.enqueue_nd_range_kernel(self._queue, self._touching, (size,), (PROBE_LOCAL_SIZE,))
        self._queue.finish()
