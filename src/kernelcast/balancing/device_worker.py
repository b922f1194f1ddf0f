"""One device in a process of its own: takes commands, runs slabs, gives results back."""

import time

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
from kernelcast.balancing.shared_memory import SharedMemory
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.partial_launch import Content, InPlace, PartialLaunch, open_place
from kernelcast.sampling.session import DeviceSession


class DeviceWorker:
    """An open device, the memory that it shares with the host, and the launch that it prepared."""

    def __init__(self, session: DeviceSession, memory: SharedMemory, opened: Opened) -> None:
        self._session = session
        self._memory = memory
        self._launch: PartialLaunch | None = None
        self.opened = opened

    @classmethod
    def open(cls, order: OpenDevice) -> "DeviceWorker":
        """Open the device."""
        start_s = time.monotonic()
        session = open_place(order.device_id, order.compute_units)
        name = session.description.name
        opened = Opened(start_s=start_s, end_s=time.monotonic(), device=name)
        return cls(session, SharedMemory(order.memory), opened)

    def answer(self, command: Command) -> Reply:
        """Do what a command says."""
        start_s = time.monotonic()
        match command:
            case Prepare():
                return self._prepare(command, start_s)
            case Run():
                took_s = self._started.run([command.space.box(span) for span in command.spans])
                return Ran(
                    start_s=start_s,
                    end_s=time.monotonic(),
                    spans=command.spans,
                    durations_s=tuple(took_s),
                )
            case Collect():
                for index, spans in command.spans.items():
                    self._started.read(index, spans, self._memory.view(command.targets[index]))
                return Collected(start_s=start_s, end_s=time.monotonic())
            case Finish():
                self._drop()
                return Reply(start_s=start_s, end_s=time.monotonic())

    @property
    def _started(self) -> PartialLaunch:
        if self._launch is None:
            msg = "nothing is prepared"
            raise KernelcastError(msg)
        return self._launch

    def _prepare(self, command: Prepare, start_s: float) -> Prepared:
        self._drop()
        self._memory.map(command.memory_bytes)
        contents = [self._take(command, index) for index in range(len(command.contents))]
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

    def _take(self, command: Prepare, index: int) -> Content:
        """Give what an argument holds."""
        one = command.contents[index]
        if not isinstance(one, MemoryRange):
            return one
        view = self._memory.view(one)
        return InPlace(array=view) if index in command.in_place else view

    def _drop(self) -> None:
        if self._launch is not None:
            self._launch.release()
            self._launch = None
