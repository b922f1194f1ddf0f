"""Boxes of a launch's work-groups run for real, on buffers of the device's own."""

import time
from collections.abc import Collection, Sequence
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import Argument, BufferArgument, LocalArgument
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.discovery import choose_device, describe_device, find_devices
from kernelcast.sampling.launch import enqueue_window, explained_errors
from kernelcast.sampling.launch_limits import check_launch, check_memory, choose_local_size
from kernelcast.sampling.opencl import cl, map_memory, unmap_memory
from kernelcast.sampling.scratch import KernelArgument
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import check_arguments

Bytes = npt.NDArray[np.uint8]
Content = npt.NDArray[Any] | np.generic | LocalArgument


class PartialLaunch:
    """A kernel with index space and buffers of its own, run box by box: each work-group once, and
    its results are read back. Arrays are copied, but for those at places in `in_place`, which the
    kernel only reads or only writes: a device that works in the host's memory uses, and changes,
    them where they lie."""

    def __init__(
        self,
        session: DeviceSession,
        kernel: Kernel,
        ndrange: NDRange,
        arguments: Sequence[Argument],
        contents: Sequence[Content],
        in_place: Collection[int] = (),
    ) -> None:
        started_s = time.monotonic()
        self._session, self.kernel = session, kernel
        device = session.description
        built = session.whole_kernel(kernel)
        check_arguments(kernel.name, built.parameters, arguments)
        self.ndrange = choose_local_size(session, built.kernel, ndrange)
        check_launch(session, built.kernel, kernel, self.ndrange)
        check_memory(device, arguments)
        self._held: list[KernelArgument] = []
        self.in_place: dict[int, npt.NDArray[Any]] = {}
        """Arrays of the buffers that are used where they lie, by position."""
        with explained_errors(kernel, device):
            self._window = session.window_kernel(kernel, self.ndrange)
            self.build_s = time.monotonic() - started_s
            for index, content in enumerate(contents):
                held: KernelArgument = content
                if isinstance(content, LocalArgument):
                    held = cl.LocalMemory(content.bytes)
                elif isinstance(content, np.ndarray) and isinstance(
                    arguments[index], BufferArgument
                ):
                    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
                    if index in in_place and session.works_in_host_memory:
                        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
                        self.in_place[index] = content
                    held = cl.Buffer(session.context, flags, hostbuf=content)
                self._held.append(held)
                self._window.kernel.set_arg(index, held)
            session.queue.finish()
        self.uploaded_bytes = sum(
            one.size
            for index, one in enumerate(self._held)
            if isinstance(one, cl.Buffer) and index not in self.in_place
        )
        self.upload_s = time.monotonic() - started_s - self.build_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def run(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Run boxes one after the other; give each one's time by the host's clock, in seconds."""
        durations = []
        with explained_errors(self.kernel, self._session.description):
            for box in boxes:
                start_s = time.monotonic()
                enqueue_window(self._session.queue, self._window, self.ndrange, box)
                self._session.queue.finish()
                durations.append(time.monotonic() - start_s)
        return durations

    def read(self, index: int, spans: Sequence[tuple[int, int]], into: Bytes) -> None:
        """Copy stretches of a buffer's bytes, ascending, to the same places of an array."""
        queue, held = self._session.queue, self._held[index]
        own = self.in_place.get(index)
        with explained_errors(self.kernel, self._session.description):
            if own is not None and (own.ctypes.data, own.nbytes) == (into.ctypes.data, into.nbytes):
                # Nothing to copy; mapping is how OpenCL has the host see what was written.
                unmap_memory(queue, map_memory(queue, held, into.size, cl.map_flags.READ))
            elif len(spans) <= 64:
                for start, stop in spans:
                    cl.enqueue_copy(
                        queue, into[start:stop], held, src_offset=start, is_blocking=False
                    )
                queue.finish()
            else:
                # Many small copies take longer than one of all that lies between them; where the
                # host sees the device's memory, mapping copies nothing.
                first, size = spans[0][0], max(stop for _, stop in spans) - spans[0][0]
                mapped = map_memory(queue, held, size, cl.map_flags.READ, first_byte=first)
                for start, stop in spans:
                    into[start:stop] = mapped[start - first : stop - first]
                unmap_memory(queue, mapped)

    def release(self) -> None:
        self._session.queue.finish()
        for one in self._held:
            if isinstance(one, cl.Buffer):
                one.release()
        self._held = []
        self.in_place = {}


def open_place(device_id: str, compute_units: int | None = None) -> DeviceSession:
    """Open a device, or a part of it, without a trial: the host's clock times launches."""
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
            raise DeviceLimitError(f"{refused}: {error}") from error
        description = describe_device(device)
    return DeviceSession(description, cl.Context([device]), device)
