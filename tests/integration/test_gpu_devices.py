"""GPUs asked as users ask: Mesa's software device called one, and a stand-in for CUDA's driver."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelcast.launches.recordings import read_recordings
from kernelcast.records.device import DeviceKind
from kernelcast.records.samples import PILOT_WINDOW
from kernelcast.sampling.warmed_windows import MULTIPLES
from support.cuda_driver import use_stand_in

pytestmark = pytest.mark.device

EXAMPLES = Path(__file__).parents[2] / "examples"
TRIAD = ("estimate", EXAMPLES / "triad/triad.yaml", "-p", "N=2**22", "--json")
LLVMPIPE = {"RUSTICL_ENABLE": "llvmpipe", "RUSTICL_DEVICE_TYPE": "gpu"}


def ask(data: Path, *words: object, status: int = 0, **variables: str) -> str:
    """Ask the command line where a device is a GPU: CUDA's, without any of OpenCL, unless told."""
    environment = {**os.environ, **(variables or use_stand_in(alone=1, units=3)),
                   "KERNELCAST_DATA": str(data)}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "kernelcast", *map(str, words)], env=environment,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stdout


def read(text: str) -> Any:  # noqa: ANN401 - an answer
    """Read the only object of an answer."""
    (answer,) = json.loads(text)
    return answer


def test_a_gpu_is_sampled_in_warmed_windows(tmp_path: Path) -> None:
    """Answers from pairs of warmed windows, counts what warmed up, and replays to the same."""
    if "rusticl" not in ask(tmp_path, "devices", "--json", **LLVMPIPE):
        pytest.skip("Mesa's software device is not installed")
    file = tmp_path / "samples.json"
    answer = read(ask(
        tmp_path, "estimate", EXAMPLES / "mandelbrot/mandelbrot.yaml", "--device", "rusticl",
        "-p", "SIDE=1024", "--record", file, "--json", **LLVMPIPE,
    ))  # fmt: skip
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
    replayed = read(ask(tmp_path, "estimate", "--replay", file, "--json", **LLVMPIPE))
    assert replayed["seconds"] == pytest.approx(answer["seconds"])


def test_cuda_devices_answer_without_opencl(tmp_path: Path) -> None:
    """The driver's one device is listed, with a timer that agrees; P_sat is the driver's."""
    device = read(ask(tmp_path, "devices", "--json"))
    assert device["id"].startswith("cuda-stand-in-")
    assert (device["platform"], device["compute_units"], device["status"]) == ("CUDA", 3, "ok")
    answer = read(ask(tmp_path, *TRIAD))
    assert answer["seconds"] > 0
    assert (answer["p_sat"], answer["p_sat_computed"]) == (16, 16)
    assert answer["sampled_work_groups"] < 0.5 * answer["work_groups"]


def test_a_kernel_that_ends_its_context_costs_its_process_only(tmp_path: Path) -> None:
    """The answer is an error with the driver's word; the next launch is answered."""
    failing = use_stand_in(alone=1, fails="cuLaunchKernel/triad=700")
    assert "ILLEGAL_ADDRESS" in ask(tmp_path, *TRIAD, status=1, **failing)
    ask(tmp_path, *TRIAD)


def test_kernels_are_collected_and_devices_calibrated(tmp_path: Path) -> None:
    """Counting copies run, rows are kept, and the machine description gets the launch's cost."""
    ask(
        tmp_path, "collect", "--kernels", "transpose/transpose_naive", "--sizes", "1",
        "--local-sizes", "1", "--runs", "2", "--multiples", "0", "--shortest", "0.004",
        "--longest", "0.01",
    )  # fmt: skip
    ask(tmp_path, "calibrate", "--quick", "--only", "launch")
    [description] = (tmp_path / "machines").glob("cuda-stand-in-*.yaml")
    assert "launch_s" in description.read_text(encoding="utf-8")
