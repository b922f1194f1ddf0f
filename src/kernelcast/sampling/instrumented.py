"""Runs instrumented copies of kernels, which count, or note when work-groups begin and end, and
reads off what that tells; where there is no clock, growing launches are timed.

Traces are arrays of one entry per work-group, in the order of their numbers.

Intel's runtime declares `clock_read_device` from ``-cl-std=CL2.0`` on, without any pragma or
feature macro, and counts nanoseconds in steps of 10. Of the cycle counter one must know where
it works: Mesa's compiler ends the process that names it.
"""

import heapq
import math
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import (
    CompileError,
    DeviceError,
    DeviceLimitError,
    KernelRunError,
)
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.software_counters import (
    CounterSample,
    InstrumentedKernel,
    RecordedAddresses,
)
from kernelcast.records.work_group_trace import Staircase, StepTimes, Timeline
from kernelcast.sampling import read_source
from kernelcast.sampling.launch import OpenCLLaunch, explained_errors
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.plan import box_near
from kernelcast.sampling.session import DeviceSession

_HAS_CYCLE_COUNTER = ("Portable Computing Language", "Intel(R) OpenCL")
_X86 = ("x86_64", "AMD64")
_READINGS = 256

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


class KernelClock(NamedTuple):
    name: str
    macro: str
    """Chooses in `sources/trace.cl` what defines ``kc_clock`` and ``kc_unit``, the compute unit
    that a work-item runs on."""
    build_options: tuple[str, ...] = ()
    tells_unit: bool = False
    counts_cycles: bool = False
    """Whether a tick is a processor's cycle; else about a nanosecond is taken as exactly one."""
    tick_s: float = 0.0
    resolution_s: float = 0.0
    """Tick and least difference, as `check_clock` found them."""

    @property
    def source(self) -> str:
        return f"#define {self.macro}\n{read_source('trace.cl')}"


def list_clocks(description: DeviceDescription, options: Sequence[str]) -> list[KernelClock]:
    """List the clocks that a device is known to have, best first."""
    language = re.search(r"-cl-std=CL(?P<version>[\d.]+)", " ".join(options))
    is_old = language is not None and float(language["version"][:3]) < 2
    is_x86 = description.kind is DeviceKind.CPU and platform.machine() in _X86
    needed = () if language else ("-cl-std=CL3.0",)
    has = description.extensions.__contains__
    conditions = {
        KernelClock("cl_khr_kernel_clock", "KC_DEVICE_CLOCK", needed):
            has("cl_khr_kernel_clock") and not is_old,
        KernelClock("PTX globaltimer", "KC_PTX", tells_unit=True):
            has("cl_nv_device_attribute_query"),
        KernelClock("AMD real time", "KC_REAL_TIME"): has("cl_amd_device_attribute_query"),
        KernelClock("cycle counter", "KC_CYCLES", counts_cycles=True):
            is_x86 and description.platform in _HAS_CYCLE_COUNTER,
    }  # fmt: skip
    return [clock for clock, is_there in conditions.items() if is_there]


def check_clock(session: DeviceSession, clock: KernelClock) -> KernelClock:
    """Read a clock twice some 50 ms apart; add its tick and the least difference, in seconds."""
    source = f"#define KC_CHECKS_CLOCK\n{clock.source}"
    kernel = cl.Kernel(session.program(source, clock.build_options), "kc_read_clock")
    buffer = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size=8 * _READINGS)
    kernel.set_args(buffer, np.int32(_READINGS))

    def read() -> tuple[float, float, Integers]:
        """Read in several launches; give the one whose moment the host knows best."""
        launches = []
        for _ in range(5):  # a busy host may lose milliseconds in any but the shortest
            readings = np.zeros(_READINGS, dtype=np.uint64)
            session.queue.finish()
            begin_s = time.perf_counter()
            cl.enqueue_nd_range_kernel(session.queue, kernel, (1,), (1,))
            session.queue.finish()
            end_s = time.perf_counter()
            cl.enqueue_copy(session.queue, readings, buffer)
            launches.append((end_s - begin_s, (begin_s + end_s) / 2, readings.astype(np.int64)))
        return min(launches, key=lambda one: one[0])

    read()  # the first launch compiles
    _, first_s, first = read()
    time.sleep(0.05)
    _, second_s, second = read()
    buffer.release()
    changes = np.diff(np.concatenate([first, second]))
    if (changes < 0).any() or not (changes > 0).any() or second[-1] == first[-1]:
        msg = f"the clock {clock.name} stands still or goes backwards ({first[:4].tolist()} ...)"
        raise KernelRunError(msg)
    tick_s = (second_s - first_s) / float((second - first).mean())
    if not clock.counts_cycles and abs(tick_s / 1e-9 - 1) < 0.02:
        tick_s = 1e-9
    return clock._replace(tick_s=tick_s, resolution_s=int(changes[changes > 0].min()) * tick_s)


