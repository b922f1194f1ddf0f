"""Records arrive from child processes as they were sent, and nothing else does."""

import json
import pickle
import socket
import struct
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from kernelcast.collection.collection import Message
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.errors import EstimateTimeoutError, KernelcastError, KernelRunError
from kernelcast.records.estimates import Interval
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)
from kernelcast.records.samples import SampleRun
from kernelcast.workers import Task, process, protocol
from kernelcast.workers.process import converse
from kernelcast.workers.protocol import MOST_BYTES, Channel
from kernelcast.workers.wire import NotDecodableError, decode, encode
from support.builders import make_description, make_sample_run
from support.observations import make_failure, make_launch, make_observation

TASK: Task[Interval] = Task(entry="unused:unused", returns=Interval, gives=int, most_items=3)
GOOD = {"seconds": 2.0, "low": 1.0, "high": 3.0, "coverage": 0.9}


def frame(content: object) -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack(">Q", len(text)) + text


def hear(said: bytes, *, timeout_s: float = 5.0) -> list[Any]:
    """Listen to the end to a child that says what somebody else wrote."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, len(said) + 4096)
        theirs.sendall(said)
        child = Mock(channel=Channel(ours))
        heard = converse(child, TASK, None, timeout_s=timeout_s, subject="d")
        return [one.content for one in heard]


def test_what_is_right_is_taken() -> None:
    said = frame(["progress", "at work"]) + frame(["item", 4]) + frame(["result", GOOD])
    assert hear(said) == ["at work", 4, Interval(**GOOD)]


@pytest.mark.parametrize(
    "said",
    [
        b"no frame at all, only text of a kernel's",
        frame(b"\xff\xfe"),
        frame(pickle.dumps(["result", GOOD])),
        frame(b"[" * 100_000),
        frame(b"1" * 10_000),
        frame({}),
        frame(["result"]),
        frame(["order", GOOD]),
        frame([["result"], GOOD]),
        frame(["result", None]),
        frame(["result", [GOOD]]),
        frame(["result", {**GOOD, "more": 1}]),
        frame(["result", {**GOOD, "low": "1.0"}]),
        frame(["result", {**GOOD, "low": True}]),
        frame(["result", {**GOOD, "seconds": float("nan")}]),
        frame(["result", {**GOOD, "high": float("inf")}]),
        frame(["result", {**GOOD, "high": 10**400}]),
        frame(["result", {**GOOD, "low": 9.0}]),
        frame(["item", 1.5]),
        frame(["item", 1]) * 4,
        frame(["progress", 7]),
        frame(["progress", "and on"]) * (process.MOST_STAGES + 1),
        frame(["error", ["SystemExit", "0"]]),
        frame(["error", ["KernelRunError"]]),
        frame(["bug", {"text": "none"}]),
        struct.pack(">Q", MOST_BYTES + 1),
    ],
    ids=lambda said: repr(said[8:48]),
)
def test_what_is_no_answer_is_an_error_of_this_task(said: bytes) -> None:
    """Whatever else comes is an error that names the device, and nothing is made of it."""
    with pytest.raises(KernelRunError, match=r"^d: .* sent what is no answer \(stage: ") as caught:
        hear(said)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("said", [b"", b"\0\0", struct.pack(">Q", 100) + b'["result"'])
def test_half_a_message_ends_with_the_time(said: bytes) -> None:
    with pytest.raises(EstimateTimeoutError, match=r"no answer within 0\.2 s"):
        hear(said, timeout_s=0.2)


def test_stages_and_errors_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of a child do not fill logs."""
    monkeypatch.setattr(protocol, "_LONGEST_TEXT", 1000)
    stage = "s" * 50_000
    with pytest.raises(KernelcastError) as caught:
        hear(frame(["progress", stage]) + frame(["error", ["CompileError", "e" * 50_000]]))
    assert type(caught.value).__name__ == "CompileError"
    assert len(str(caught.value)) == 1000
    (heard, *_) = hear(frame(["progress", stage]) + frame(["result", GOOD]))
    assert len(heard) < 1000


RUN = make_sample_run([(0, 2, 0.1), (0, 3, 1 / 3)], work_groups=100)
COUNTS = OperationCounts(
    operations={Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32): 2.5},
    memory={MemoryOperation(space=MemorySpace.GLOBAL, is_store=True, bytes=4): 1.0},
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (RUN, SampleRun),
        (make_description(), type(make_description())),
        (make_launch(1), Message),
        (make_observation(1), Message),
        ("12 work-groups", Message),
        (make_failure(1), Message),
        (COUNTS, OperationCounts),
        (Trait(value=1.0 / 3, source=TraitSource.MEASURED), Trait[float]),
        (Trait(value=3, source=TraitSource.REPORTED), Trait[int]),
        ((None, frozenset({TraitSource.MEASURED})), tuple[int | None, frozenset[TraitSource]]),
    ],
    ids=lambda one: getattr(one, "__name__", type(one).__name__),
)
def test_records_arrive_as_they_were_sent(value: object, expected: Any) -> None:  # noqa: ANN401
    """Every kind of field comes back with its type and to the last digit."""
    arrived = decode(encode(value), expected)
    assert arrived == value
    assert repr(arrived) == repr(value)  # texts equal the members of an enumeration


def test_no_number_is_nan() -> None:
    """What is not known is not there; a launch's times are finite."""
    held = json.loads(encode(RUN))
    held["launches"][0]["duration_s"] = float("nan")
    with pytest.raises(NotDecodableError, match="finite"):
        decode(json.dumps(held), SampleRun)


def test_numbers_of_numpy_arrive_as_numbers() -> None:
    """A field for a number may hold NumPy's; objects that are no records do not leave the child."""
    sent = (np.float64(0.1), np.int64(3), np.bool_(True))
    assert decode(encode(sent), tuple[float, int, bool]) == (0.1, 3, True)
    with pytest.raises(TypeError, match="cannot be sent"):
        encode({"a": object()})
