"""A prepared launch on a real OpenCL device: the sampling backend of every runtime we know."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np

from kernelcast.records.arguments import Access
from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceLimitError, KernelRunError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.building import BuiltKernel
from kernelcast.sampling.launch_limits import check_launch
from kernelcast.sampling.opencl import OtherDriver, cl, enqueue_native
from kernelcast.sampling.prelude import tell_launch
from kernelcast.sampling.saturation import find_saturation
from kernelcast.sampling.scratch import KernelArgument, Reach, ScratchArguments, WrittenArguments
from kernelcast.sampling.session import DeviceSession

# What lies in the last cache of a CPU: reading it takes 0.3 to 1.2 ms.
_MOST_CACHED_BYTES = 16 << 20


class OpenCLLaunch:
    """A `PreparedLaunch`: the user's arguments are copied where the kernel may write, as `reach`
    tells of boxes, unless `held` are nobody else's. Whoever measures holds the session's lock."""

    def __init__(
        self,
        session: DeviceSession,
        kernel: Kernel,
        ndrange: NDRange,
        arguments: Sequence[KernelArgument],
        accesses: Sequence[Access | None],
        *,
        reach: Reach | None = None,
        held: WrittenArguments | None = None,
    ) -> None:
        self._session, self._kernel = session, kernel
        self.kernel_digest, self.device, self.ndrange = kernel.digest, session.description, ndrange
        self._has_run = self._has_run_whole = False
        self._whole = session.whole_kernel(kernel).kernel
        check_launch(session, self._whole, kernel, ndrange)
        with explained_errors(kernel, session.description):
            self._window = session.window_kernel(kernel, ndrange)
            # A device's own memory is left to the program afterwards.
            pool = session.buffers if session.buffers.fills_in_place else None
            self._scratch = held or ScratchArguments(
                session.queue, arguments, accesses, self.device, reach=reach, pool=pool
            )
            for target in {id(one): one for one in (self._whole, self._window.kernel)}.values():
                self._set_arguments(target)
            self.saturation = find_saturation(session, self._whole, kernel, ndrange)

    def _set_arguments(self, kernel: cl.Kernel) -> None:
        for index, argument in enumerate(self._scratch.arguments):
            kernel.set_arg(index, argument)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.release()

    @property
    def launch_overhead_s(self) -> float:
        return self._session.trial.launch_overhead_s

    @property
    def copied_bytes(self) -> int:
        return self._scratch.copied_bytes

    def warm_up(self, box: GroupBox) -> None:
        """Run a box untimed, once per compiled kernel and local size on this device."""
        if self.ndrange.known_local_size in self._window.warmed:
            return
        begin_s = time.perf_counter()
        worked_s = sum(self.time_boxes([box]))
        beside_s = max(time.perf_counter() - begin_s - worked_s, 0.0)
        # rusticl compiles now; where events are believed, they tell of it.
        self._session.building_s += 0.0 if self._session.uses_event_timer else beside_s
        self._session.trials_s += worked_s
        self._has_run = False  # its work-group is not sampled again
        self._window.warmed.add(self.ndrange.known_local_size)

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Give the copies their true content, keep the device busy until it runs as usual."""
        if self._has_run_whole or (self._has_run and not keeps_contents):
            self._refresh()
        self._session.settle()
        # Buffers lie in caches when the launch is repeated, and else not at a sample.
        if self._session.works_in_host_memory:
            buffers = self._scratch.whole_buffers
            if sum(size for _, size in buffers) <= _MOST_CACHED_BYTES:
                self._session.probe.touch(buffers, 64)

    def _refresh(self) -> None:
        self._scratch.refresh()
        self._has_run = self._has_run_whole = False

    def _prepare(self, boxes: Sequence[GroupBox]) -> None:
        self._scratch.prepare(boxes)
        self._has_run = True

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Run boxes one after the other; give the seconds that each one's work takes."""
        self._prepare(boxes)
        start = partial(enqueue_window, self._session.queue, self._window, self.ndrange)
        with explained_errors(self._kernel, self.device):
            durations = self._session.timer.by_work([partial(start, box) for box in boxes])
        self._session.note_busy()
        return durations

    def measure_contention(self) -> Contention | None:
        """Find out what other programs leave to the device; None where nothing is seen of any."""
        return self._session.measure_contention()

    def time_whole(self) -> float:
        self._refresh()
        self._scratch.prepare_whole()
        self._has_run = self._has_run_whole = True
        with explained_errors(self._kernel, self.device):
            return self._session.timer.by_clock(
                partial(enqueue, self._session.queue, self._whole, self.ndrange)
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
        for index, number in enumerate(tell_launch(ndrange, offset), window.hidden_from):
            kernel.set_arg(index, np.uint64(number))
    local_size = ndrange.known_local_size
    return enqueue_native(queue, kernel, size, local_size, offset if any(offset) else None)


@contextmanager
def explained_errors(kernel: Kernel, device: DeviceDescription) -> Iterator[None]:
    """Turn a driver's error while running into one that names kernel and device."""
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
