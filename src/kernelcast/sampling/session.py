"""One device with its context, queue and built programs, used by one measurement at a time."""

import math
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from cachetools import LRUCache, cachedmethod

from kernelcast.records.arguments import Parameter
from kernelcast.records.device import DeviceDescription, DeviceKind, SaturationPoint
from kernelcast.records.errors import (
    BrokenDeviceError,
    CompileError,
    KernelcastError,
    KernelNotFoundError,
)
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.samples import LaunchTime
from kernelcast.sampling.building import (
    BuiltKernel,
    BuiltProgram,
    find_program,
    read_kernel_source,
    take_kernel,
)
from kernelcast.sampling.device_check import (
    SETTLING,
    TRIAL_LOCAL_SIZE,
    TRIAL_SOURCE,
    DeviceTrial,
    TrialTimes,
    event_seconds,
    prepare_trial,
    recall_trial,
    set_trial,
    settle,
    try_device,
)
from kernelcast.sampling.discovery import choose_device, find_devices, list_ancestors
from kernelcast.sampling.host import TURNS, CoreTurns, read_work
from kernelcast.sampling.opencl import OtherDriver, ask_kernel, cl
from kernelcast.sampling.prelude import HIDDEN_ARGUMENTS, add_prelude, needs_prelude, pass_sizes
from kernelcast.sampling.scratch import BufferPool

Enqueue: TypeAlias = Callable[[], cl.Event]


@dataclass(slots=True)
class LaunchTimer:
    """Times launches by the clock, or by their threads' processor time where it is less: threads
    that wake or wait lengthen a launch of a millisecond by 40 % (PoCL; processor time 3 %)."""

    queue: cl.CommandQueue
    trial: DeviceTrial
    """Tells whether events are believed, and how many processors share a launch's work."""
    workers: tuple[int, ...] = ()
    note_compiled: Callable[[float], None] = lambda _: None
    """Is told of the seconds that a runtime compiled before a launch, as far as events tell."""

    def by_clock(self, enqueue: Enqueue) -> float:
        """Run a launch; return its time by the clock, in seconds, whatever happened meanwhile."""
        self.queue.finish()
        process_s, start_s = time.process_time(), time.perf_counter()
        event = enqueue()
        self.queue.finish()
        host_s = time.perf_counter() - start_s
        if not self.trial.agrees:
            return host_s
        event_s = event_seconds(event)
        beside_s = host_s - event_s
        # A launch that waits for a processor works on none meanwhile. Who compiles waits too: for
        # a linker, and for the disk that keeps what was compiled: PoCL does so (60 ms and more) for
        # each local size, and once more for launches of 65,536 work-items.
        if min(beside_s, time.process_time() - process_s) > 5e-3:
            self.note_compiled(beside_s)
        return event_s

    def by_work(self, enqueues: Sequence[Enqueue], work_groups: int) -> list[float]:
        """Run parts of a launch of so many work-groups one after the other; return the seconds that
        each one's work takes."""
        cores = self.trial.cores
        if cores is None and self.trial.agrees:
            # All at once: between launches that are waited for, the runtime's threads fall asleep
            # and each launch would pay for waking them.
            self.queue.finish()
            events = [enqueue() for enqueue in enqueues]
            self.queue.finish()
            return [event_seconds(event) for event in events]
        if cores is None:
            return [self.by_clock(enqueue) for enqueue in enqueues]
        found: list[float] = []
        with kept_apart(self.workers):
            for enqueue in enqueues:
                before = read_work(self.workers)
                clock_s = self.by_clock(enqueue)
                after = read_work(self.workers)
                times_s = [time_s - before.get(one, 0.0) for one, time_s in after.items()]
                worked_s = sum(times_s)
                # Fewer work-groups than cores keep some threads idle, or waiting.
                share_s = max(times_s, default=0.0) if work_groups < cores else worked_s / cores
                seconds = min(clock_s, share_s + self.trial.asleep_s)
                if after.keys() < {*self.workers} or worked_s <= 0:  # others work now
                    self.workers, seconds = (), clock_s
                found.append(LaunchTime(seconds, clock_s))
        return found


