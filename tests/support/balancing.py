"""Devices that share a launch but exist only as formulas, with a clock of their own."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.device_processes import DeviceProcesses
from kernelcast.balancing.launch_buffers import (
    Collect,
    Command,
    Failed,
    Prepare,
    Reply,
    Run,
    SharedMemory,
)
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.ndrange import GroupBox

Arrays = Sequence[Any]
Compute = Callable[[Arrays, npt.NDArray[np.int64]], None]
"""Does for numbers of work-items of a one-dimensional launch what a kernel would."""


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
    is_alive: bool = True
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @property
    def uploaded_bytes(self) -> int:
        return sum(
            array.nbytes
            for index, array in enumerate(self.arrays)
            if isinstance(array, np.ndarray) and index not in self.in_place
        )

    def run(self, boxes: Sequence[GroupBox]) -> float:
        spent_s = 0.0
        for box in boxes:
            groups = set(range(box.start[0], box.start[0] + box.shape[0]))
            assert not groups & self.ran, "work-groups run twice on the same buffers"
            self.ran |= groups
            first, stop = min(groups) * self.local_size, (max(groups) + 1) * self.local_size
            items = np.arange(first, stop)
            self.compute(self.arrays, items)
            cost = self.item_s(items).sum() if callable(self.item_s) else self.item_s * items.size
            factor = float(np.exp(self.rng.normal(0.0, self.noise)))
            spent_s += (self.launch_s + float(cost)) * factor + self.first_s
            self.first_s = 0.0
        return spent_s


class FakeDevices(DeviceProcesses):
    """A devices of fake devices; time passes only while it is waited for."""

    def __init__(self, devices: Sequence[FakeDevice], *, message_s: float = 0.0) -> None:
        self.devices = list(devices)
        self._message_s = message_s
        self.is_closed = False
        self._now_s = 0.0
        self._replies: list[tuple[float, int, int, Reply]] = []
        self._numbers = itertools.count()
        self.memory = SharedMemory.make()
        for number in range(len(devices)):
            opened = Reply(start_s=0.0, end_s=0.0, device="fake")
            self._push(number, opened)

    def now_s(self) -> float:
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
        one.free_s = start_s + self._do(one, command)
        told = Reply(start_s=start_s, end_s=one.free_s)
        if isinstance(command, Prepare):
            told = replace(told, upload_s=one.upload_s, uploaded_bytes=one.uploaded_bytes,
                           in_place=one.in_place)  # fmt: skip
        self._push(device, told)

    def owes(self, device: int) -> bool:
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
        self.is_closed = True
        self.memory.close()

    def _do(self, one: FakeDevice, command: Command) -> float:
        match command:
            case Prepare():
                one.ran, one.in_place = set(), command.in_place
                one.local_size = command.problem.ndrange.known_local_size[0]
                # As a device takes buffers that works in the host's memory.
                one.arrays = []
                for index, place in command.buffers.items():
                    view, argument = self.memory.view(place), command.problem.arguments[index]
                    assert isinstance(argument, BufferArgument)
                    own = view if index in command.in_place else view.copy()
                    one.arrays.append(own.view(argument.element.dtype))
                return one.prepare_s
            case Run():
                return one.run(command.boxes)
            case Collect():
                moved_bytes = 0
                for index, spans in command.spans.items():
                    target, own = self.memory.view(command.targets[index]), one.arrays[index]
                    for first, stop in spans:
                        target[first:stop] = own.view(np.uint8)[first:stop]
                        moved_bytes += 0 if index in one.in_place else stop - first
                return one.upload_s / max(1, one.uploaded_bytes) * moved_bytes
            case None:
                return 0.0

    def _push(self, device: int, reply: Reply) -> None:
        self._replies.append((reply.end_s, next(self._numbers), device, reply))
