"""The bench on which microbenchmarks stand: build, launch, repeat, watch for drift."""

import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.sampling.building import build_program
from kernelcast.sampling.microbenchmarks.effort import FEWEST_REPEATS, Effort
from kernelcast.sampling.microbenchmarks.reference import Reference
from kernelcast.sampling.microbenchmarks.statistics import (
    Measured,
    is_narrow,
    proves_work,
    summarise,
)
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

MOST_ITERATIONS = 60_000
"""Iterations of all loops of a work-item together; rusticl computes wrongly beyond 65,535."""
_LAUNCHES = 15
# With an argument and some work-groups: on rusticl an empty kernel is a sixth faster to launch.
_IDLE = """
kernel void kc_idle(global int *sink, int n)
{
    if (n)
        sink[0] = n;
}
"""
_IDLE_SIZE = (1024,)
_IDLE_LOCAL_SIZE = (64,)
_SHORTEST_S = 1e-9
_TRIES = 3
_ATTEMPTS = 3
_LONG_ENOUGH = 0.8
_PROOF_STEPS = (4, 2, 1)
_LONGER = 4

Size: TypeAlias = int | tuple[int, ...]


class Bench:
    """A device ready for microbenchmarks.

    Parameters
    ----------
    session : DeviceSession
        The open device; the caller holds its lock.
    """

    def __init__(self, session: DeviceSession, effort: Effort = Effort.NORMAL) -> None:
        self.session = session
        self.effort = effort
        self.description = session.description

    @cached_property
    def launch_overhead_s(self) -> float:
        """Median of a launch that does nothing, by the clock that times launches, in seconds."""
        kernel = self.build_kernel(_IDLE, "kc_idle")
        sink = self.buffer(4)
        self.set_args(kernel, sink, 0)
        times = [self._time_raw(kernel, _IDLE_SIZE, _IDLE_LOCAL_SIZE) for _ in range(_LAUNCHES)]
        return statistics.median(times)

    @cached_property
    def reference(self) -> Reference:
        """The reference kernel, which tells whether the device is as fast as usual."""
        return Reference(self.session, self.effort.patience_s)

    @cached_property
    def units(self) -> int:
        """Compute units at work at once: rusticl reports 8 on two cores, and has two threads."""
        reported = self.description.compute_units
        if self.description.kind is not DeviceKind.CPU:
            return reported
        return max(1, min(reported, count_usable_cores()))

    @cached_property
    def warp_width(self) -> int:
        """Work-items issued together, as the driver has it; 1 on CPUs."""
        if self.description.kind is DeviceKind.CPU:
            return 1
        info = cl.kernel_work_group_info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE
        kernel = self.build_kernel("kernel void kc_warp(void) {}", "kc_warp")
        # pyopencl types every answer as object
        return max(1, cast("int", kernel.get_work_group_info(info, self.session.device)))

    def build_kernel(self, source: str, name: str, options: tuple[str, ...] = ()) -> cl.Kernel:
        """Compile a kernel; raises `CompileError` if the compiler refuses it."""
        session = self.session
        return cl.Kernel(build_program(session.context, session.device, source, options), name)

    def buffer(self, content: int | npt.NDArray[np.generic]) -> cl.Buffer:
        """Make a buffer of that many bytes, set to zero, or with that content."""
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        array = np.zeros(content, dtype=np.uint8) if isinstance(content, int) else content
        return cl.Buffer(self.session.context, flags, hostbuf=np.ascontiguousarray(array))

    def local_memory(self, size_bytes: int) -> cl.LocalMemory:
        """Make an argument that takes so much local memory per work-group."""
        return cl.LocalMemory(size_bytes)

    def set_args(self, kernel: cl.Kernel, *arguments: object) -> cl.Kernel:
        """Set all arguments; Python integers become 32-bit ones.

        OpenCL keeps no buffer alive for a kernel: the caller does.
        """
        known = [np.int32(one) if isinstance(one, int) else one for one in arguments]
        kernel.set_args(*known)  # type: ignore[arg-type]  # pyopencl leaves local memory out
        return kernel

    def read(self, buffer: cl.Buffer, dtype: npt.DTypeLike, count: int) -> npt.NDArray[np.generic]:
        """Read the first elements of a buffer."""
        found = np.empty(count, dtype=dtype)
        cl.enqueue_copy(self.session.queue, found, buffer)
        return found

    def time_launch(self, kernel: cl.Kernel, global_size: Size, local_size: Size) -> float:
        """Launch once and give the time in seconds, above 0.

        By profiling events where the session believes them; else by the host clock, less what an
        empty launch takes.
        """
        seconds = self._time_raw(kernel, _as_tuple(global_size), _as_tuple(local_size))
        if not self.session.uses_event_timer:
            seconds -= self.launch_overhead_s
        self.session.note_busy()
        return max(seconds, _SHORTEST_S)

    def measure(self, run: Callable[[], float]) -> Measured:
        """Repeat a run, between runs of the reference kernel, until its mean is known well.

        Parameters
        ----------
        run : callable
            Gives a time in seconds; called once before anything counts.

        Returns
        -------
        Measured
            Runs next to a reference more than 10 % slower than usual are thrown away, up to as
            many as may count.
        """
        self.session.settle()
        run()
        kept: list[float] = []
        slow: list[float] = []
        seen = [self.reference.time()]
        while len(kept) < self.effort.repeats and len(slow) < self.effort.repeats:
            sample = run()
            seen.append(self.reference.time())
            is_slow = self.reference.is_slow(max(seen[-2:]))
            (slow if is_slow else kept).append(sample)
            if is_slow:
                self.reference.wait_until_usual()
                seen.append(self.reference.time())
            if len(kept) >= FEWEST_REPEATS and is_narrow(kept, self.effort.narrow):
                break
        if len(kept) < FEWEST_REPEATS:  # slow all the time: that is how the device is now
            kept, slow = kept + slow, []
        drift = statistics.median(seen) / self.reference.usual_s
        spread = self.reference.spread
        return summarise(kept, repeated=len(slow), drift=drift, spread=spread)

    def calibrate_length(
        self,
        run: Callable[[int], float],
        target_s: float | None = None,
        *,
        first: int = 1,
        most: int = MOST_ITERATIONS,
    ) -> int:
        """Choose how many iterations make a run last `target_s`, which is far above a launch.

        Parameters
        ----------
        run : callable
            Runs that many iterations and gives the time in seconds.
        target_s : float, optional
            By default the effort's `run_s`, or ten launches where they take longer.
        first : int
            Count to begin with: a guess saves runs.
        most : int
            Largest count to choose.
        """
        target_s = target_s or max(self.effort.run_s, 10 * self.launch_overhead_s)
        count = min(max(1, first), most)
        run(count)  # compiles
        self.session.settle()
        while count < most:
            seconds = min(run(count) for _ in range(_TRIES))
            if seconds >= _LONG_ENOUGH * target_s:
                break
            needed = math.ceil(count * target_s / seconds)
            count = min(most, max(needed, count + 1), 8 * count)
        return count

    def prove_work(
        self, run: Callable[[int], float], iterations: int, *, most: int = MOST_ITERATIONS
    ) -> int:
        """Run a quarter, half and all of the iterations; raise unless time grows likewise.

        Parameters
        ----------
        run : callable
            Runs that many iterations and gives the time in seconds.
        iterations : int
            Count to begin with. Where it proves nothing, a launch or a neighbour may have taken
            the time by which it was chosen, and four times as many are tried.
        most : int
            Largest count to try.

        Raises
        ------
        MeasurementError
            If none does: then the number must not be reported.
        """
        while True:
            try:
                self._prove_length(run, iterations)
            except MeasurementError:
                if iterations >= most:
                    raise
                iterations = min(_LONGER * iterations, most)
            else:
                return iterations

    def _prove_length(self, run: Callable[[int], float], iterations: int) -> None:
        counts = sorted({max(1, iterations // step) for step in _PROOF_STEPS})
        run(counts[0])  # compiles
        self.prove(
            lambda: [run(count) for count in counts],
            lambda times: proves_work(dict(zip(counts, times, strict=True))),
        )

    def prove(self, run: Callable[[], list[float]], check: Callable[[list[float]], None]) -> None:
        """Check the shortest times of a few rounds, which noise can only lengthen.

        Parameters
        ----------
        check : callable
            Raises `MeasurementError` unless the shortest times so far prove what they shall.
        """
        rounds: list[list[float]] = []
        for attempt in range(1, _ATTEMPTS + 1):
            self.session.settle()
            rounds += [run() for _ in range(_TRIES)]
            try:
                check([min(times) for times in zip(*rounds, strict=True)])
            except MeasurementError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                break

    def _time_raw(
        self, kernel: cl.Kernel, global_size: tuple[int, ...], local_size: tuple[int, ...]
    ) -> float:
        queue = self.session.queue
        queue.finish()
        start = time.perf_counter()
        event = cl.enqueue_nd_range_kernel(queue, kernel, global_size, local_size)
        queue.finish()
        if self.session.uses_event_timer:
            return float(event.profile.end - event.profile.start) * 1e-9
        return time.perf_counter() - start


def count_usable_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _as_tuple(size: Size) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else size


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLaunch:
    """A kernel with its launch; the iteration count is its last argument."""

    bench: Bench
    kernel: cl.Kernel
    arguments: tuple[object, ...]
    """All arguments but the last."""
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