Marked: TypeAlias = tuple[KernelClock, cl.Kernel]


def build_marked(launch: OpenCLLaunch, traced: Kernel, box: GroupBox) -> tuple[Marked | None, str]:
    """Build the copy that has marks with the best clock that works; say why this one."""
    obstacles, is_whole = [], box.shape == launch.ndrange.group_counts
    for clock in list_clocks(launch.device, traced.build_options):
        try:
            checked = check_clock(launch.session, clock)
            options = (*traced.build_options, *clock.build_options)
            kernel = launch.build_copy(
                replace(traced, build_options=options), clock.source, is_whole=is_whole
            )
        except (CompileError, DeviceError) as error:
            obstacles.append(f"{clock.name}: {str(error).splitlines()[0]}")
            continue
        return (checked, kernel), "; ".join(["the device has a clock", *obstacles])
    return None, "; ".join(obstacles) or "the device has no clock that kernels can read"


def trace_box(launch: OpenCLLaunch, marked: Marked, box: GroupBox) -> Timeline:
    """Run the marked kernel, and the unmarked one for comparison, twice in turn."""
    session, (clock, kernel) = launch.session, marked
    ticks = np.zeros((box.work_group_count, 3), dtype=np.int64)  # begin, end, unit
    plain_s = launch_s = 0.0
    with explained_errors(launch.kernel, launch.device):
        buffer = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size=ticks.nbytes)
        try:
            kernel.set_arg(len(launch.scratch.arguments), buffer)
            # Compiles, where a runtime does that at the first launch.
            launch.run_copy(kernel, GroupBox(start=box.start, shape=(1,) * len(box.shape)))
            for _ in range(2):
                launch.settle()
                [plain_s] = launch.time_boxes([box])
                launch.settle()
                cl.enqueue_copy(session.queue, buffer, np.zeros_like(ticks))
                launch_s = launch.run_copy(kernel, box)
                if plain_s > 5.0:
                    break
            cl.enqueue_copy(session.queue, ticks, buffer)
        finally:
            session.queue.finish()
            buffer.release()
    missing = np.flatnonzero((ticks[:, :2] == 0).any(axis=1))
    if missing.size:
        msg = f"work-group {missing[0]} left no mark; the kernel was not traced as a whole"
        raise KernelRunError(msg)
    seconds = (ticks[:, :2] - ticks[:, 0].min()) * clock.tick_s
    starts, finishes = seconds[:, 0], seconds[:, 1]
    lanes = ticks[:, 2] if clock.tells_unit else pack_lanes(starts, finishes)
    return Timeline(
        starts_s=tuple(starts.tolist()),
        finishes_s=tuple(finishes.tolist()),
        lanes=tuple(lanes.tolist()),
        lanes_are_compute_units=clock.tells_unit,
        waves=tuple(find_waves(starts, finishes).tolist()),
        clock=clock.name,
        resolution_s=clock.resolution_s,
        launch_s=launch_s,
        plain_s=float(plain_s),
    )


