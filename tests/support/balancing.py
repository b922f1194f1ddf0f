"""Devices that share a launch but exist only as formulas, with a clock of their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.launch_buffers import SharedMemory
from kernelcast.balancing.messages import (
    Collect,
    Command,
    Failed,
    Finish,
    MemoryRange,
    Prepare,
    Reply,
    Run,
)
from kernelcast.records.arguments import Argument, BufferArgument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.ndrange import GroupBox

Arrays = Sequence[Any]
Compute = Callable[[Arrays, npt.NDArray[np.int64]], None]
"""Does for numbers of work-items of a one-dimensional launch what a kernel would."""


class RanTwiceError(AssertionError):
    """Is raised when a device runs a work-group twice on the same buffers."""


@dataclass(slots=True, kw_only=True)
class FakeDevice:
    """A device whose times follow from a formula and whose kernel is a Python function."""

    compute: Compute
    item_s: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]] | float = 1e-6
    """Seconds of each work-item, or of work-items by their numbers."""
    launch_s: float = 10e-6
    """What every launch costs beside its work-items."""
    first_s: float = 0.0
    """What the first launch costs beyond that."""
    prepare_s: float = 1e-3
    """What building and taking buffers cost."""
    upload_s: float = 0.0
    """What taking them costs alone."""
    failing: Mapping[type, int] = field(default_factory=dict)
    """At which command of a kind it fails, counted from 0."""
    noise: float = 0.0
    ran: set[int] = field(default_factory=set)
    arrays: list[Any] = field(default_factory=list)
    in_place: frozenset[int] = frozenset()
    local_size: int = 1
    seen: dict[type, int] = field(default_factory=dict)
    free_s: float = 0.0
    busy_s: float = 0.0
    """What all its boxes have taken."""
    is_alive: bool = True
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @property
    def uploaded_bytes(self) -> int:
        """Bytes of the buffers that it has copied."""
        return sum(
            array.nbytes
            for index, array in enumerate(self.arrays)
            if isinstance(array, np.ndarray) and index not in self.in_place
        )

    def run(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Run boxes; give their times."""
        durations = []
        for box in boxes:
            groups = set(range(box.start[0], box.start[0] + box.shape[0]))
            if groups & self.ran:
                raise RanTwiceError(f"work-groups {sorted(groups & self.ran)[:3]} ran before")
            self.ran |= groups
            first, stop = min(groups) * self.local_size, (max(groups) + 1) * self.local_size
            items = np.arange(first, stop)
            self.compute(self.arrays, items)
            cost = self.item_s(items).sum() if callable(self.item_s) else self.item_s * items.size
            factor = float(np.exp(self.rng.normal(0.0, self.noise)))
            durations.append((self.launch_s + float(cost)) * factor + self.first_s)
            self.first_s = 0.0
        self.busy_s += sum(durations)
        return durations


class FakeDevices:
    """A devices of fake devices; time passes only while it is waited for."""

    def __init__(self, devices: Sequence[FakeDevice], *, message_s: float = 0.0) -> None:
        self.devices = list(devices)
        self._message_s = message_s
        self.is_closed = False
        self._now_s = 0.0
        self._replies: list[tuple[float, int, int, Reply]] = []
        self._count = 0
        self.memory = SharedMemory.make()
        for number in range(len(devices)):
            opened = Reply(start_s=0.0, end_s=0.0, device="fake")
            self._push(number, opened)

    def now_s(self) -> float:
        """Give the time."""
        return self._now_s

    def send(self, device: int, command: Command) -> None:
        """Do a command at once; its reply comes when its time is over."""
        one = self.devices[device]
        if not one.is_alive:
            return
        start_s = max(self._now_s + self._message_s, one.free_s)
        kind = type(command)
        number = one.seen.get(kind, 0)
        one.seen[kind] = number + 1
        if one.failing.get(kind) == number:
            one.is_alive = kind is Prepare  # refusing a launch is not the end
            error = KernelcastError(f"fake-{device} broke at {kind.__name__}")
            failed = Failed(start_s=start_s, end_s=start_s, error=error, is_final=not one.is_alive)
            self._push(device, failed)
            return
        reply = self._answer(device, command, start_s)
        one.free_s = reply.end_s
        self._push(device, reply)

    def owes(self, device: int) -> bool:
        """Tell whether a reply waits."""
        return any(one == device for _, _, one, _ in self._replies)

    def receive(self, within_s: float | None = None) -> tuple[int, Reply] | None:
        """Let time pass until the next reply, at most so much."""
        waiting = min(self._replies, default=None)
        if within_s is not None and (waiting is None or waiting[0] > self._now_s + within_s):
            self._now_s += within_s
            return None
        assert waiting is not None, "no device has anything to say"
        self._replies.remove(waiting)
        end_s, _, device, reply = waiting
        self._now_s = max(self._now_s, end_s + self._message_s)
        return device, reply

    def close(self) -> None:
        """Note that nobody needs the devices any more."""
        self.is_closed = True
        self.memory.close()

    def _answer(self, device: int, command: Command, start_s: float) -> Reply:
        one = self.devices[device]
        match command:
            case Prepare():
                return self._prepare(one, command, start_s)
            case Run():
                took_s = one.run(command.boxes)
                return Reply(start_s=start_s, end_s=start_s + sum(took_s))
            case Collect():
                for index, spans in command.spans.items():
                    for first, stop in spans:
                        self.memory.view(command.targets[index])[first:stop] = one.arrays[
                            index
                        ].view(np.uint8)[first:stop]
                spent_s = one.upload_s / max(1, one.uploaded_bytes) * _count_bytes(one, command)
                return Reply(start_s=start_s, end_s=start_s + spent_s)
            case Finish():
                return Reply(start_s=start_s, end_s=start_s)

    def _prepare(self, one: FakeDevice, command: Prepare, start_s: float) -> Reply:
        one.ran = set()
        one.local_size = command.ndrange.known_local_size[0]
        one.arrays = [
            self._take(command, index, value, described)
            for index, (described, value) in enumerate(
                zip(command.arguments, command.contents, strict=True)
            )
        ]
        one.in_place = command.in_place
        return Reply(
            start_s=start_s,
            end_s=start_s + one.prepare_s,
            upload_s=one.upload_s,
            uploaded_bytes=one.uploaded_bytes,
            in_place=command.in_place,
        )

    def _take(self, command: Prepare, index: int, value: object, described: Argument) -> object:
        """Take an argument as a device does that works in the host's memory."""
        if not isinstance(value, MemoryRange) or not isinstance(described, BufferArgument):
            return value
        view = self.memory.view(value)
        own = view if index in command.in_place else view.copy()
        return own.view(described.element.dtype)

    def _push(self, device: int, reply: Reply) -> None:
        self._count += 1
        self._replies.append((reply.end_s, self._count, device, reply))


def _count_bytes(device: FakeDevice, command: Collect) -> int:
    """Count what a device hands over."""
    return sum(
        stop - first
        for index, spans in command.spans.items()
        if index not in device.in_place
        for first, stop in spans
    )
