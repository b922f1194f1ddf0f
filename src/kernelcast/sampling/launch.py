"""A prepared launch on a real OpenCL device: the sampling backend of every runtime we know."""

import mmap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, Self, TypeAlias

from kernelcast.records.arguments import Access
from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, DispatchOrder, SaturationPoint
from kernelcast.records.errors import CompileError, DeviceLimitError, KernelRunError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import scale_time
from kernelcast.sampling.launch_limits import check_launch
from kernelcast.sampling.mapped_windows import (
    MappedForm,
    can_map,
    choose_rows,
    find_row_width,
    measure_scale,
    row_launch,
)
from kernelcast.sampling.opencl import OtherDriver, cl
from kernelcast.sampling.saturation import find_saturation
from kernelcast.sampling.scratch import KernelArgument, Reach, ScratchArguments
from kernelcast.sampling.session import DeviceSession

# What lies in the last cache of a CPU: reading it takes 0.3 to 1.2 ms.
_MOST_CACHED_BYTES = 16 << 20
_LINE_BYTES = 64

_Part: TypeAlias = tuple[cl.Kernel, tuple[int, ...], tuple[int, ...]]
"""A kernel, and the first work-item and the work-items per dimension that it runs."""


class HeldArguments(Protocol):
    """A launch's arguments, which its kernel may write to."""

    arguments: list[KernelArgument]
    """What the kernel is given."""

    @property
    def whole_buffers(self) -> list[cl.Buffer]:
        """Buffers among the arguments that hold all of their content."""
        ...

    @property
    def copied_bytes(self) -> int:
        """Bytes of buffers that had to be copied."""
        ...

    def prepare(self, boxes: Iterable[GroupBox]) -> None:
        """Have in the buffers what boxes of work-groups touch."""
        ...

    def prepare_whole(self) -> None:
        """Have in the buffers what the whole launch touches."""
        ...

    def refresh(self) -> None:
        """Give what the kernel may have changed, and may read, its true content again."""
        ...

    def release(self) -> None:
        """Give memory back; may be called again."""
        ...


