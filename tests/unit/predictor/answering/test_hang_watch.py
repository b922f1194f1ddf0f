"""A hang is noticed early where something speaks for it, and slow launches are left alone."""

import os
import socket
import threading
import time

import pytest

from kernelcast.predictor.answering import measuring
from kernelcast.predictor.answering.measuring import stopping_hangs
from kernelcast.records.errors import EstimateTimeoutError, KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.workers.protocol import Channel, MessageKind, Reporter, read_message

_WAITING = Kernel(name="k", source="kernel void k(volatile global int *f) { while (!*f); }")
_PLAIN = Kernel(name="k", source="kernel void k(global int *f) { *f = 1; }")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_LEAST_S", 0.2)
    monkeypatch.setattr(measuring, "_LOOK_S", 0.02)


def _watch(kernel: Kernel, first_s: float | None, hangs_s: float) -> str:
    """Launch for some seconds after an earlier launch; give what was said, if anything was."""
    said: list[KernelcastError] = []
    told = threading.Event()

    def give_up(error: KernelcastError) -> None:
        said.append(error)
        told.set()

    with stopping_hangs(kernel, "device-7", give_up) as launching:
        if first_s is not None:
            with launching():
                time.sleep(first_s)
        with launching():
            told.wait(hangs_s)
    assert all(isinstance(one, EstimateTimeoutError) for one in said)
    return str(said[0]) if said else ""


def test_a_launch_that_waits_for_others_is_given_up() -> None:
    """The message names the device, the limit and the loop."""
    said = _watch(_WAITING, None, 60)
    assert said.startswith(
        "device-7: a launch of some sampled work-groups has not ended within 0.2"
    )
    assert "line 1: the loop ends when other work-items write to memory" in said


def test_a_launch_much_longer_than_those_before_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand times as long, and ten seconds more; less than that is uneven work."""
    monkeypatch.setattr(measuring, "_TIMES", 10.0)
    assert "none before it took longer than" in _watch(_PLAIN, 0.01, 60)
    assert _watch(_PLAIN, 0.1, 0.6) == ""


def test_a_child_that_gives_up_sends_the_error_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parent raises the error; the thread in the driver is not waited for."""
    ends: list[int] = []
    monkeypatch.setattr(os, "_exit", ends.append)
    here, there = (Channel(one) for one in socket.socketpair())
    Reporter(there).give_up(EstimateTimeoutError("hung"))
    told = read_message(here.receive(within_s=10), returns=str, gives=str)
    for one in (here, there):
        one.socket.close()
    assert (told.kind, type(told.content)) == (MessageKind.ERROR, EstimateTimeoutError)
    assert (str(told.content), ends) == ("hung", [0])
