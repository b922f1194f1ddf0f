"""The devices that share a launch, as the host sees them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import IO, Protocol, Self, cast

from kernelcast.balancing.messages import Command, Failed, Prepare, Reply
from kernelcast.balancing.settings import DevicePlace
from kernelcast.balancing.shared_memory import SharedMemory
from kernelcast.records.errors import EstimateTimeoutError, KernelcastError, KernelRunError
from kernelcast.workers.deaths import explain_death

_AFTER_A_STOP_S = 5.0
"""A machine that was stopped for a while, as virtual ones are, has let its clock run and its
processes not: silence by the clock is none before they had this time to speak."""


class Crew(Protocol):
    """Devices, by their number, that take commands and answer each in its time."""

    @property
    def size(self) -> int:
        """Number of devices, those that have failed included."""
        ...

    def now_s(self) -> float:
        """Give the time by the clock of the replies."""
        ...

    def send(self, device: int, command: Command) -> None:
        """Give a device a command; it does them one after the other."""
        ...

    def receive(self) -> tuple[int, Reply]:
        """Wait for the next reply; a device that has failed for good says nothing more."""
        ...

    def rest(self, device: int) -> None:
        """Have a device stop where it is, so that it takes nothing from the others."""
        ...

    def wake(self, device: int) -> None:
        """Have it go on."""
        ...


@dataclass(slots=True)
class _Member:
    """One process, and what it is connected by."""

    place: DevicePlace
    process: subprocess.Popen[bytes]
    channel: Connection
    memory: socket.socket
    errors: IO[bytes]
    is_alive: bool = True
    is_resting: bool = False


class ProcessCrew:
    """A crew of child processes, one per device.

    Parameters
    ----------
    places : sequence of DevicePlace
        The devices; ids in full.
    timeout_s : float
        Silence that counts as failure, in seconds.

    Notes
    -----
    A context manager; at its end the processes are gone.
    """

    def __init__(self, places: Sequence[DevicePlace], *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._members: list[_Member] = []
        self._overdue: list[tuple[int, Reply]] = []
        try:
            for place in places:
                self._members.append(_start(place))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self._members)

    def now_s(self) -> float:
        """Give the time; Linux gives all processes the same."""
        return time.monotonic()

    def is_alive(self, device: int) -> bool:
        """Tell whether a device has not failed."""
        return self._members[device].is_alive

    def send(self, device: int, command: Command) -> None:
        """Give a device a command."""
        self._send(device, command, None)

    def send_memory(self, device: int, command: Prepare, memory: SharedMemory) -> None:
        """Give a device a command with new shared memory."""
        self._send(device, command, memory)

    def receive(self) -> tuple[int, Reply]:
        """Wait for the next reply."""
        if self._overdue:
            return self._overdue.pop(0)
        channels = {id(one.channel): n for n, one in enumerate(self._members) if one.is_alive}
        listened = [self._members[n].channel for n in channels.values()]
        ready = wait(listened, self._timeout_s)
        ready = ready or wait(listened, min(_AFTER_A_STOP_S, self._timeout_s))
        if not ready:
            self._give_up([n for n in channels.values() if not self._members[n].is_resting])
            return self._overdue.pop(0)
        device = channels[id(ready[0])]
        return device, self._read(device)

    def rest(self, device: int) -> None:
        """Stop a device's process where it is."""
        self._members[device].is_resting = True
        self._signal(device, signal.SIGSTOP)

    def wake(self, device: int) -> None:
        """Have it go on."""
        self._members[device].is_resting = False
        self._signal(device, signal.SIGCONT)

    def close(self) -> None:
        """End the processes."""
        for one in self._members:
            one.is_alive = False
            one.channel.close()
            one.memory.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()
            one.errors.close()
            if one.process.stdin is not None:
                one.process.stdin.close()
        self._members = []

    def _signal(self, device: int, number: signal.Signals) -> None:
        one = self._members[device]
        if one.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.process.pid, number)

    def _send(self, device: int, command: Command, memory: SharedMemory | None) -> None:
        one = self._members[device]
        try:
            if memory is not None:
                socket.send_fds(one.memory, [b"m"], [memory.descriptor])
            one.channel.send(command)
        except OSError:  # it has died; what it left to say comes first, then its end
            return

    def _read(self, device: int) -> Reply:
        one = self._members[device]
        try:
            reply = cast("Reply", one.channel.recv())
        except (EOFError, OSError):
            reply = self._fail(KernelRunError(self._explain(one)))
        if isinstance(reply, Failed) and reply.is_final:
            self._end(one)
        return reply

    @staticmethod
    def _explain(one: _Member) -> str:
        return explain_death(one.process.wait(), one.errors, one.place.device_id)

    def _give_up(self, devices: Sequence[int]) -> None:
        """End devices that are silent for too long."""
        for device in devices:
            one = self._members[device]
            msg = (
                f"{one.place.device_id}: no sign of life for {self._timeout_s:g} s; the kernel may "
                "never end. Its process was stopped; allow more time if it is only slow"
            )
            self._end(one)
            self._overdue.append((device, self._fail(EstimateTimeoutError(msg))))

    def _fail(self, error: KernelcastError) -> Failed:
        now_s = self.now_s()
        return Failed(start_s=now_s, end_s=now_s, error=error)

    @staticmethod
    def _end(one: _Member) -> None:
        one.is_alive = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.process.pid, signal.SIGKILL)
        one.process.wait()


def _start(place: DevicePlace) -> _Member:
    """Start a process in a session of its own."""
    ours, theirs = socket.socketpair()
    memory, its_memory = socket.socketpair()
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the crew
    with theirs, its_memory:
        descriptors = (theirs.fileno(), its_memory.fileno())
        process = subprocess.Popen(
            [
                sys.executable, "-P", "-m", "kernelcast.balancing.worker_main",
                *map(str, descriptors),
            ],
            stdin=subprocess.PIPE,  # the lifeline
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=descriptors,
            env={**os.environ, **place.environment},
            start_new_session=True,  # Ctrl-C reaches us first; we end the child
        )  # fmt: skip
    channel = Connection(ours.detach())
    channel.send((place.device_id, place.cores, place.compute_units))
    return _Member(place, process, channel, memory, errors)