class OpenCLLaunch:
    """A kernel with index space and arguments, ready to be sampled; a `PreparedLaunch`.

    Parameters
    ----------
    session : DeviceSession
        The device; its lock is held by whoever measures.
    arguments : sequence of KernelArgument
        The user's arguments; never written.
    accesses : sequence of Access or None
        What the kernel may do with each buffer.
    reach : Reach, optional
        Which bytes of buffers boxes of work-groups touch, where that is known.
    held : HeldArguments, optional
        The arguments where they are nobody else's, so that the kernel may write to them; copies
        of the user's when left out.
    """

    def __init__(
        self,
        session: DeviceSession,
        kernel: Kernel,
        ndrange: NDRange,
        arguments: Sequence[KernelArgument],
        accesses: Sequence[Access | None],
        *,
        reach: Reach | None = None,
        held: HeldArguments | None = None,
    ) -> None:
        self._session = session
        self._kernel = kernel
        self._ndrange = ndrange
        self._has_run = self._has_run_whole = False
        self._has_read_pages = False
        self._mapped: cl.Kernel | None = None
        self._scale = 1.0
        self._whole = session.whole_kernel(kernel).kernel
        check_launch(session, self._whole, kernel, ndrange)
        with explained_errors(kernel, session.description):
            built = session.window_kernel(kernel, ndrange)
            self._window, self._warmed = built.kernel, built.warmed
            self._scratch = held or self._copy_written(arguments, accesses, reach)
            for target in {id(one): one for one in (self._whole, self._window)}.values():
                self._set_arguments(target)
            self._saturation = find_saturation(session, self._whole, kernel, ndrange)

    def _copy_written(
        self,
        arguments: Sequence[KernelArgument],
        accesses: Sequence[Access | None],
        reach: Reach | None,
    ) -> HeldArguments:
        """Copy the buffers of a program; a device's own memory is left to it afterwards."""
        session = self._session
        pool = session.buffers if session.buffers.fills_in_place else None
        return ScratchArguments(
            session.queue, arguments, accesses, session.description, reach=reach, pool=pool
        )

    def _set_arguments(self, kernel: cl.Kernel) -> None:
        for index, argument in enumerate(self._scratch.arguments):
            kernel.set_arg(index, argument)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.release()

    @property
    def kernel_digest(self) -> str:
        """Identity of the kernel."""
        return self._kernel.digest

    @property
    def device(self) -> DeviceDescription:
        """The device it runs on."""
        return self._session.description

    @property
    def ndrange(self) -> NDRange:
        """The whole index space."""
        return self._ndrange

    @property
    def saturation(self) -> SaturationPoint:
        """P_sat of this kernel at this local size on this device."""
        return self._saturation

    @property
    def order(self) -> DispatchOrder:
        """Order in which the device starts work-groups."""
        order = self._session.behaviour.order
        return DispatchOrder.TILE_ROWS if find_row_width(self._ndrange, order) else order

    @property
    def launch_overhead_s(self) -> float:
        """Time of a launch that does nothing, in seconds."""
        return self._session.behaviour.launch_overhead_s

    @property
    def copied_bytes(self) -> int:
        """Bytes of user buffers that had to be copied."""
        return self._scratch.copied_bytes

    @property
    def walks_as_whole(self) -> bool:
        """Whether windows go through memory as the whole launch does.

        False before `warm_up`, and where the device cuts the index space into tiles but rows of
        work-groups cannot be mapped to them: estimates of such launches are less certain.
        """
        if self._mapped is not None or self.order is DispatchOrder.ROWS:
            return True
        return sum(count > 1 for count in self._ndrange.group_counts) <= 1

    def warm_up(self, box: GroupBox) -> None:
        """Run a box untimed, once per compiled kernel and local size on this device.

        Then windows may be launched as rows whose ids are mapped, where that was found to be the
        same code.
        """
        if self._ndrange.known_local_size not in self._warmed:
            self._prepare([box])
            begin_s = time.perf_counter()
            worked_s = sum(self.time_boxes([box]))
            beside_s = max(time.perf_counter() - begin_s - worked_s, 0.0)
            # rusticl compiles now; where events are believed, they tell of it.
            self._session.building_s += 0.0 if self._session.uses_event_timer else beside_s
            self._session.trials_s += worked_s
            self._has_run = False  # its work-group is not sampled again
            self._warmed.add(self._ndrange.known_local_size)
        self._map_windows()

    def _map_windows(self) -> None:
        """Take the mapped form that keeps the kernel's code; look for it where nobody did."""
        row_width = find_row_width(self._ndrange, self._session.behaviour.order)
        if not row_width or self._mapped is not None:
            return
        key = (self._kernel.digest, self._ndrange.known_local_size)
        forms = self._session.mapped_forms
        if key not in forms:
            self._session.settle()
            forms[key] = self._find_mapped_form(row_width)
        form = forms[key]
        if form is not None:
            self._mapped = self._build_mapped(row_width, is_wide=form.is_wide)
            self._scale = form.scale

    def _find_mapped_form(self, row_width: int) -> MappedForm | None:
        """Compare mapped forms with the plain one; None where none is the same code."""
        rows = choose_rows(self._ndrange, row_width)
        for is_wide in (False, True):
            try:
                mapped = self._build_mapped(row_width, is_wide=is_wide)
            except CompileError:  # a source that names a work-item function in a way of its own
                return None
            scale = measure_scale(rows, partial(self._time_forms, mapped), self.launch_overhead_s)
            if scale is not None:
                return MappedForm(is_wide=is_wide, scale=scale)
        return None

    def _build_mapped(self, row_width: int, *, is_wide: bool) -> cl.Kernel:
        built = self._session.mapped_kernel(self._kernel, self._ndrange, row_width, is_wide=is_wide)
        self._set_arguments(built.kernel)
        return built.kernel

    def _time_forms(self, mapped: cl.Kernel, boxes: Sequence[tuple[GroupBox, bool]]) -> list[float]:
        """Time pieces of rows in their mapped or plain form."""
        forms = ((mapped if is_mapped else self._window, box) for box, is_mapped in boxes)
        launches = [(form, *self._ndrange.work_items_of(box)) for form, box in forms]
        durations = self._time([box for box, _ in boxes], launches)
        self._session.trials_s += sum(durations)
        return durations

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Give the copies their true content, keep the device busy until it runs as usual."""
        if self._has_run_whole or (self._has_run and not keeps_contents):
            self._refresh()
        self._session.settle()
        if self._session.works_in_host_memory:
            self._read_buffers()

    def _read_buffers(self) -> None:
        """Read what samples would find cold and the whole launch, or its repetition, does not."""
        buffers = self._scratch.whole_buffers
        if sum(one.size for one in buffers) <= _MOST_CACHED_BYTES:
            # All of it lies in caches when the launch is repeated.
            self._session.probe.touch(buffers, _LINE_BYTES)
        elif not self._has_read_pages:
            # The copy to a new buffer leaves its pages' addresses in no processor's caches: a
            # sample would find them one by one, the whole launch finds most of them there.
            self._session.probe.touch(buffers, mmap.PAGESIZE)
        self._has_read_pages = True

    def _refresh(self) -> None:
        self._scratch.refresh()
        self._has_run = self._has_run_whole = False

    def _prepare(self, boxes: Sequence[GroupBox]) -> None:
        """Have in the copies what boxes are going to touch."""
        self._scratch.prepare(boxes)
        self._has_run = True

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Run boxes one after the other; give the seconds that each one's work takes."""
        row_width = find_row_width(self._ndrange, self._session.behaviour.order)
        launches, scales = [], []
        for box in boxes:
            kernel, where, scale = self._window, self._ndrange.work_items_of(box), 1.0
            if self._mapped is not None and can_map(box, self._ndrange, row_width):
                kernel, where = self._mapped, row_launch(box, self._ndrange)
                scale = self._scale
            launches.append((kernel, *where))
            scales.append(scale)
        return list(map(scale_time, self._time(boxes, launches), scales))

    def _time(self, boxes: Sequence[GroupBox], launches: Sequence[_Part]) -> list[float]:
        """Run launches that touch what boxes do, one after the other; give their seconds."""
        self._prepare(boxes)
        start = partial(enqueue_window, self._session.queue)
        enqueues = [
            partial(start, kernel, self._ndrange, offset, size) for kernel, offset, size in launches
        ]
        with explained_errors(self._kernel, self.device):
            durations = self._session.timer.by_work(enqueues)
        self._session.note_busy()
        return durations

    def measure_contention(self) -> Contention | None:
        """Find out what other programs leave to the device; None where nothing is seen of any."""
        return self._session.measure_contention()

    def time_whole(self) -> float:
        """Run the unchanged kernel as a whole and give its time in seconds."""
        self._refresh()
        self._scratch.prepare_whole()
        self._has_run = self._has_run_whole = True
        with explained_errors(self._kernel, self.device):
            return self._session.timer.by_clock(
                partial(enqueue, self._session.queue, self._whole, self._ndrange)
            )

    def _enqueue(
        self, kernel: cl.Kernel, offset: tuple[int, ...], size: tuple[int, ...]
    ) -> cl.Event:
        return enqueue(self._session.queue, kernel, self._ndrange, offset, size)


