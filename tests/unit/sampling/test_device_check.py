"""Settling a device, and what of its trial outlives a process."""

import os
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from kernelcast.records.device import DeviceKind
from kernelcast.sampling import device_check
from kernelcast.sampling.device_check import (
    DeviceTrial,
    TrialTimes,
    find_settled,
    prepare_trial,
    recall_trial,
    settle,
)
from support.builders import make_description

DEVICE = make_description()
TRIAL = DeviceTrial(
    event_s=0.01, host_s=0.0101, agrees=True, steps=64, settled_s=5e-4, launch_overhead_s=1e-5,
    asleep_s=3e-6, cores=2,
)  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no other program at work."""
    monkeypatch.setattr(device_check, "count_others", lambda: 0)


@pytest.mark.parametrize("settled_s", [5e-6, 1e-4, 1e-3])
def test_waits_until_the_device_is_at_its_usual_rate(settled_s: float) -> None:
    """Sees a slow processor, however slow launches are, and waits until it is not."""
    times = [2 * settled_s] * 6 + [settled_s] * 9
    assert settle(lambda: times.pop(0), settled_s, DeviceKind.CPU) == settled_s
    assert len(times) == 7
    settle(lambda: 1.0, 1e-9, DeviceKind.CPU)  # gives up where others use the device all the time


def test_threads_that_wait_do_not_seem_slow() -> None:
    """Launches are compared by the work of each processor, where that is known."""
    times = TrialTimes(event_s=1e-9, host_s=3e-3, worked_s=2e-3)
    assert times.share_of(cores=2) == 1e-3
    assert times.share_of(cores=None) == 3e-3


def test_the_work_of_a_thread_that_has_ended_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries the launch again: half of its work would seem to be the usual rate."""
    readings = iter([{1: 0.0, 2: 5.0}, {1: 1e-3}, {1: 1e-3}, {1: 2e-3, 3: 1e-3}])
    monkeypatch.setattr(device_check, "read_work", lambda: next(readings))
    monkeypatch.setattr(device_check, "cl", MagicMock(Error=RuntimeError))
    run = prepare_trial(MagicMock(), MagicMock(), MagicMock())
    assert run(1).worked_s == pytest.approx(2e-3)


def test_a_clock_that_rises_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds the time at the highest clock of a GPU, though that comes late; not of a CPU."""
    launches = [0]
    monkeypatch.setattr(time, "perf_counter", lambda: launches[0] * 1e-3)

    def run() -> float:
        launches[0] += 1
        return 3e-4 * (3 - min(2, launches[0] // 50))

    assert find_settled(run, DeviceKind.CPU) == pytest.approx(9e-4)
    launches[0] = 0
    assert find_settled(run, DeviceKind.GPU) == pytest.approx(3e-4)


def never() -> DeviceTrial:
    """Fail if a device is tried that is known."""
    pytest.fail("tried again")


def test_what_one_process_has_found_the_next_one_knows(tmp_path: Path) -> None:
    """Believes it for an hour, of the same driver, where a folder keeps it."""
    other = replace(TRIAL, event_s=0.02)
    assert recall_trial(DEVICE, tmp_path, lambda: TRIAL) == TRIAL
    assert recall_trial(DEVICE, tmp_path, never) == TRIAL
    assert recall_trial(DEVICE, None, lambda: other) == other
    [path] = tmp_path.glob("devices/*.json")
    os.utime(path, (0, 0))
    assert recall_trial(DEVICE, tmp_path, lambda: other) == other
    updated = replace(DEVICE, driver="another")
    assert recall_trial(updated, tmp_path, lambda: TRIAL) == TRIAL
    for text in ("", "[]", "{}", '{"made_for": 1, "trial": 2}'):
        path.write_text(text)
        assert recall_trial(DEVICE, tmp_path, lambda: other) == other


def test_what_other_programs_may_have_disturbed_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeps a timer that agrees all the same: nothing can disturb it into that."""
    monkeypatch.setattr(device_check, "count_others", lambda: 3)
    wrong = replace(TRIAL, agrees=False)
    assert recall_trial(DEVICE, tmp_path, lambda: wrong) == wrong
    assert recall_trial(DEVICE, tmp_path, lambda: TRIAL) == TRIAL
    assert recall_trial(DEVICE, tmp_path, never) == TRIAL
