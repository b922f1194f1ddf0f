import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelcast.cli.app import app
from kernelcast.records.device import DeviceDescription

pytestmark = pytest.mark.device


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))


def test_ctrl_c_keeps_what_was_measured(first_device: DeviceDescription, tmp_path: Path) -> None:
    """Ends with status 130, keeps the first benchmark, and goes on with the others."""
    words = ["calibrate", "--quick", "--device", first_device.id]
    words += ["--only", "launch", "--only", "atomics", "--json"]
    running = subprocess.Popen(
        [sys.executable, "-m", "kernelcast", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    folder = tmp_path / "calibrations" / first_device.id / "quick"
    while not list(folder.glob("[a-z]*.yaml")) and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130, errors
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.stderr
    (told,) = json.loads(ran.stdout)
    assert told["resumed"] == ["atomics"]
    assert list(told["durations_seconds"]) == ["launch"]
    assert {"launch_s", "atomic_global_same_per_s"} <= told["machine"]["costs"].keys()