def time_steps(launch: OpenCLLaunch) -> StepTimes:
    """Time launches of 1, 2, 3, ... work-groups in turn; give each one's median."""
    counts = launch.ndrange.group_counts
    # Up to three waves, as the paper's sampling points, in at most 32 launches.
    most = min(max(16, 3 * launch.saturation.concurrency), math.prod(counts))
    stride = math.ceil(most / 32)
    found = {box_near(0, number, counts) for number in range(stride, most + 1, stride)}
    boxes = sorted(found, key=lambda box: box.work_group_count)
    launch.warm_up(boxes[0])
    rounds: list[list[float]] = []
    begin_s = time.perf_counter()
    while len(rounds) < 3 or (len(rounds) < 15 and time.perf_counter() - begin_s < 10.0):
        launch.settle()
        # Up and down in turn, so that a slow drift hits small and large launches alike.
        step = -1 if len(rounds) % 2 else 1
        rounds.append(launch.time_boxes(boxes[::step])[::step])
    sizes = tuple(box.work_group_count for box in boxes)
    medians = tuple(float(one) for one in np.median(rounds, axis=0))
    _, has_steps = find_steps(sizes, medians)
    return StepTimes(work_groups=sizes, times_s=medians, has_steps=has_steps)


def count_active(starts_s: Floats, finishes_s: Floats) -> tuple[Floats, Integers]:
    """Count the work-groups that are active from each moment on at which that changes."""
    times = np.concatenate([starts_s, finishes_s])
    changes = np.repeat(np.array([1, -1]), len(starts_s))
    order = np.lexsort((changes, times))
    # At time 0 nothing has begun: a work-group too short for the clock would count below zero.
    return times[order], np.maximum(np.cumsum(changes[order]), 0)


def average_active(starts_s: Floats, finishes_s: Floats, *, bins: int) -> tuple[Floats, Floats]:
    """Average the active work-groups over equal spans; give edges in seconds too."""
    times, active = count_active(starts_s, finishes_s)
    if times[-1] <= times[0]:  # shorter than the clock's tick
        return np.full(bins + 1, times[0]), np.zeros(bins)
    work = np.concatenate([[0.0], np.cumsum(active[:-1] * np.diff(times))])
    edges = np.linspace(times[0], times[-1], bins + 1)
    return edges, np.diff(np.interp(edges, times, work)) / np.diff(edges)


def find_concurrency(starts_s: Floats, finishes_s: Floats) -> int:
    return max(1, int(count_active(starts_s, finishes_s)[1].max()))


def find_waves(starts_s: Floats, finishes_s: Floats) -> Integers:
    """Find each one's wave: a start after the first finish of a wave opens the next."""
    waves = np.zeros(len(starts_s), dtype=np.int64)
    wave, first_finish_s = 0, math.inf
    for number in np.lexsort((finishes_s, starts_s)):
        if starts_s[number] >= first_finish_s:
            wave, first_finish_s = wave + 1, math.inf
        waves[number] = wave
        first_finish_s = min(first_finish_s, float(finishes_s[number]))
    return waves


def pack_lanes(starts_s: Floats, finishes_s: Floats) -> Integers:
    """Assign work-groups to as few lanes as hold them: that which has just done the one before,
    else the last to become free, as threads take consecutive ones."""
    lanes = np.zeros(len(starts_s), dtype=np.int64)
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    last_of: dict[int, int] = {}
    for number in np.lexsort((finishes_s, starts_s)).tolist():
        while busy and busy[0][0] <= starts_s[number]:
            free.append(heapq.heappop(busy)[1])
        lane = next((one for one in free if last_of[one] == number - 1), None)
        if lane is None:
            lane = free[-1] if free else len(busy)
        if free:
            free.remove(lane)
        lanes[number], last_of[lane] = lane, number
        heapq.heappush(busy, (float(finishes_s[number]), lane))
    return lanes


def find_run_length(starts_s: Floats, lanes: Integers) -> float:
    """Find the mean number of consecutive work-groups that a lane takes one after the other."""
    order = np.lexsort((starts_s, lanes))
    is_continued = (np.diff(order) == 1) & (np.diff(lanes[order]) == 0)
    return len(order) / (len(order) - int(is_continued.sum()))


def find_p_sat(
    starts_s: Floats, finishes_s: Floats, lanes: Integers, *, compute_units: int, knows_units: bool
) -> int:
    """Find the most work-groups that are active at once on one compute unit."""
    if not knows_units:
        return math.ceil(find_concurrency(starts_s, finishes_s) / compute_units)
    return max(
        find_concurrency(starts_s[lanes == lane], finishes_s[lanes == lane])
        for lane in np.unique(lanes)
    )