# Who works less of a launch only hands it on; it is looked again after so many seconds.
_WORKS, _LOOK_AGAIN_S = 0.2, 3.0
_kept: dict[int, tuple[set[int], int]] = {}
"""Threads that are kept on one processor: where they were allowed before, and how many want it."""
_kept_lock = threading.Lock()


def find_workers(run: Callable[[], object], cores: int) -> tuple[int, ...]:
    """Find the numbers of the threads that work for a device, 0 for whichever calls, by launches of
    some milliseconds; none where fewer than cores come to work, as beside other programs."""
    caller = threading.get_native_id()
    others = {thread.native_id for thread in threading.enumerate()} - {caller}
    for _ in range(5 if read_work() else 0):
        before, start_s = read_work(), time.perf_counter()
        run()
        least_s = _WORKS * (time.perf_counter() - start_s)
        worked = {
            number: seconds - before.get(number, 0.0) for number, seconds in read_work().items()
        }
        found = [number for number in worked.keys() - others if worked[number] > least_s]
        if len(found) >= cores:
            # One more may only have started the launch; it would be kept beside a worker.
            most = sorted(found, key=lambda number: -worked[number])[:cores]
            return tuple(0 if number == caller else number for number in sorted(most))
    return ()


@contextmanager
def kept_apart(threads: Sequence[int]) -> Iterator[None]:
    """Keep threads of `find_workers` on a processor each, for those that slept wake on one; who
    comes second changes nothing."""
    kept: list[int] = []
    for index, number in enumerate(threads):
        thread = number or threading.get_native_id()
        with _kept_lock, suppress(OSError):  # it has ended
            allowed, times = _kept.get(thread) or (os.sched_getaffinity(thread), 0)
            if not times:
                processors = sorted(allowed)
                os.sched_setaffinity(thread, {processors[index % len(processors)]})
            _kept[thread] = allowed, times + 1
            kept.append(thread)
    try:
        yield
    finally:
        for thread in kept:
            with _kept_lock:
                allowed, times = _kept.pop(thread)
                if times > 1:
                    _kept[thread] = allowed, times - 1
                else:
                    with suppress(OSError):  # it has ended
                        os.sched_setaffinity(thread, allowed)


_KERNELS_KEPT = 64
_WHOLE = "as it is"
# Of the trial's kernels: places that a work-item reads, and what one declares of local memory.
_PLACES_EACH, _DECLARED_BYTES = 64, 1024