def enqueue(
    queue: cl.CommandQueue,
    kernel: cl.Kernel,
    ndrange: NDRange,
    offset: tuple[int, ...] | None = None,
    size: tuple[int, ...] | None = None,
) -> cl.Event:
    """Start a launch, or the part of it that `NDRange.work_items_of` gives."""
    offset = ndrange.global_offset if offset is None else offset
    return cl.enqueue_nd_range_kernel(
        queue,
        kernel,
        size or ndrange.global_size,
        ndrange.known_local_size,
        offset if any(offset) else None,
    )


def enqueue_window(
    queue: cl.CommandQueue,
    kernel: cl.Kernel,
    ndrange: NDRange,
    offset: tuple[int, ...],
    size: tuple[int, ...],
) -> cl.Event:
    """Start a part of a launch with a kernel of `DeviceSession.window_kernel`."""
    if not isinstance(kernel, OtherDriver):
        return enqueue(queue, kernel, ndrange, offset, size)
    other: Any = kernel
    event: cl.Event = other.launch(queue, ndrange, offset, size)
    return event


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
            msg = (
                f"{device.id}: the driver refuses the local size for kernel {kernel.name}: {error}"
            )
            raise DeviceLimitError(msg) from error
        msg = f"{device.id}: kernel {kernel.name} could not be run: {error}"
        raise KernelRunError(msg) from error
