"""The bench on which microbenchmarks stand: build, check, launch, repeat, watch for drift.

Repeated times are put into numbers, with reasons for what is missing.
"""

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import KernelcastError, MeasurementError
from kernelcast.records.machine import CacheFacts, Curve, InstructionFacts, MemoryFacts
from kernelcast.sampling import read_source
from kernelcast.sampling.host import read_told
from kernelcast.sampling.opencl import ask_kernel, cl
from kernelcast.sampling.session import DeviceSession

T = TypeVar("T")
Number = TypeVar("Number", int, float)
Array = npt.NDArray[Any]
LEAST_SPREAD = 0.03
"""Timings repeat no better, and two calibrations minutes apart see clocks up to 6 % apart."""


class Effort(StrEnum):
    """How thorough: `QUICK` takes at most a minute per device, `FULL` five, on two cores."""

    QUICK = "quick"
    NORMAL = "normal"
    FULL = "full"

    def pick(self, quick: T, normal: T, full: T) -> T:
        return {Effort.QUICK: quick, Effort.NORMAL: normal, Effort.FULL: full}[self]


@dataclass(slots=True, kw_only=True)
class BenchmarkResult:
    """Outcome of one microbenchmark, filled while it runs; fields as in `MachineDescription`."""

    name: str
    instructions: tuple[InstructionFacts, ...] = ()
    caches: tuple[CacheFacts, ...] = ()
    memories: tuple[MemoryFacts, ...] = ()
    """Like instructions and caches, facts; those with the name of facts that are known already add
    to them."""
    warp_width: Trait[int] | None = None
    clock_hz: Trait[float] | None = None
    costs: dict[str, Trait[float]] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()
    not_obtained: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def attempting(self, what: str) -> Iterator[None]:
        """Note an error of compiler, driver or measurement as the reason why `what` is missing."""
        try:
            yield
        except (KernelcastError, cl.Error) as error:
            self.not_obtained[what] = str(error)

    def draw(
        self, name: str, axes: tuple[str, str], x: Iterable[float], y: Sequence[Trait[float]]
    ) -> None:
        """Add a curve of traits with their intervals; `axes` names quantities with their units."""
        curve = Curve(
            name=name,
            x_name=axes[0],
            y_name=axes[1],
            x=tuple(map(float, x)),
            y=tuple(one.value for one in y),
            low=tuple(one.value if one.low is None else one.low for one in y),
            high=tuple(one.value if one.high is None else one.high for one in y),
        )
        self.curves += (curve,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What repeated runs have shown, in seconds."""

    median: float
    """Decisions and traits take it, since neighbours on a machine only ever add time."""
    low: float
    """Begin of the 95 % interval of one run: 1.96 standard deviations on either side of the mean as
    in the paper, but of logarithms, so that it stays positive, holds the median, and turns into a
    rate's. The drift of the device's speed, as the reference kernel has it, is part of it."""
    high: float
    minimum: float

    def as_trait(self, origin: str, scale: float = 1.0) -> Trait[float]:
        return make_trait(self.median * scale, origin, self.low * scale, self.high * scale)

    def as_rate(self, amount: float, origin: str) -> Trait[float]:
        """Make a trait of `amount` per time: operations or bytes per second."""
        return make_trait(amount / self.median, origin, amount / self.high, amount / self.low)

    def beyond(self, baseline: "Measured", origin: str, scale: float = 1.0) -> Trait[float]:
        """Make a trait of what it took beyond `baseline`, times `scale`; deviations add up."""
        value = self.median - baseline.median
        if value <= 0:
            raise MeasurementError(
                f"{self.median:.3g} s with it and {baseline.median:.3g} s without: "
                "the difference is below the noise"
            )
        down = math.hypot(self.median - self.low, baseline.high - baseline.median)
        up = math.hypot(self.high - self.median, baseline.median - baseline.low)
        low, high = max(value - down, 0.0) * scale, (value + up) * scale
        return make_trait(value * scale, origin, low, high)


def make_trait(
    value: Number, origin: str, low: Number | None = None, high: Number | None = None
) -> Trait[Number]:
    return Trait(value=value, source=TraitSource.MEASURED, low=low, high=high, origin=origin)


def summarise(times_s: Sequence[float], *, spread: float = 0.0) -> Measured:
    """Summarise times; the half width of the drift's interval `spread`, a share, and deviations add
    as squares."""
    values = np.asarray(times_s, dtype=np.float64)
    logs = np.log(values)
    deviation = float(np.std(logs, ddof=1)) if values.size > 1 else 0.0
    half = math.hypot(1.96 * deviation, spread)
    centre, median = float(np.mean(logs)), float(np.median(values))
    low, high = min(math.exp(centre - half), median), max(math.exp(centre + half), median)
    return Measured(median=median, low=low, high=high, minimum=float(np.min(values)))


def check_growth(counts: Sequence[int], times_s: Sequence[float]) -> None:
    """Raise unless time grows with the iterations: by at least half of what proportion would add,
    with at most 30 % of the longest time that stays."""
    growth, least = 1 - times_s[0] / times_s[-1], 0.5 * (1 - counts[0] / counts[-1])
    is_good = len(counts) > 1 and growth >= least
    if is_good:  # relative errors count equally at both ends
        _, intercept = np.polyfit(counts, times_s, 1, w=1.0 / np.asarray(times_s))
        is_good = intercept <= 0.3 * times_s[-1]
    if not is_good:
        shown = ", ".join(f"{n}: {time_s:.3g} s" for n, time_s in zip(counts, times_s, strict=True))
        msg = f"time does not grow with the iterations ({shown}): the work may have been removed"
        raise MeasurementError(msg)


def check_result(found: Array, expected: Array, tolerance: float = 0.0) -> None:
    """Raise unless a kernel computed what numpy computes, within a relative `tolerance`."""
    good = np.asarray(found == expected)
    if tolerance:
        wanted = expected.astype(np.float64)
        good = np.isclose(found.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)
    if not np.all(good):
        where = int(np.argmin(good))
        raise MeasurementError(
            f"the kernel's result {where} is {found.flat[where]}, "
            f"not {expected.flat[where]}: its time means nothing"
        )


_Reported: TypeAlias = Trait[int] | None
_HOST_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
MOST_ITERATIONS = 60_000
"""Iterations of all loops of a work-item together; rusticl computes wrongly beyond 65,535."""
FEWEST_REPEATS = 5
"""Runs after which a narrow interval may end a measurement."""
NEVER = np.int32(2**31 - 1)
"""A work-item that no launch has."""


def add_lanes(name: str, width: int) -> str:
    """Write the sum of a vector's elements, or a scalar."""
    return " + ".join(f"{name}.s{lane:x}" for lane in range(width)) if width > 1 else name


class Launch(NamedTuple):
    """Work-items of a launch and of a work-group, and local memory of a work-group."""

    global_size: int
    local_size: int
    local_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kernel of `microbenchmarks.cl` that takes ``out, given, n``, or local memory before ``n``;
    starts differ by work-item and operands are read, so that nothing can be hoisted or folded."""

    section: str
    macros: Mapping[str, object]
    given: Array
    expect: Callable[[npt.NDArray[np.int64], int], Array]
    """Computes what work-items, given by their numbers, have written after some iterations."""
    tolerance: float = 0.0


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
        self._reference_s: list[float] = []

    @cached_property
    def is_cpu(self) -> bool:
        return self.description.kind is DeviceKind.CPU

    @cached_property
    def host_caches(self) -> tuple[CacheFacts, ...]:
        return read_host_caches() if self.is_cpu else ()

    @cached_property
    def last_cache_bytes(self) -> int:
        """Size of the largest reported cache; a guess on other devices."""
        sizes = [cache.size_bytes.value for cache in self.host_caches if cache.size_bytes]
        return max(sizes, default=2**26)

    @cached_property
    def launch_overhead_s(self) -> float:
        return self.session.trial.launch_overhead_s

    @cached_property
    def units(self) -> int:
        """Compute units at work at once: rusticl reports 8 on two cores, and has two threads."""
        is_known = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1
        units = self.description.compute_units
        return max(1, min(units, cores)) if self.is_cpu else units

    @cached_property
    def warp_width(self) -> int:
        if self.is_cpu:
            return 1
        what, device = "PREFERRED_WORK_GROUP_SIZE_MULTIPLE", self.session.device
        return max(1, int(ask_kernel(self.build("idle"), what, device)))

    def build(self, name: str, macros: Mapping[str, object] | None = None) -> cl.Kernel:
        """Build a kernel of `microbenchmarks.cl` that macros complete; its section has its name."""
        defined = {name.upper(): 1, **(macros or {})}
        source = "".join(f"#define {macro} {text}\n" for macro, text in defined.items())
        program = self.session.program(source + read_source("microbenchmarks.cl"), ())
        return cl.Kernel(program, f"kc_{name}")

    def buffer(self, content: int | Array) -> cl.Buffer:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        array = np.zeros(content, dtype=np.uint8) if isinstance(content, int) else content
        return cl.Buffer(self.session.context, flags, hostbuf=np.ascontiguousarray(array))

    def read(self, buffer: cl.Buffer, dtype: npt.DTypeLike, count: int) -> Array:
        content = np.empty(count, dtype=dtype)
        cl.enqueue_copy(self.session.queue, content, buffer)
        return content

    def time(self, kernel: cl.Kernel, launch: Launch, *arguments: object) -> float:
        """Time one launch, in seconds above 0; by the host's clock less an empty one's time. It
        takes integers as 32-bit ones, and the caller keeps buffers alive."""
        known = [np.int32(one) if isinstance(one, int) else one for one in arguments]
        kernel.set_args(*known)  # type: ignore[arg-type]  # pyopencl leaves local memory out
        sizes = (launch.global_size,), (launch.local_size,)
        start = partial(cl.enqueue_nd_range_kernel, self.session.queue, kernel, *sizes)
        seconds = self.session.timer.by_clock(start)
        if not self.session.uses_event_timer:
            seconds -= self.launch_overhead_s
        self.session.note_busy()
        return max(seconds, 1e-9)

    def open_row(
        self, row: Row, check: Launch, most_items: int = 0
    ) -> Callable[[Launch, int], float]:
        """Build a row, check it against numpy by a launch of three iterations; give what times it
        over some iterations."""
        kernel, given = self.build(row.section, row.macros), self.buffer(row.given)
        dtype, items = row.given.dtype, check.global_size
        out = self.buffer(max(most_items, items) * dtype.itemsize)

        def time_row(launch: Launch, iterations: int) -> float:
            memory = [cl.LocalMemory(launch.local_bytes)] if launch.local_bytes else []
            return self.time(kernel, launch, out, given, *memory, iterations)

        time_row(check, 3)
        expected = row.expect(np.arange(items), 3).astype(dtype)
        check_result(self.read(out, dtype, items), expected, row.tolerance)
        return time_row

    def measure_row(self, row: Row, launch: Launch) -> tuple[Measured, int]:
        measured, iterations = self.measure_loop(partial(self.open_row(row, launch), launch))
        return measured, launch.global_size * iterations

    def measure(self, run: Callable[[], float]) -> Measured:
        """Repeat a run until its mean is known well; those beside a reference more than 10 % slower
        than usual are thrown away, up to as many as may count."""
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
            if len(kept) >= FEWEST_REPEATS:
                # The 95 % interval of the mean; the paper has a run's.
                half_s = 1.96 * float(np.std(kept, ddof=1)) / math.sqrt(len(kept))
                if half_s <= self.narrow * float(np.mean(kept)):
                    break
        if len(kept) < FEWEST_REPEATS:  # slow all the time: that is how the device is now
            kept += slow
        # How much the device's speed drifts: 1.96 standard deviations of the logarithms of medians
        # of 20 runs, between 3 %, which a short series cannot show, and 5 %: other users are no
        # drift.
        spread, blocks = LEAST_SPREAD, len(self._reference_s) // 20
        if blocks >= 5:
            medians = np.median(np.reshape(self._reference_s[: blocks * 20], (blocks, 20)), axis=1)
            spread = min(max(1.96 * float(np.std(np.log(medians), ddof=1)), spread), 0.05)
        return summarise(kept, spread=spread)

    def measure_loop(
        self, run: Callable[[int], float], most: int = MOST_ITERATIONS
    ) -> tuple[Measured, int]:
        iterations = self.prove_work(run, self.choose_length(run, most=most), most=most)
        return self.measure(lambda: run(iterations)), iterations

    def choose_length(
        self,
        run: Callable[[int], float],
        target_s: float | None = None,
        most: int = MOST_ITERATIONS,
    ) -> int:
        """Choose how many iterations make a run last so long, at least ten launches."""
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
        """Raise unless time grows from a quarter to half to all iterations; try up to `most`, as a
        neighbour may have taken the time by which the count was chosen."""
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


def read_host_caches(folder: Path = _HOST_CACHES) -> tuple[CacheFacts, ...]:
    """Read this host's data and unified caches, nearest first; none where Linux does not say."""
    caches = []
    for index in sorted(folder.glob("index*")):

        def report(name: str, index: Path = index) -> _Reported:
            text = read_told(index / name)
            number = re.fullmatch(r"(\d+)([KMG]?)", text)
            value = int(number[1]) * 1024 ** " KMG".index(number[2] or " ") if number else 0
            if name == "shared_cpu_list":  # such as 0-3,8
                ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
                value = sum(int(last or first) - int(first) + 1 for first, last in ranges)
            origin = str(index)
            return Trait(value=value, source=TraitSource.REPORTED, origin=origin) if value else None

        level, size = report("level"), report("size")
        if read_told(index / "type") != "Instruction" and level and size:
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