class DeviceSession:
    """What is worth keeping between two estimates on a device; `lock` serialises them."""

    def __init__(
        self,
        description: DeviceDescription,
        context: cl.Context,
        device: cl.Device,
        *,
        folder: Path | None = None,
    ) -> None:
        self.description = description
        self.context = context
        self.device = device
        self.queue = cl.CommandQueue(
            context, device, properties=cl.command_queue_properties.PROFILING_ENABLE
        )
        self.lock = threading.RLock()
        self.turns = TURNS if description.kind is DeviceKind.CPU else CoreTurns()
        self.saturation_points: dict[tuple[str, tuple[int, ...]], SaturationPoint] = {}
        self.chosen_local_sizes: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.build_logs: dict[str, dict[str, int]] = {}
        self.build_times_s: dict[str, float] = {}
        """What the compiler took for each kernel as it is, by its digest."""
        self.building_s = 0.0
        """Time that building, or finding what was built, has taken so far, at launches too."""
        self.trials_s = 0.0
        """Device time of kernels' launches so far that are no samples: they warm up, or compare."""
        self._folder = folder
        self._kernels: LRUCache[tuple[str, str], BuiltKernel] = LRUCache(_KERNELS_KEPT)
        self._programs: LRUCache[Any, BuiltProgram] = LRUCache(32)
        self._refused: set[str] = set()
        """Kernels that cannot be told of the whole launch by arguments, by their digests."""
        self._limits: LRUCache[Any, tuple[tuple[int, ...], int]] = LRUCache(_KERNELS_KEPT)
        self._last_busy_s = -math.inf
        self._looked_s = math.inf
        self._settled_s = math.inf

    @cached_property
    def buffers(self) -> BufferPool:
        return BufferPool(self.context, self.queue, self.description)

    @cached_property
    def trial(self) -> DeviceTrial:
        return recall_trial(
            self.description, self._folder,
            lambda: try_device(self.description, self.queue, self._trial_kernel),
        )  # fmt: skip

    @cached_property
    def run_trial(self) -> Callable[[int], TrialTimes]:
        return prepare_trial(self.queue, self._trial_kernel)

    @property
    def uses_event_timer(self) -> bool:
        """Whether profiling events are believed; else the host clock is read around a launch."""
        return self.trial.agrees

    @cached_property
    def timer(self) -> LaunchTimer:
        """What times launches; looks for the threads of a CPU device at the first call."""
        timer = LaunchTimer(self.queue, self.trial, note_compiled=self.note_built)
        self._look_for_workers(timer)
        return timer

    def _look_for_workers(self, timer: LaunchTimer) -> None:
        # Any of the whole device's threads may work for a part of it, another at each launch.
        cores = self.trial.cores
        if cores is not None and not timer.workers and len(list_ancestors(self.device)) == 1:
            timer.workers = find_workers(lambda: self.run_trial(self.trial.steps), cores)
            self._looked_s = time.perf_counter()

    def try_out(self) -> None:
        assert self.timer
        assert self.works_in_host_memory in {True, False}
        self.settle()

    @cached_property
    def works_in_host_memory(self) -> bool:
        """Whether kernels read and write the host's arrays where these lie, tried once: runtimes
        may keep a copy until the host maps it, or refuse."""
        if self.description.kind is not DeviceKind.CPU:
            return False
        page = mmap.mmap(-1, mmap.PAGESIZE)
        marks = np.frombuffer(page, dtype=np.float32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        try:
            buffer = cl.Buffer(self.context, flags, hostbuf=marks)
            set_trial(self._trial_kernel, buffer, 0)
            sizes = marks.shape, (TRIAL_LOCAL_SIZE,)
            cl.enqueue_nd_range_kernel(self.queue, self._trial_kernel, *sizes)
            self.queue.finish()
        except cl.Error:
            return False
        is_written = bool(np.array_equal(marks, np.arange(len(marks))))
        buffer.release()
        return is_written

    @cached_property
    def _trial_kernel(self) -> cl.Kernel:
        return cl.Kernel(self.program(TRIAL_SOURCE, ()), "kc_trial")

    def touch(self, buffers: Iterable[tuple[cl.Buffer, int]], step_bytes: int) -> None:
        """Read a byte of the first bytes of buffers every so many, on all threads."""
        for buffer, size_bytes in buffers:
            places = -(-size_bytes // step_bytes)
            set_trial(
                self._trial_kernel, buffer, 0, apart=step_bytes, places=places, each=_PLACES_EACH
            )
            items = -(-places // _PLACES_EACH)
            sizes = (-(-items // TRIAL_LOCAL_SIZE) * TRIAL_LOCAL_SIZE,), (TRIAL_LOCAL_SIZE,)
            cl.enqueue_nd_range_kernel(self.queue, self._trial_kernel, *sizes)
        self.queue.finish()

    def read_local_memory(self, kernel: cl.Kernel) -> int:
        """Ask how much local memory a work-group of a kernel takes, in bytes; rusticl reports twice
        what is declared, as a kernel that declares 1 KiB tells."""
        own = cl.Kernel(self.program(TRIAL_SOURCE, ()), "kc_local_memory")
        for_own, reported = (
            int(ask_kernel(one, "LOCAL_MEM_SIZE", self.device)) for one in (own, kernel)
        )
        return reported // max(1, for_own // _DECLARED_BYTES)

    def settle(self) -> None:
        """Keep the device busy until it runs at its usual rate, unless it just was."""
        # A device that was busy so recently has not fallen asleep, in seconds.
        if time.perf_counter() - self._last_busy_s <= 0.02:
            return
        # Beside others that worked then, threads were not found.
        if time.perf_counter() - self._looked_s > _LOOK_AGAIN_S:
            self._look_for_workers(self.timer)
        # All threads of a CPU device have to be awake, each on its processor.
        trial = self.trial
        with kept_apart(self.timer.workers):
            best_s = settle(
                lambda: self.run_trial(trial.steps // SETTLING).share_of(trial.cores),
                min(self._settled_s, trial.settled_s), self.description.kind,
            )  # fmt: skip
        self._settled_s = min(self._settled_s, best_s)

    def time_reference(self) -> float:
        """Time a launch of some tenths of a millisecond by the clock."""
        return self.run_trial(self.trial.steps // SETTLING).host_s

    def note_built(self, seconds: float) -> None:
        self.building_s += seconds

    def note_busy(self) -> None:
        self._last_busy_s = time.perf_counter()

    @cachedmethod(lambda self: self._kernels, key=lambda _, kernel: (kernel.digest, _WHOLE))
    def whole_kernel(self, kernel: Kernel) -> BuiltKernel:
        program, build_s, signatures = self._build(*read_kernel_source(kernel))
        self.build_times_s.setdefault(kernel.digest, build_s)
        return take_kernel(program, kernel, parameters=signatures.get(kernel.name))

    def adopt(
        self, kernel: Kernel, program: cl.Program, parameters: tuple[Parameter, ...]
    ) -> BuiltKernel:
        """Use a caller's program for a kernel as it is: it need not be built again."""
        adopted = take_kernel(program, kernel, parameters=parameters)
        return self._kernels.setdefault((kernel.digest, _WHOLE), adopted)

    @cachedmethod(lambda self: self._limits, key=lambda _, compiled, kernel: kernel.digest)
    def ask_limits(self, compiled: cl.Kernel, kernel: Kernel) -> tuple[tuple[int, ...], int]:
        """Give the local size that a kernel requires, or zeros, and its local memory's bytes."""
        required = ask_kernel(compiled, "COMPILE_WORK_GROUP_SIZE", self.device)
        return tuple(required), self.read_local_memory(compiled)

    def window_kernel(self, kernel: Kernel, ndrange: NDRange) -> BuiltKernel:
        """Build, or find built, the kernel that runs boxes of `ndrange`: the unchanged one where it
        cannot notice the smaller launch, else one that arguments tell of the whole, else, where the
        source hides who asks for what, one that is built for `ndrange`."""
        is_other = isinstance(self.device, OtherDriver)
        if is_other or not needs_prelude(kernel.source, kernel.build_options, kernel.name):
            return self.whole_kernel(kernel)
        source = pass_sizes(kernel.source, source_name=kernel.source_name)
        if source is not None and kernel.digest not in self._refused:
            try:
                built = self._take(source, kernel)
                hidden_from = built.kernel.num_args - HIDDEN_ARGUMENTS
                if hidden_from == self.whole_kernel(kernel).kernel.num_args:
                    return replace(built, hidden_from=hidden_from)
            except (CompileError, KernelNotFoundError):
                pass
            self._refused.add(kernel.digest)
        return self._take(
            add_prelude(kernel.source, ndrange, source_name=kernel.source_name), kernel
        )

    @cachedmethod(lambda self: self._kernels, key=lambda _, source, kernel: (kernel.digest, source))
    def _take(self, source: str, kernel: Kernel) -> BuiltKernel:
        """Build a kernel of a program; its signature is not read."""
        return take_kernel(self.program(source, kernel.build_options), kernel, parameters=())

    def program(self, source: str, options: tuple[str, ...]) -> cl.Program:
        return self._build(source, options)[0]

    @cachedmethod(lambda self: self._programs)
    def _build(self, source: str, options: tuple[str, ...]) -> BuiltProgram:
        started_s = time.perf_counter()
        try:
            kept = self._folder and self._folder / "programs"
            return find_program(kept, self.context, self.device, source, options)
        finally:
            self.note_built(time.perf_counter() - started_s)


def open_session(
    description: DeviceDescription,
    device: cl.Device,
    folder: Path | None = None,
    *,
    context: cl.Context | None = None,
) -> DeviceSession:
    """Open a device, in a context of its own unless one is given, after a trial of its timer."""
    try:
        session = DeviceSession(description, context or cl.Context([device]), device, folder=folder)
        assert session.trial  # or the device does not work
    except (cl.Error, KernelcastError) as error:
        raise BrokenDeviceError(f"{description.id}: {error}") from error
    return session


def open_device(device_id: str) -> DeviceSession:
    """Open the device of an id, or of the beginning of one."""
    return open_session(*choose_device(device_id, find_devices()))
