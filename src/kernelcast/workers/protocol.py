"""What a child can be asked, what parent and child say, and how it lies on the wire.

A frame is the length of its content, eight bytes, and the content. Orders are pickles: the child is
ours and trusts its parent. Messages are JSON, because a kernel that runs in the child can send
whatever it likes: `kernelcast.workers.wire` reads them by the types that the order expects.
"""

import os
import socket
import struct
import time
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import wait
from types import NoneType
from typing import Any, Generic, TypeVar

from kernelcast.records import errors
from kernelcast.records.errors import KernelcastError
from kernelcast.workers.wire import NotDecodableError, decode, encode, structure

R = TypeVar("R")
MOST_BYTES = 16 << 20
"""Of a message: the trace of 10,000 work-groups takes 2 MB."""
BESIDE = "&"
"""Begins what a child process gets ready while it does orders already."""
COUNTING = "counting"
"""Stage in which a copy of the kernel runs that counts what it does."""
BUILDING = "building the kernel"
"""Stage in which a device's compiler works, and nothing of the kernel runs."""
_LENGTH = struct.Struct(">Q")
_LONGEST_TEXT = 1 << 18

ERRORS: dict[str, type[KernelcastError]] = {
    name: one
    for name, one in vars(errors).items()
    if isinstance(one, type) and issubclass(one, KernelcastError)
}
"""What a child may raise in its parent, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Generic[R]):
    """A function of plain records for a child process, and what it may answer."""

    entry: str
    """``module:function``; the child imports the module. The function takes the arguments and a
    `Reporter`."""
    returns: type[R] = NoneType  # type: ignore[assignment]  # a task without result has R = None
    """Of its result: a record, plain value, container or union of them."""
    gives: Any = NoneType
    """Of what it hands over before the end."""
    most_items: int = 1_000_000
    """That it may hand over; more are no answer."""
    is_timed_as_a_whole: bool = False
    """Whether its time limit goes on when it hands something over; else it is counted anew."""


class MessageKind(StrEnum):
    """What a child process tells."""

    PROGRESS = "progress"
    """A sentence about the stage that begins."""
    ITEM = "item"
    """A result that is ready before the end."""
    RESULT = "result"
    """What the task returned; nothing follows."""
    ERROR = "error"
    """The error that it raised; nothing follows."""
    BUG = "bug"
    """An exception that is none of ours, as text; nothing follows."""


@dataclass(frozen=True, slots=True)
class Message:
    kind: MessageKind
    content: Any


class ClosedError(Exception):
    """Is raised when the other end has closed the channel."""


class Channel:
    def __init__(self, connected: socket.socket, *, most_bytes: int = MOST_BYTES) -> None:
        self.socket = connected
        self.most_bytes = most_bytes
        self._held = bytearray()

    def send(self, content: bytes, *, within_s: float | None = None) -> None:
        """Send a frame: a TimeoutError if it is not taken in time, a ClosedError if by nobody."""
        self.socket.settimeout(within_s)
        try:
            self.socket.sendall(_LENGTH.pack(len(content)))
            self.socket.sendall(content)
        except (BrokenPipeError, ConnectionResetError):
            raise ClosedError from None

    def receive(self, *, within_s: float | None = None) -> bytes:
        ends_s = None if within_s is None else time.monotonic() + within_s
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size, ends_s))
        if length > self.most_bytes:
            msg = f"a message of {length} bytes; at most {self.most_bytes} are allowed"
            raise NotDecodableError(msg)
        return self._take(length, ends_s)

    def is_readable(self) -> bool:
        """Tell whether a frame, its beginning or the other end's end is there."""
        return bool(self._held) or bool(wait([self.socket], 0))

    def _take(self, count: int, ends_s: float | None) -> bytes:
        while len(self._held) < count:
            left_s = None if ends_s is None else ends_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                left_s = 1e-6  # what has arrived already is taken; 0 would mean "do not block"
            self.socket.settimeout(left_s)
            try:
                part = self.socket.recv(1 << 16)
            except ConnectionResetError:
                raise ClosedError from None
            if not part:
                raise ClosedError
            self._held += part
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken


def name_error(error: KernelcastError) -> str:
    """Name an error's class or, where that is no class of `kernelcast.records`, its next base."""
    return next(one.__name__ for one in type(error).__mro__ if ERRORS.get(one.__name__) is one)


class Reporter:
    """Tells a parent which stage begins, and results that are ready before the end."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __call__(self, stage: str) -> None:
        self.tell(MessageKind.PROGRESS, stage)

    def give(self, item: Any) -> None:  # noqa: ANN401 - each task has its own
        """Hand over a record before the end."""
        self.tell(MessageKind.ITEM, item)

    def give_up(self, error: KernelcastError) -> None:
        """End the process with an error as its answer; may be called from any thread."""
        self.tell(MessageKind.ERROR, (name_error(error), str(error)))
        os._exit(0)  # the thread that waits for the driver does not end

    def tell(self, kind: MessageKind, content: object) -> None:
        frame = encode((kind.value, content))
        if len(frame) > MOST_BYTES:
            msg = f"an answer of {len(frame)} bytes is longer than {MOST_BYTES}; ask for less"
            raise KernelcastError(msg)
        self._channel.send(frame)


def read_message(frame: bytes, *, returns: Any, gives: Any) -> Message:  # noqa: ANN401 - types
    """Read what a child sent: a result or an item is of the type that its task says."""
    kind, content = decode(frame, tuple[str, Any])
    if kind not in set(MessageKind):
        raise NotDecodableError(f"a message of kind {kind!r:.50}")
    told = MessageKind(kind)
    if told is MessageKind.ERROR:
        name, text = structure(content, tuple[str, str])
        if name not in ERRORS:
            raise NotDecodableError(f"an error of class {name!r:.50}")
        return Message(told, ERRORS[name](text[:_LONGEST_TEXT]))
    if told in {MessageKind.PROGRESS, MessageKind.BUG}:
        most = 500 if told is MessageKind.PROGRESS else _LONGEST_TEXT
        return Message(told, structure(content, str)[:most])
    return Message(told, structure(content, returns if told is MessageKind.RESULT else gives))