def find_staircase(
    starts_s: Floats, finishes_s: Floats, waves: Integers, units: Integers | None
) -> Staircase:
    """Tell whether work-groups of a unit, or of a wave, that begin together end in turn: in the
    median set by 1.25 times, and mostly by their numbers."""
    ratios, orders = [], []
    keys = np.stack([waves, np.zeros_like(waves) if units is None else units])
    order = np.lexsort((np.arange(len(waves)), *keys))
    changes = (np.diff(keys[:, order]) != 0).any(axis=0)
    for members in np.split(order, np.flatnonzero(changes) + 1):
        starts, durations = starts_s[members], (finishes_s - starts_s)[members]
        shortest_s = durations.min()
        # Starts closer than half of the shortest duration are one begin.
        if len(members) < 2 or shortest_s <= 0 or np.ptp(starts) > 0.5 * shortest_s:
            continue
        ratios.append(durations.max() / shortest_s)
        # The table of pairs grows with the square.
        picked = np.linspace(0, len(members) - 1, min(len(members), 256)).astype(int)
        ends = finishes_s[members][picked]
        # Kendall's tau of number and finish: 1 if each ends after all with lower numbers.
        later = np.sign(ends[None, :] - ends[:, None])
        orders.append(np.triu(later, 1).sum() / (len(ends) * (len(ends) - 1) / 2))
    if not ratios:
        return Staircase.NOT_APPLICABLE
    # The paper's example takes "almost double the time"; a quarter is more than noise does.
    is_staircase = np.median(ratios) >= 1.25 and np.median(orders) >= 0.5
    return Staircase.YES if is_staircase else Staircase.NO


