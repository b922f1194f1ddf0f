"""CUDA devices asked as users ask, without OpenCL, on a stand-in for the driver."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cuda_driver import use_stand_in

pytestmark = pytest.mark.device

TRIAD = str(Path(__file__).parents[2] / "examples" / "triad" / "triad.yaml")


def ask(tmp_path: Path, *arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Ask the command line where only the CUDA driver shows a device."""
    environment = {
        **os.environ, **use_stand_in(alone=1, **settings),
        "KERNELCAST_DATA": str(tmp_path / "data"),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "kernelcast", *arguments],
        env=environment, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip


def test_devices_are_listed_without_opencl(tmp_path: Path) -> None:
    """The one device is the driver's, builds and runs a kernel, and has a timer that agrees."""
    listed = ask(tmp_path, "devices", "--json", units=3)
    assert listed.returncode == 0, listed.stderr
    [device] = json.loads(listed.stdout)
    assert device["id"].startswith("cuda-stand-in-")
    assert (device["platform"], device["compute_units"], device["status"]) == ("CUDA", 3, "ok")


def test_a_problem_file_is_answered_and_explained(tmp_path: Path) -> None:
    """P_sat is the driver's; samples are few of the work-groups."""
    answered = ask(tmp_path, "estimate", TRIAD, "-p", "N=2**22", "--json")
    assert answered.returncode == 0, answered.stderr
    [answer] = json.loads(answered.stdout)
    assert answer["seconds"] > 0
    assert (answer["p_sat"], answer["p_sat_computed"]) == (16, 16)
    assert answer["sampled_work_groups"] < 0.5 * answer["work_groups"]


def test_a_kernel_that_ends_its_context_costs_its_process_only(tmp_path: Path) -> None:
    """The answer is an error with the driver's word; the next launch is answered."""
    copied = TRIAD, "-p", "N=2**22", "--json"
    failed = ask(tmp_path, "estimate", *copied, fails="cuLaunchKernel/triad=700")
    assert failed.returncode == 1
    assert "ILLEGAL_ADDRESS" in failed.stdout + failed.stderr
    assert ask(tmp_path, "estimate", *copied).returncode == 0


def test_kernels_are_collected_and_devices_calibrated(tmp_path: Path) -> None:
    """Counting copies run, rows are kept, and the machine description gets the launch's cost."""
    given = ("--sizes", "1", "--local-sizes", "1", "--runs", "2", "--multiples", "0")
    times = ("--shortest", "0.004", "--longest", "0.01")
    collected = ask(tmp_path, "collect", "--kernels", "transpose/transpose_naive", *given, *times)
    assert collected.returncode == 0, collected.stderr
    calibrated = ask(tmp_path, "calibrate", "--quick", "--only", "launch")
    assert calibrated.returncode == 0, calibrated.stderr
    [description] = (tmp_path / "data" / "machines").glob("cuda-stand-in-*.yaml")
    assert "launch_s" in description.read_text(encoding="utf-8")
