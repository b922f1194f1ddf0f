"""What the child process of a device does: it takes commands, runs slabs, returns results."""

import time
from typing import TYPE_CHECKING

from kernelcast.balancing.launch_buffers import SharedMemory
from kernelcast.balancing.messages import (
    Collect,
    Collected,
    Command,
    Finish,
    MemoryRange,
    OpenDevice,
    Opened,
    Prepare,
    Prepared,
    Ran,
    Reply,
    Run,
)
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.cores import bind_to_cores
from kernelcast.workers.task import Reporter

if TYPE_CHECKING:
    from kernelcast.sampling.partial_launch import Content, PartialLaunch
    from kernelcast.sampling.session import DeviceSession


class DeviceWorker:
    """An open device, the memory that it shares with the host, and the launch that it prepared."""

    def __init__(self, session: "DeviceSession", memory: SharedMemory) -> None:
        self._session = session
        self._memory = memory
        self._launch: PartialLaunch | None = None

    def answer(self, command: Command) -> Reply:
        start_s = time.monotonic()
        if isinstance(command, Prepare):
            return self._prepare(command, start_s)
        if isinstance(command, Finish):
            self._drop()
            return Reply(start_s=start_s, end_s=time.monotonic())
        if self._launch is None:
            msg = "nothing is prepared"
            raise KernelcastError(msg)
        match command:
            case Run():
                self._launch.run([command.space.box(span) for span in command.spans])
                return Ran(start_s=start_s, end_s=time.monotonic())
            case Collect():
                for index, spans in command.spans.items():
                    self._launch.read(index, spans, self._memory.view(command.targets[index]))
                return Collected(start_s=start_s, end_s=time.monotonic())

    def _prepare(self, command: Prepare, start_s: float) -> Prepared:
        from kernelcast.sampling.partial_launch import InPlace, PartialLaunch

        self._drop()
        self._memory.map(command.memory_bytes)
        contents: list[Content] = []
        for index, one in enumerate(command.contents):
            if isinstance(one, MemoryRange):
                view = self._memory.view(one)
                contents.append(InPlace(array=view) if index in command.in_place else view)
            else:
                contents.append(one)
        launch = self._launch = PartialLaunch(
            self._session, command.kernel, command.ndrange, command.arguments, contents
        )
        return Prepared(
            start_s=start_s,
            end_s=time.monotonic(),
            upload_s=launch.upload_s,
            uploaded_bytes=launch.uploaded_bytes,
            in_place=launch.in_place,
        )

    def _drop(self) -> None:
        if self._launch is not None:
            self._launch.release()
            self._launch = None


_opened: list[DeviceWorker] = []


def open_device(order: OpenDevice, _: Reporter) -> Opened:
    """Open a device on its cores: runtimes start their threads when they are loaded."""
    start_s = time.monotonic()
    bind_to_cores(order.cores)
    from kernelcast.sampling.partial_launch import open_place

    session = open_place(order.device_id, order.compute_units)
    _opened.append(DeviceWorker(session, SharedMemory(order.memory)))
    return Opened(start_s=start_s, end_s=time.monotonic(), device=session.description.name)


def answer(command: Command, _: Reporter) -> Reply:
    if not _opened:
        msg = "the device is not open"
        raise KernelcastError(msg)
    return _opened[0].answer(command)
