"""A device that calls itself a GPU, asked as users ask: Mesa's software device can."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelcast.launches.recordings import read_recordings
from kernelcast.records.device import DeviceKind
from kernelcast.records.samples import PILOT_WINDOW
from kernelcast.sampling.warmed_windows import MULTIPLES

pytestmark = pytest.mark.device

EXAMPLE = Path(__file__).parents[2] / "examples" / "mandelbrot" / "mandelbrot.yaml"


def ask(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask the command line on a machine whose software device is a GPU."""
    environment = {
        **os.environ,
        "RUSTICL_ENABLE": "llvmpipe",
        "RUSTICL_DEVICE_TYPE": "gpu",
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    return subprocess.run(
        [sys.executable, "-m", "kernelcast", *arguments],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_gpu_is_sampled_in_warmed_windows(tmp_path: Path) -> None:
    """Answers from pairs of warmed windows, counts what warmed up, and replays to the same."""
    if "rusticl" not in ask(tmp_path, "devices", "--json").stdout:
        pytest.skip("Mesa's software device is not installed")
    file = tmp_path / "samples.json"
    given = ("estimate", str(EXAMPLE), "--device", "rusticl", "--json")
    answered = ask(tmp_path, *given, "-p", "SIDE=1024", "--record", str(file))
    assert answered.returncode == 0, answered.stderr
    [answer] = json.loads(answered.stdout)
    [recording] = read_recordings(file)
    assert recording.device.kind is DeviceKind.GPU
    timed = [one for run in recording.runs for one in run.launches]
    sizes = [one.box.work_group_count for one in timed if one.window != PILOT_WINDOW]
    assert max(sizes) * min(MULTIPLES) == pytest.approx(min(sizes) * max(MULTIPLES), rel=0.4)
    warm_up_s = sum(run.warm_up_s for run in recording.runs)
    assert warm_up_s > 0
    # What ran before the first window counts too.
    windows_s = warm_up_s + sum(one.duration_s for one in timed)
    assert answer["sampling_seconds"] >= windows_s * (1.0 - 1e-6)
    again = ask(tmp_path, "estimate", "--replay", str(file), "--json")
    assert again.returncode == 0, again.stderr
    [replayed] = json.loads(again.stdout)
    assert replayed["seconds"] == pytest.approx(answer["seconds"])
