"""Boxes of a launch's work-groups run for real, on buffers of the device's own."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import Argument, BufferArgument, LocalArgument
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.discovery import choose_device, describe_device, find_devices
from kernelcast.sampling.launch import enqueue_window, explained_errors
from kernelcast.sampling.launch_limits import check_launch
from kernelcast.sampling.local_size import choose_local_size
from kernelcast.sampling.mapping import map_memory, unmap_memory
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import check_arguments

_MOST_COPIES = 64

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """A buffer's content that a device may use where it lies, if it works in the host's memory."""

    array: npt.NDArray[Any]
    """The kernel only reads it, or only writes it; then it changes."""


Content = npt.NDArray[Any] | InPlace | np.generic | LocalArgument
"""A buffer's content, a scalar, or local memory."""


class PartialLaunch:
    """A kernel with index space and buffers of its own, run box by box.

    Unlike samples, what runs here counts: each work-group is to run once, and its results are
    read back.

    Parameters
    ----------
    contents : sequence of Content
        What they hold; arrays are copied to the device and not written, unless they are given to
        be used in place.
    """

    def __init__(
        self,
        session: DeviceSession,
        kernel: Kernel,
        ndrange: NDRange,
        arguments: Sequence[Argument],
        contents: Sequence[Content],
    ) -> None:
        started_s = time.monotonic()
        self._session = session
        self.kernel = kernel
        built = session.whole_kernel(kernel)
        check_arguments(kernel.name, built.parameters, arguments)
        self.ndrange = choose_local_size(session, built.kernel, ndrange)
        check_launch(session, built.kernel, kernel, self.ndrange)
        _check_room(session, arguments)
        with explained_errors(kernel, session.description):
            self._window = session.window_kernel(kernel, self.ndrange)
            self.build_s = time.monotonic() - started_s
            self._in_place = {
                index: one.array
                for index, one in enumerate(contents)
                if isinstance(one, InPlace) and session.works_in_host_memory
            }
            self._held = [
                self._put(described, one)
                for described, one in zip(arguments, contents, strict=True)
            ]
            for index, one in enumerate(self._held):
                self._window.kernel.set_arg(index, one)
            session.queue.finish()
        self.upload_s = time.monotonic() - started_s - self.build_s

    @property
    def in_place(self) -> frozenset[int]:
        """Positions of the buffers that are used where they lie."""
        return frozenset(self._in_place)

    @property
    def uploaded_bytes(self) -> int:
        """Bytes that were copied to the device."""
        return sum(
            one.size
            for index, one in enumerate(self._held)
            if isinstance(one, cl.Buffer) and index not in self._in_place
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def run(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Run boxes one after the other; give each one's time by the host's clock, in seconds.

        Raises
        ------
        DeviceError
            If the device fails; what its buffers hold is then unknown.
        """
        durations = []
        with explained_errors(self.kernel, self._session.description):
            for box in boxes:
                start_s = time.monotonic()
                enqueue_window(self._session.queue, self._window, self.ndrange, box)
                self._session.queue.finish()
                durations.append(time.monotonic() - start_s)
        return durations

    def read(self, index: int, spans: Sequence[tuple[int, int]], into: Bytes) -> None:
        """Copy stretches of a buffer's bytes to the same places of an array.

        Parameters
        ----------
        spans : sequence of (int, int)
            First byte of each stretch, and the one behind its last, ascending.
        into : ndarray of uint8
            As many bytes as the buffer has.
        """
        queue, held = self._session.queue, self._held[index]
        with explained_errors(self.kernel, self._session.description):
            if index in self._in_place and _is_same(self._in_place[index], into):
                # Nothing to copy; mapping is how OpenCL has the host see what was written.
                unmap_memory(queue, map_memory(queue, held, into.size, cl.map_flags.READ))
                return
            if len(spans) <= _MOST_COPIES:
                for start, stop in spans:
                    cl.enqueue_copy(
                        queue, into[start:stop], held, src_offset=start, is_blocking=False
                    )
                queue.finish()
                return
            # Many small copies take longer than one of all that lies between them; where the host
            # sees the device's memory, mapping copies nothing.
            first, behind = spans[0][0], max(stop for _, stop in spans)
            mapped = map_memory(queue, held, behind - first, cl.map_flags.READ, first_byte=first)
            for start, stop in spans:
                into[start:stop] = mapped[start - first : stop - first]
            unmap_memory(queue, mapped)

    def release(self) -> None:
        """Give the buffers' memory back."""
        self._session.queue.finish()
        for one in self._held:
            if isinstance(one, cl.Buffer):
                one.release()
        self._held = []
        self._in_place = {}

    def _put(self, described: Argument, content: Content) -> Any:  # noqa: ANN401 - what set_arg takes
        if isinstance(content, LocalArgument):
            return cl.LocalMemory(content.bytes)
        where = cl.mem_flags.COPY_HOST_PTR
        if isinstance(content, InPlace):
            if self._session.works_in_host_memory:
                where = cl.mem_flags.USE_HOST_PTR
            content = content.array
        if isinstance(described, BufferArgument) and isinstance(content, np.ndarray):
            flags = cl.mem_flags.READ_WRITE | where
            return cl.Buffer(self._session.context, flags, hostbuf=content)
        return content


def _is_same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return one.ctypes.data == other.ctypes.data and one.nbytes == other.nbytes


def _check_room(session: DeviceSession, arguments: Sequence[Argument]) -> None:
    device = session.description
    sizes = [one.bytes for one in arguments if isinstance(one, BufferArgument)]
    if sum(sizes) > device.global_memory_bytes or max(sizes, default=0) > (
        device.max_allocation_bytes
    ):
        msg = (
            f"{device.id}: the buffers take {sum(sizes):,} bytes, the largest "
            f"{max(sizes, default=0):,}; the device has {device.global_memory_bytes:,} and allows "
            f"{device.max_allocation_bytes:,} for one. Balance a smaller launch"
        )
        raise DeviceLimitError(msg)


def open_place(device_id: str, compute_units: int | None = None) -> DeviceSession:
    """Open a device, or a part of it, with a context of its own.

    Launches are timed by the host's clock, so no trial of the device's timer is needed.

    Parameters
    ----------
    compute_units : int, optional
        Use a sub-device of so many compute units.
    """
    description, device = choose_device(device_id, find_devices())
    if compute_units is not None:
        by_counts = cl.device_partition_property.BY_COUNTS
        refused = (
            f"{description.id}: cannot be divided into a sub-device of {compute_units} of its "
            f"{description.compute_units} compute units"
        )
        kinds = cast("list[int]", device.partition_properties)
        if by_counts not in kinds:  # rusticl has none, and crashes when it is asked for one
            raise DeviceLimitError(refused)
        try:
            # pyopencl types the list as properties only; counts stand in it too
            device = device.create_sub_devices([by_counts, compute_units, 0])[0]  # type: ignore[list-item]
        except cl.Error as error:
            msg = f"{refused}: {error}"
            raise DeviceLimitError(msg) from error
        description = describe_device(device)
    return DeviceSession(description, cl.Context([device]), device, uses_event_timer=False)
