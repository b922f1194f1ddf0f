"""The devices that share a launch, as the host sees them: a child process each."""

import contextlib
import signal
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from kernelcast.balancing.launch_buffers import (
    Collect,
    Command,
    Failed,
    Prepare,
    Reply,
    Run,
    SharedMemory,
)
from kernelcast.balancing.settings import DevicePlace
from kernelcast.records.errors import EstimateTimeoutError, KernelcastError, KernelRunError
from kernelcast.sampling.host import bind_to_cores
from kernelcast.workers.process import ChildProcess
from kernelcast.workers.protocol import ClosedError, MessageKind, Reporter, Task, read_message
from kernelcast.workers.wire import NotDecodableError, prepare

if TYPE_CHECKING:
    from kernelcast.sampling.problems import PartialLaunch
    from kernelcast.sampling.session import DeviceSession

_MODULE = "kernelcast.balancing.device_processes"
_OPEN = Task(entry=f"{_MODULE}:open_device", returns=Reply)
_ANSWER = Task(entry=f"{_MODULE}:answer", returns=Reply)


class _Device:
    """A child process and the orders whose results are still to come from it."""

    def __init__(self, device_id: str, child: ChildProcess) -> None:
        self.device_id, self.child = device_id, child
        self.expected: deque[object] = deque()
        self.is_alive = True

    def order(self, task: Task[Reply], arguments: object, *, within_s: float) -> None:
        """Send it a task; that it does not take it shows in that it never answers."""
        if self.is_alive:
            self.expected.append(arguments)
            with contextlib.suppress(TimeoutError):
                self.child.order(task, arguments, within_s=within_s)

    def read(self, *, within_s: float) -> Reply:
        """Take its next message, which has begun to arrive."""
        order = self.expected.popleft()
        try:
            frame = self.child.channel.receive(within_s=within_s)
            message = read_message(frame, returns=_ANSWER.returns, gives=_ANSWER.gives)
        except ClosedError:
            return self.fail(KernelRunError(self.child.explain_death(self.device_id, "")))
        except (NotDecodableError, TimeoutError) as error:
            msg = (
                f"{self.device_id}: the process that ran the kernel sent what is no answer: "
                f"{error}. A kernel that writes outside its buffers may do that"
            )
            return self.fail(KernelRunError(msg))
        if message.kind is MessageKind.RESULT:
            reply: Reply = message.content
            return reply
        if message.kind is MessageKind.ERROR:
            # A launch that cannot be prepared is not the end.
            return self.fail(message.content, is_final=not isinstance(order, Prepare))
        msg = f"{self.device_id}: kernelcast failed; please report:\n{message.content}"
        return self.fail(KernelcastError(msg))

    def fail(self, error: KernelcastError, *, is_final: bool = True) -> Failed:
        """End it, unless the failure is not final, and make the reply that says so."""
        if is_final:
            self.is_alive = False
            self.child.signal(signal.SIGKILL)
        now_s = time.monotonic()
        return Failed(start_s=now_s, end_s=now_s, error=error, is_final=is_final)


class DeviceProcesses:
    """Devices, by their number, in child processes that take commands and answer each in its time,
    and have `memory` in common with the host."""

    def __init__(self, places: Sequence[DevicePlace], *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._devices: list[_Device] = []
        self._overdue: list[tuple[int, Reply]] = []
        self._silent_since_s = time.monotonic()
        self.memory = SharedMemory.make()
        try:
            for place in places:
                memory = self.memory.descriptor
                child = ChildProcess.start(
                    idle_s=1e9, variables=place.environment, descriptors=(memory,)
                )
                device = _Device(place.device_id, child)
                device.order(_OPEN, (place, memory), within_s=self._timeout_s)
                self._devices.append(device)
        except BaseException:
            self.close()
            raise
        prepare(_ANSWER.returns)

    def now_s(self) -> float:
        """Tell the time by the clock of the replies; Linux has the same for all processes."""
        return time.monotonic()

    def send(self, device: int, command: Command) -> None:
        self._silent_since_s = time.monotonic()
        self._devices[device].order(_ANSWER, command, within_s=self._timeout_s)

    def owes(self, device: int) -> bool:
        return bool(self._devices[device].expected)

    def receive(self, within_s: float | None = None) -> tuple[int, Reply] | None:
        """Wait for the next reply, None where there is none within the time; silence for too long
        is one, too."""
        if self._overdue:
            return self._overdue.pop(0)
        alive = [(n, one) for n, one in enumerate(self._devices) if one.is_alive]
        channels = [one.child.channel for _, one in alive]
        patience_s = max(0.0, self._silent_since_s + self._timeout_s - time.monotonic())
        # A machine that was stopped for a while, as virtual ones are, has let its clock run and its
        # processes not: silence by the clock is none before they had this time to speak.
        waits = [patience_s, min(5.0, self._timeout_s)]
        if within_s is not None and within_s < patience_s:
            waits = [within_s]
        for wait_s in waits:
            if not any(one.is_readable() for one in channels):
                wait([one.socket for one in channels], wait_s)
            for (number, one), channel in zip(alive, channels, strict=True):
                if channel.is_readable():
                    self._silent_since_s = time.monotonic()
                    return number, one.read(within_s=self._timeout_s)
        if len(waits) == 1:
            return None
        for number, one in alive:
            msg = (
                f"{one.device_id}: no sign of life for {self._timeout_s:g} s; the kernel may "
                "never end. Its process was stopped; allow more time if it is only slow"
            )
            self._overdue.append((number, one.fail(EstimateTimeoutError(msg))))
        return self._overdue.pop(0)

    def close(self) -> None:
        for one in self._devices:
            one.is_alive = False
            one.child.end()
        self._devices = []
        self.memory.close()


_opened: "list[tuple[DeviceSession, SharedMemory]]" = []
_prepared: "list[PartialLaunch]" = []
"""What a child process has: one device, with the memory that it shares, and one launch at most."""


def open_device(order: tuple[DevicePlace, int], _: Reporter) -> Reply:
    """Open a device on its cores, with the descriptor of the memory that it shares: runtimes start
    their threads when they are loaded."""
    start_s = time.monotonic()
    place, memory = order
    bind_to_cores(place.cores)
    from kernelcast.sampling.problems import open_place

    session = open_place(place.device_id, place.compute_units)
    _opened.append((session, SharedMemory(memory)))
    return Reply(start_s=start_s, end_s=time.monotonic(), device=session.description.name)


def answer(command: Command, _: Reporter) -> Reply:
    start_s, [(session, memory)], told = time.monotonic(), _opened, dict[str, Any]()
    if isinstance(command, Run):
        _prepared[0].run(command.boxes)
    elif isinstance(command, Collect):
        for index, spans in command.spans.items():
            _prepared[0].read(index, spans, memory.view(command.targets[index]))
    elif _prepared:
        _prepared.pop().release()
    if isinstance(command, Prepare):
        from kernelcast.sampling.problems import PartialLaunch

        memory.map(command.memory_bytes)
        arrays = {index: memory.view(place) for index, place in command.buffers.items()}
        launch = PartialLaunch(session, command.problem, arrays, command.in_place)
        _prepared.append(launch)
        told = {
            "upload_s": launch.upload_s,
            "uploaded_bytes": launch.uploaded_bytes,
            "in_place": frozenset(launch.in_place),
        }
    return Reply(start_s=start_s, end_s=time.monotonic(), **told)