def find_steps(work_groups: Sequence[int], times_s: Sequence[float]) -> tuple[int, bool]:
    """Fit ``a + b * ceil(n / width)``; give the width, and whether it beats a line."""
    if len(work_groups) < 3:  # two points lie on any line
        return 1, False
    counts, times = np.asarray(work_groups), np.asarray(times_s, dtype=float)
    errors = {}
    for width in range(1, int(counts.max()) // 2 + 1):
        steps = np.ceil(counts / width)
        slope, intercept = np.polyfit(steps, times, 1)
        error = float(np.sum((times - slope * steps - intercept) ** 2))
        errors[width] = error if slope > 0 else math.inf
    width = min(errors, key=errors.__getitem__, default=1)
    # Less growth than by half may be noise alone; steps must explain it twice as well as a line.
    grows = bool(times.max() >= 1.5 * times.min())
    has_steps = width > 1 and grows and errors[width] < 0.5 * errors[1]
    return (width, True) if has_steps else (1, False)


Counted: TypeAlias = tuple[GroupBox, npt.NDArray[np.uint32], npt.NDArray[np.uint64]]
"""A box with its counters, of work-items in the order of their global ids, dimension 0 fastest, the
last one that of the log's entries; and its log: site and address of each access in the order of
execution, zeros behind the last. Shapes (counters, work-items) and (work-items, capacity, 2)."""


def count_boxes(
    launch: OpenCLLaunch,
    instrumented: InstrumentedKernel,
    built: cl.Kernel,
    boxes: Sequence[GroupBox],
    *,
    capacity: int = 0,
) -> list[Counted]:
    """Run boxes, the first from true contents; read counters and up to `capacity` addresses."""
    launch.settle()
    launch.prepare(boxes)
    queue, flags = launch.session.queue, cl.mem_flags.READ_WRITE
    first = len(launch.scratch.arguments)
    counted: list[Counted] = []
    for box in boxes:
        rows = int(np.prod(launch.ndrange.work_items_of(box)[1]))
        counts = np.empty((instrumented.counter_count + 1, rows), dtype=np.uint32)
        log = np.empty((rows, max(1, capacity), 2), dtype=np.uint64)
        most = min(1 << 30, launch.device.max_allocation_bytes)
        if log.nbytes > most:
            raise DeviceLimitError(
                f"{launch.device.id}: {rows:,} work-items with {capacity:,} addresses each "
                f"need {log.nbytes:,} bytes, more than {most:,}; record fewer work-groups"
            )
        results: tuple[npt.NDArray[np.generic], ...] = (counts, log)
        buffers = [cl.Buffer(launch.session.context, flags, size=one.nbytes) for one in results]
        built.set_arg(first + len(buffers), np.uint32(capacity))
        try:
            for index, buffer in enumerate(buffers):
                cl.enqueue_fill_buffer(queue, buffer, np.zeros(1, np.uint8), 0, buffer.size)
                built.set_arg(first + index, buffer)
            with explained_errors(launch.kernel, launch.device):
                launch.run_copy(built, box)
                for result, buffer in zip(results, buffers, strict=True):
                    cl.enqueue_copy(queue, result, buffer)
        finally:
            queue.finish()
            for buffer in buffers:
                buffer.release()
        counted.append((box, counts, log))
    return counted


def make_sample(ndrange: NDRange, counted: Sequence[Counted]) -> CounterSample:
    """Order counters by work-group and local linear id; boxes do not overlap."""
    numbers: list[int] = []
    sizes: list[int] = []
    tables: list[npt.NDArray[np.float64]] = []
    for box, own, _ in counted:
        groups, items = place_work_items(ndrange, box)
        known, inverse, present = np.unique(groups, return_inverse=True, return_counts=True)
        table = np.zeros((known.size, ndrange.work_group_size, len(own) - 1))
        table[inverse, items] = own[:-1].T
        numbers += known.tolist()
        sizes += present.tolist()
        tables.append(table)
    counts = np.concatenate(tables)
    return CounterSample(
        work_groups=tuple(numbers),
        counts=counts,
        is_exact=(True,) * counts.shape[2],
        work_items=tuple(sizes),
    )


def place_work_items(ndrange: NDRange, box: GroupBox) -> tuple[Integers, Integers]:
    """Find each work-item's work-group and local linear id, in the order of global ids."""
    _, size = ndrange.work_items_of(box)
    ids = np.indices(size[::-1], dtype=np.int64).reshape(len(size), -1)
    local = np.array(ndrange.known_local_size[::-1])[:, None]
    groups = ids // local + np.array(box.start[::-1])[:, None]
    numbers = np.ravel_multi_index(tuple(groups), ndrange.group_counts[::-1])
    return numbers, np.ravel_multi_index(tuple(ids % local), ndrange.known_local_size[::-1])


def read_log(ndrange: NDRange, counted: Sequence[Counted]) -> RecordedAddresses:
    """Read the addresses that boxes have written down; of a full log these are the first."""
    columns = [[np.empty(0, dtype=np.int64)] for _ in range(5)]
    work_groups: list[int] = []
    work_items: list[int] = []
    for box, counts, entries in counted:
        groups, items = place_work_items(ndrange, box)
        present, sizes = np.unique(groups, return_counts=True)
        work_groups += present.tolist()
        work_items += sizes.tolist()
        used = np.minimum(counts[-1], entries.shape[1])
        rows = np.repeat(np.arange(used.size), used)
        # Rows of the log are long and few: to copy their beginnings beats any index.
        log = np.concatenate([own[:count] for own, count in zip(entries, used, strict=True)])
        sites, addresses = log.astype(np.int64).T
        # How often the work-item had executed the site before; NumPy sorts short integers by their
        # digits, which is many times faster.
        is_short = int(sites.max(initial=0)) <= np.iinfo(np.uint16).max
        order = np.argsort(sites.astype(np.uint16) if is_short else sites, kind="stable")
        pairs = np.stack([rows[order], sites[order]])
        starts = np.flatnonzero(np.append(True, (np.diff(pairs) != 0).any(axis=0))[: rows.size])
        numbers = np.empty(rows.size, dtype=np.int64)
        numbers[order] = np.arange(rows.size) - np.repeat(starts, np.diff(starts, append=rows.size))
        found = sites, groups[rows], items[rows], numbers, addresses
        for column, part in zip(columns, found, strict=True):
            column.append(part)
    sites, groups, local_ids, sequences, offsets = map(np.concatenate, columns)
    return RecordedAddresses(
        work_groups=tuple(work_groups), work_items=tuple(work_items), sites=sites, groups=groups,
        local_ids=local_ids, sequences=sequences, offsets_bytes=offsets,
    )  # fmt: skip
