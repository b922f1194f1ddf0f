import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelcast.launches.machine_file import read_machine
from kernelcast.records.device import DeviceDescription

pytestmark = pytest.mark.device


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))


def test_ctrl_c_keeps_what_was_measured(first_device: DeviceDescription, tmp_path: Path) -> None:
    """Ends with status 130 and keeps the first benchmark, as far as it is done."""
    words = ["calibrate", "--quick", "--device", first_device.id]
    running = subprocess.Popen(
        [sys.executable, "-m", "kernelcast", *words, "--only", "launch", "--only", "atomics"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    folder = tmp_path / "calibrations" / first_device.id / "quick"
    while not list(folder.glob("[a-z]*.yaml")) and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130, errors
    [kept] = folder.glob("*.yaml")
    assert kept.name == "atomics.yaml"
    assert "atomic_global_same_per_s" in read_machine(kept).costs
