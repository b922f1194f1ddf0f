"""A prepared launch on a real OpenCL device: the sampling backend of every runtime we know."""

import math
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Self

import numpy as np

from kernelcast.records.contention import Contention
from kernelcast.records.device import (
    DeviceDescription,
    DeviceKind,
    SaturationPoint,
    Trait,
    TraitSource,
)
from kernelcast.records.errors import DeviceLimitError, KernelRunError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.occupancy import Limiter, compute_p_sat, find_limits
from kernelcast.sampling import read_source
from kernelcast.sampling.building import BuiltKernel, get_kernel
from kernelcast.sampling.compiler_facts import read_compiler_statistics
from kernelcast.sampling.device_check import SETTLING, TRIAL_LOCAL_SIZE
from kernelcast.sampling.host import METER
from kernelcast.sampling.opencl import OtherDriver, ask_kernel, cl, enqueue_native
from kernelcast.sampling.prelude import add_prelude, mark_line, needs_prelude, tell_launch
from kernelcast.sampling.scratch import WrittenArguments
from kernelcast.sampling.session import DeviceSession


def find_saturation(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> SaturationPoint:
    """Find P_sat of one kernel, its arguments set, at one local size: 1 on CPUs, the driver's word
    on CUDA devices, by occupancy rules where limits are published, else measured."""
    units = session.description.compute_units
    if session.description.kind is DeviceKind.CPU:
        # A thread of the processor runs one work-group, whatever that needs.
        threads = min(units, os.cpu_count() or 1)
        p_sat = Trait(value=1, source=TraitSource.COMPUTED)
        parts = threads if session.trial.is_dealt else 1
        return SaturationPoint(p_sat=p_sat, concurrency=threads, computed=1, parts=parts)
    # Count a probe's work-groups that are active together; registers count for none.
    local_bytes = ask_kernel(compiled, "LOCAL_MEM_SIZE", session.device)
    local_size = ndrange.work_group_size
    # Enough work-groups to fill the device, whatever it holds at once: 80 a unit on RDNA 1.
    groups = min(16384, session.description.compute_units * 96)
    steps = max(16, session.trial.steps // SETTLING * TRIAL_LOCAL_SIZE // local_size)
    probe = cl.Kernel(session.program(read_source("probe.cl"), ()), "kc_probe")
    flags = cl.mem_flags.READ_WRITE
    buffers = [cl.Buffer(session.context, flags, size=size) for size in (8, 4)]
    ballast: Any = cl.LocalMemory(max(1, local_bytes))  # left out of pyopencl's types
    probe.set_args(*buffers, np.int32(steps), ballast)
    counted = 1
    for _ in range(2):
        counters = np.zeros(2, dtype=np.int32)
        cl.enqueue_copy(session.queue, buffers[0], counters)
        cl.enqueue_nd_range_kernel(session.queue, probe, (groups * local_size,), (local_size,))
        cl.enqueue_copy(session.queue, counters, buffers[0])
        counted = max(counted, int(counters[1]))
    measured = max(1, math.ceil(counted / units))
    computed: tuple[int, int, Limiter] | None = None
    if isinstance(compiled, OtherDriver):
        # What the rules say is only told beside it.
        asked: Any = compiled
        reported: int = asked.count_active_work_groups(ndrange.work_group_size)
        if reported == 0:
            raise DeviceLimitError(
                f"{session.description.id}: a work-group of {ndrange.work_group_size} work-items "
                f"of kernel {kernel.name} does not fit into an empty compute unit; give a smaller "
                "local size"
            )
        with suppress(DeviceLimitError):
            computed = compute_for_kernel(session, compiled, kernel, ndrange)
        p_sat = Trait(value=reported, source=TraitSource.REPORTED)
        concurrency = reported * units
    elif computed := compute_for_kernel(session, compiled, kernel, ndrange):
        p_sat = Trait(value=computed[0], source=TraitSource.COMPUTED)
        concurrency = computed[1]
    else:
        p_sat, concurrency = Trait(value=measured, source=TraitSource.MEASURED), counted
    return SaturationPoint(
        p_sat=p_sat,
        concurrency=concurrency,
        computed=computed[0] if computed else None,
        measured=measured,
        limiter=computed[2] if computed else None,
    )


def compute_for_kernel(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> tuple[int, int, Limiter] | None:
    """Compute P_sat, active work-groups and limiter where the device's limits are published."""
    device, description = session.device, session.description
    capability = None
    if "cl_nv_device_attribute_query" in device.extensions:  # PoCL's that it drives by CUDA too
        numbers = device.compute_capability_major_nv, device.compute_capability_minor_nv
        capability = int(numbers[0]), int(numbers[1])
    limits = find_limits(device.platform.vendor, description.name, capability)
    if limits is None:
        return None
    told = read_compiler_statistics(session, kernel)
    width = told.get("wavefront_size")
    p_sat, limiter = compute_p_sat(
        limits,
        work_group_size=ndrange.work_group_size,
        local_memory_bytes=ask_kernel(compiled, "LOCAL_MEM_SIZE", device),
        sub_group_size=None
        if capability
        else width or ask_kernel(compiled, "PREFERRED_WORK_GROUP_SIZE_MULTIPLE", device),
        uses_barriers=bool(re.search(r"\bbarrier\s*\(", kernel.source)),
        registers_per_work_item=told.get("registers_per_work_item"),
        scalar_registers_per_sub_group=told.get("scalar_registers_per_sub_group"),
    )
    # Intel's driver counts EUs, several of which make up the unit.
    units = max(1, description.compute_units // limits.compute_units_sharing)
    return p_sat, p_sat * units, limiter


# What lies in the last cache of a CPU: reading it takes 0.3 to 1.2 ms.
_MOST_CACHED_BYTES = 16 << 20


class OpenCLLaunch:
    """A `PreparedLaunch` on arguments that work-groups may write to, and that it releases. Whoever
    measures holds the session's lock."""

    def __init__(
        self,
        session: DeviceSession,
        kernel: Kernel,
        ndrange: NDRange,
        arguments: WrittenArguments,
    ) -> None:
        self.session, self.kernel, self.scratch = session, kernel, arguments
        self.watching: Callable[[], AbstractContextManager[object]] = nullcontext
        """Is entered while boxes run."""
        self.device, self.ndrange = session.description, ndrange
        self._has_run = self._has_run_whole = False
        self._whole = session.whole_kernel(kernel).kernel
        with explained_errors(kernel, session.description):
            self._window = session.window_kernel(kernel, ndrange)
            for target in {id(one): one for one in (self._whole, self._window.kernel)}.values():
                self._set_arguments(target)
            known, key = session.saturation_points, (kernel.digest, ndrange.known_local_size)
            if key not in known:
                known[key] = find_saturation(session, self._whole, kernel, ndrange)
            self.saturation = known[key]

    def _set_arguments(self, kernel: cl.Kernel) -> None:
        for index, argument in enumerate(self.scratch.arguments):
            kernel.set_arg(index, argument)

    def build_copy(self, copy: Kernel, header: str, *, is_whole: bool = False) -> cl.Kernel:
        """Build a copy of the kernel behind functions of ours, since the prelude renames what they
        call, and set its arguments; one that is only run whole needs no prelude."""
        own = self.kernel
        if is_whole or not needs_prelude(own.source, copy.build_options, own.name):
            text = mark_line(copy.source_name) + copy.source
        else:
            text = add_prelude(copy.source, self.ndrange, source_name=copy.source_name)
        built = get_kernel(self.session.program(header + text, copy.build_options), copy)
        with explained_errors(copy, self.device):
            self._set_arguments(built)
        return built

    def run_copy(self, copy: cl.Kernel, box: GroupBox) -> float:
        """Run a box with a copy; give its time by the clock, in seconds."""
        self._has_run = True
        start = partial(enqueue, self.session.queue, copy, self.ndrange, box)
        return self.session.timer.by_clock(start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.scratch.release()

    @property
    def launch_overhead_s(self) -> float:
        return self.session.trial.launch_overhead_s

    def warm_up(self, box: GroupBox) -> None:
        # Once per compiled kernel and local size on this device.
        if self.ndrange.known_local_size in self._window.warmed:
            return
        begin_s = time.perf_counter()
        worked_s = sum(self.time_boxes([box]))
        beside_s = max(time.perf_counter() - begin_s - worked_s, 0.0)
        # rusticl compiles now; where events are believed, they tell of it.
        self.session.building_s += 0.0 if self.session.uses_event_timer else beside_s
        self.session.trials_s += worked_s
        self._has_run = False  # its work-group is not sampled again
        self._window.warmed.add(self.ndrange.known_local_size)

    def settle(self, *, keeps_contents: bool = False) -> None:
        if self._has_run_whole or (self._has_run and not keeps_contents):
            self._refresh()
        self.session.settle()
        # Buffers lie in caches when the launch is repeated, and else not at a sample.
        if self.session.works_in_host_memory:
            buffers = self.scratch.whole_buffers
            if sum(size for _, size in buffers) <= _MOST_CACHED_BYTES:
                self.session.touch(buffers, 64)

    def _refresh(self) -> None:
        self.scratch.refresh()
        self._has_run = self._has_run_whole = False

    def prepare(self, boxes: Sequence[GroupBox]) -> None:
        """Have in the buffers what boxes touch, which are run next."""
        self.scratch.prepare(boxes)
        self._has_run = True

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        self.prepare(boxes)
        start = partial(enqueue_window, self.session.queue, self._window, self.ndrange)
        with self.watching(), explained_errors(self.kernel, self.device):
            starts = [partial(start, box) for box in boxes]
            durations = self.session.timer.by_work(starts, self.ndrange.work_group_count)
        self.session.note_busy()
        return durations

    def measure_contention(self) -> Contention | None:
        METER.note(self.device)
        return METER.measure(self.device.id)

    def time_whole(self, begin: Callable[[], object] = lambda: None) -> float:
        self._refresh()
        self.scratch.prepare_whole()
        self._has_run = self._has_run_whole = True
        begin()
        with explained_errors(self.kernel, self.device):
            return self.session.timer.by_clock(
                partial(enqueue, self.session.queue, self._whole, self.ndrange)
            )


def enqueue(
    queue: cl.CommandQueue, kernel: cl.Kernel, ndrange: NDRange, box: GroupBox | None = None
) -> cl.Event:
    """Start a launch, or a box of it with a kernel that cannot tell or has been told."""
    offset, size = ndrange.global_offset, ndrange.global_size
    if box is not None:
        offset, size = ndrange.work_items_of(box)
    begin = offset if any(offset) else None
    return cl.enqueue_nd_range_kernel(queue, kernel, size, ndrange.known_local_size, begin)


def enqueue_window(
    queue: cl.CommandQueue, window: BuiltKernel, ndrange: NDRange, box: GroupBox
) -> cl.Event:
    """Start a box of a launch's work-groups with a kernel of `DeviceSession.window_kernel`."""
    offset, size = ndrange.work_items_of(box)
    kernel = window.kernel
    if isinstance(kernel, OtherDriver):
        other: Any = kernel
        event: cl.Event = other.launch(queue, ndrange, offset, size)
        return event
    if window.hidden_from is not None:
        for index, number in enumerate(tell_launch(ndrange, box), window.hidden_from):
            kernel.set_arg(index, np.uint64(number))
    local_size = ndrange.known_local_size
    return enqueue_native(queue, kernel, size, local_size, offset if any(offset) else None)


@contextmanager
def explained_errors(kernel: Kernel, device: DeviceDescription) -> Iterator[None]:
    try:
        yield
    except cl.MemoryError as error:
        msg = f"{device.id}: out of memory for kernel {kernel.name}: {error}; predict a smaller one"
        raise DeviceLimitError(msg) from error
    except cl.Error as error:
        if error.code == cl.status_code.INVALID_WORK_GROUP_SIZE:
            raise DeviceLimitError(
                f"{device.id}: the driver refuses the local size for kernel {kernel.name}: {error}"
            ) from error
        msg = f"{device.id}: kernel {kernel.name} could not be run: {error}"
        raise KernelRunError(msg) from error
