import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelcast.predictor.machine_file import read_machine
from kernelcast.records.device import DeviceDescription

pytestmark = pytest.mark.device

_DEADLINE_S = 120.0


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "kernelcast", "calibrate", "--quick", *words]


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "KERNELCAST_DATA": str(folder)}


def test_a_real_calibration_writes_a_description(
    description: DeviceDescription, tmp_path: Path
) -> None:
    """Measures the launch overhead in a child process and writes what it found."""
    ran = subprocess.run(
        _command("--device", description.id, "--only", "launch", "--json"),
        env=_environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    (told,) = json.loads(ran.stdout)
    machine = read_machine(Path(told["file"]))
    assert (machine.id, machine.driver) == (description.id, description.driver)
    assert told["failed"] == {}
    assert 1e-8 < machine.costs["launch_s"].value < 1.0


def test_ctrl_c_keeps_what_was_measured(description: DeviceDescription, tmp_path: Path) -> None:
    """Ends with status 130, keeps the first benchmark, and goes on with the others."""
    words = ("--device", description.id, "--only", "launch", "--only", "atomics", "--json")
    running = subprocess.Popen(
        _command(*words), env=_environment(tmp_path), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    folder = tmp_path / "calibrations" / description.id / "quick"
    deadline_s = time.monotonic() + _DEADLINE_S
    while not list(folder.glob("[a-z]*.yaml")) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130, errors
    ran = subprocess.run(
        _command(*words), env=_environment(tmp_path), capture_output=True, text=True, check=True
    )
    (told,) = json.loads(ran.stdout)
    assert told["resumed"] == ["atomics"]
    assert list(told["durations_seconds"]) == ["launch"]
    assert {"launch_s", "atomic_global_same_per_s"} <= told["machine"]["costs"].keys()
