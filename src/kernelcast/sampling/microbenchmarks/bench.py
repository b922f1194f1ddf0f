"""The bench on which microbenchmarks stand: build, check, launch, repeat, watch for drift."""

import math
import os
import re
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import CacheFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.building import build_program
from kernelcast.sampling.microbenchmarks.findings import (
    Array,
    Effort,
    Measured,
    check_growth,
    check_result,
    is_narrow,
    summarise,
)
from kernelcast.sampling.microbenchmarks.fits import LEAST_SPREAD
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

_Reported: TypeAlias = Trait[int] | None
_HOST_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
MOST_ITERATIONS = 60_000
"""Iterations of all loops of a work-item together; rusticl computes wrongly beyond 65,535."""
FEWEST_REPEATS = 5
"""Runs after which a narrow interval may end a measurement."""


class Launch(NamedTuple):
    """Work-items of a launch and of a work-group, and local memory of a work-group."""

    global_size: int
    local_size: int
    local_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A row: kernel ``kc_loop(out, given, n)``, or with local memory before ``n``. Chains start
    from values that differ between work-items, and operands come from a buffer: nothing can be
    hoisted or folded."""

    source: str
    given: Array
    """What it reads."""
    expect: Callable[[npt.NDArray[np.int64], int], Array]
    """Computes what work-items, given by their numbers, have written after some iterations."""
    tolerance: float = 0.0
    """Relative error that is allowed; none for integers."""


class Bench:
    """A device ready for microbenchmarks; the caller holds the session's lock."""

    def __init__(self, session: DeviceSession, effort: Effort = Effort.NORMAL) -> None:
        self.session = session
        self.effort = effort
        self.description = session.description
        # Most runs of one measurement (25 as in the microbenchmarks paper), the half width of the
        # mean's interval that ends it early, how long a run should last, and how long to wait in
        # total for a machine that others keep busy.
        self.repeats, self.narrow, self.run_s, self.patience_s = effort.pick(
            (7, 0.02, 2e-3, 1.5), (15, 0.015, 3e-3, 5.0), (25, 0.01, 5e-3, 10.0)
        )
        described = self.description
        limits = (described.max_allocation_bytes, described.global_memory_bytes // 4)
        self.most_bytes = min(2**30, *limits)
        """Of one array."""
        self._reference_s: list[float] = []

    @cached_property
    def is_cpu(self) -> bool:
        return self.description.kind is DeviceKind.CPU

    @cached_property
    def host_caches(self) -> tuple[CacheFacts, ...]:
        """The caches of a CPU device as the operating system reports them, nearest first."""
        return read_host_caches() if self.is_cpu else ()

    @cached_property
    def last_cache_bytes(self) -> int:
        """Size of the largest reported cache; a guess on other devices."""
        sizes = [cache.size_bytes.value for cache in self.host_caches if cache.size_bytes]
        return max(sizes, default=2**26)

    @cached_property
    def launch_overhead_s(self) -> float:
        """Median of a launch that does nothing, by the clock that times launches, in seconds."""
        # With an argument and some work-groups: rusticl launches an empty kernel a sixth faster.
        source = "kernel void kc_idle(global int *sink, int n) { if (n) sink[0] = n; }"
        sink = self.buffer(4)
        kernel = self.set_args(self.build_kernel(source, "kc_idle"), sink, 0)
        return statistics.median(self._time_raw(kernel, 1024, 64) for _ in range(15))

    @cached_property
    def units(self) -> int:
        """Compute units at work at once: rusticl reports 8 on two cores, and has two threads."""
        is_known = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1
        units = self.description.compute_units
        return max(1, min(units, cores)) if self.is_cpu else units

    @cached_property
    def warp_width(self) -> int:
        """Work-items issued together, as the driver has it; 1 on CPUs."""
        if self.is_cpu:
            return 1
        info = cl.kernel_work_group_info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE
        kernel = self.build_kernel("kernel void kc_warp(void) {}", "kc_warp")
        # pyopencl types every answer as object
        return max(1, cast("int", kernel.get_work_group_info(info, self.session.device)))

    def build_kernel(self, source: str, name: str) -> cl.Kernel:
        """Compile a kernel; raises `CompileError` if the compiler refuses it."""
        return cl.Kernel(build_program(self.session.context, self.session.device, source, ()), name)

    def buffer(self, content: int | Array) -> cl.Buffer:
        """Make a buffer of that many bytes, set to zero, or with that content."""
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        array = np.zeros(content, dtype=np.uint8) if isinstance(content, int) else content
        return cl.Buffer(self.session.context, flags, hostbuf=np.ascontiguousarray(array))

    def set_args(self, kernel: cl.Kernel, *arguments: object) -> cl.Kernel:
        """Set all arguments, integers as 32-bit ones; the caller keeps buffers alive, OpenCL does
        not."""
        known = [np.int32(one) if isinstance(one, int) else one for one in arguments]
        kernel.set_args(*known)  # type: ignore[arg-type]  # pyopencl leaves local memory out
        return kernel

    def read(self, buffer: cl.Buffer, dtype: npt.DTypeLike, count: int) -> Array:
        content = np.empty(count, dtype=dtype)
        cl.enqueue_copy(self.session.queue, content, buffer)
        return content

    def time_launch(self, kernel: cl.Kernel, global_size: int, local_size: int) -> float:
        """Time one launch, in seconds above 0: by events where the session believes them, else by
        the host's clock, less what an empty launch takes."""
        seconds = self._time_raw(kernel, global_size, local_size)
        if not self.session.uses_event_timer:
            seconds -= self.launch_overhead_s
        self.session.note_busy()
        return max(seconds, 1e-9)

    def measure(self, run: Callable[[], float]) -> Measured:
        """Repeat a run, between runs of the reference kernel, until its mean is known well; those
        beside a reference more than 10 % slower than usual are thrown away, up to as many as may
        count."""
        self.session.settle()
        run()
        kept: list[float] = []
        slow: list[float] = []
        before_s = self.time_reference()
        while len(kept) < self.repeats and len(slow) < self.repeats:
            seconds = run()
            after_s = self.time_reference()
            is_slow = self._is_slow(max(before_s, after_s))
            (slow if is_slow else kept).append(seconds)
            before_s = self._wait_until_usual() if is_slow else after_s
            if len(kept) >= FEWEST_REPEATS and is_narrow(kept, self.narrow):
                break
        if len(kept) < FEWEST_REPEATS:  # slow all the time: that is how the device is now
            kept += slow
        return summarise(kept, spread=read_spread(self._reference_s))

    def measure_loop(self, run: Callable[[int], float]) -> tuple[Measured, int]:
        """Choose a length, show that time grows with it, and measure; iterations come along."""
        iterations = self.prove_work(run, self.choose_length(run))
        return self.measure(lambda: run(iterations)), iterations

    def choose_length(
        self,
        run: Callable[[int], float],
        target_s: float | None = None,
        most: int = MOST_ITERATIONS,
    ) -> int:
        """Choose how many iterations make a run last `target_s`; when left out, the effort's
        `run_s` or ten launches."""
        target_s = target_s or max(self.run_s, 10 * self.launch_overhead_s)
        run(count := 1)  # compiles
        self.session.settle()
        while count < most:
            seconds = min(run(count) for _ in range(3))
            if seconds >= 0.8 * target_s:
                break
            needed = math.ceil(count * target_s / seconds)
            count = min(most, max(needed, count + 1), 8 * count)
        return count

    def prove_work(
        self, run: Callable[[int], float], iterations: int, *, most: int = MOST_ITERATIONS
    ) -> int:
        """Raise unless time grows from a quarter to half to all iterations; a neighbour may have
        taken the time by which the count was chosen, so that four times as many are tried, up to
        `most`."""
        while True:
            counts = sorted({max(1, iterations // part) for part in (4, 2, 1)})
            run(counts[0])  # compiles
            try:
                runs = [partial(run, count) for count in counts]
                self.prove(runs, partial(check_growth, counts))
            except MeasurementError:
                if iterations >= most:
                    raise
                iterations = min(4 * iterations, most)
            else:
                return iterations

    def prove(
        self, runs: Sequence[Callable[[], float]], check: Callable[[list[float]], None]
    ) -> None:
        """Check the shortest time of each run in up to nine rounds: noise can only lengthen it."""
        rounds: list[list[float]] = []
        for attempt in range(3):
            self.session.settle()
            rounds += [[run() for run in runs] for _ in range(3)]
            try:
                check([min(times) for times in zip(*rounds, strict=True)])
            except MeasurementError:
                if attempt == 2:
                    raise
            else:
                break

    def time_reference(self) -> float:
        """Time the session's reference, some tenths of a millisecond on all compute units."""
        self._reference_s.append(self.session.time_reference())
        return self._reference_s[-1]

    def _is_slow(self, reference_s: float) -> bool:
        """Compare with the lower quartile so far: right if a quarter was undisturbed."""
        return reference_s > 1.1 * float(np.quantile(self._reference_s, 0.25))

    def _wait_until_usual(self) -> float:
        """Keep the device busy until it is as fast as usual, while patience lasts: threads that
        woke on one core need up to 30 ms, other users of the machine longer."""
        start_s = time.perf_counter()
        while (elapsed_s := time.perf_counter() - start_s) < self.patience_s:
            self.session.settle()
            if not self._is_slow(self.time_reference()):
                break
            time.sleep(0.05)
        self.patience_s = max(0.0, self.patience_s - elapsed_s)
        return self.time_reference()

    def _time_raw(self, kernel: cl.Kernel, global_size: int, local_size: int) -> float:
        queue = self.session.queue
        queue.finish()
        start_s = time.perf_counter()
        event = cl.enqueue_nd_range_kernel(queue, kernel, (global_size,), (local_size,))
        queue.finish()
        if self.session.uses_event_timer:
            return float(event.profile.end - event.profile.start) * 1e-9
        return time.perf_counter() - start_s


class LoopKernel:
    """A row on a device: built, and checked against numpy by a launch of three iterations."""

    def __init__(self, bench: Bench, loop: Loop, check: Launch, most_items: int = 0) -> None:
        self._bench = bench
        self._kernel = bench.build_kernel(loop.source, "kc_loop")
        self._given = bench.buffer(loop.given)
        dtype, items = loop.given.dtype, check.global_size
        self._out = bench.buffer(max(most_items, items) * dtype.itemsize)
        self.time(check, 3)
        expected = loop.expect(np.arange(items), 3).astype(dtype)
        check_result(bench.read(self._out, dtype, items), expected, loop.tolerance)

    def time(self, launch: Launch, iterations: int) -> float:
        memory = [cl.LocalMemory(launch.local_bytes)] if launch.local_bytes else []
        self._bench.set_args(self._kernel, self._out, self._given, *memory, iterations)
        return self._bench.time_launch(self._kernel, launch.global_size, launch.local_size)


def read_spread(times_s: Sequence[float]) -> float:
    """Read how much a device's speed drifts: 1.96 standard deviations of the logarithms of medians
    of 20 runs, between 3 %, which a short series cannot show, and 5 %: other users are no drift."""
    blocks = len(times_s) // 20
    if blocks < 5:
        return LEAST_SPREAD
    medians = np.median(np.reshape(times_s[: blocks * 20], (blocks, 20)), axis=1)
    return min(max(1.96 * float(np.std(np.log(medians), ddof=1)), LEAST_SPREAD), 0.05)


def read_host_caches(folder: Path = _HOST_CACHES) -> tuple[CacheFacts, ...]:
    """Read this host's data and unified caches, nearest first; none where Linux does not say."""
    caches = []
    for index in sorted(folder.glob("index*")):
        texts = {}
        for path in index.iterdir():
            with suppress(OSError, UnicodeDecodeError):
                texts[path.name] = path.read_text(encoding="ascii").strip()

        def report(name: str, texts: dict[str, str] = texts, origin: str = str(index)) -> _Reported:
            number = re.fullmatch(r"(\d+)([KMG]?)", texts.get(name, ""))
            value = int(number[1]) * 1024 ** " KMG".index(number[2] or " ") if number else 0
            if name == "shared_cpu_list":  # such as 0-3,8
                ranges = re.findall(r"(\d+)(?:-(\d+))?", texts.get(name, ""))
                value = sum(int(last or first) - int(first) + 1 for first, last in ranges)
            return Trait(value=value, source=TraitSource.REPORTED, origin=origin) if value else None

        level, size = report("level"), report("size")
        if texts.get("type") != "Instruction" and level and size:
            facts = CacheFacts(
                name=f"L{level.value}",
                size_bytes=size,
                reported_size_bytes=size,
                line_bytes=report("coherency_line_size"),
                ways=report("ways_of_associativity"),
                shared_by=report("shared_cpu_list"),
            )
            caches.append(facts)
    return tuple(sorted(caches, key=lambda facts: facts.name))
