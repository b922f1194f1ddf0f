"""What Python programs do with several devices and configurations: schedule, balance, tune."""

import dataclasses
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pyopencl as cl
import pytest

import kernelcast
from support.device_queues import list_devices, write_calibration

pytestmark = pytest.mark.device


@pytest.fixture
def example(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the example of a schedule over two devices."""
    if len(list_devices()) < 2:
        pytest.skip("two OpenCL devices are needed")
    monkeypatch.syspath_prepend(repository / "examples/two_devices")
    return importlib.import_module("schedule")


def test_two_devices_are_scheduled_by_what_is_known(example: ModuleType, home: Path) -> None:
    """Both compute the same; what ran counts next time, and so do transfers once they are known."""
    size = 1 << 16
    places = [example.prepare(device, size) for device in example.choose_two(None)]
    values = np.linspace(0, 1, size, dtype=np.float32)
    expected = np.polyval(1 / np.arange(1, example.DEGREE + 1), values)
    for place in places:
        np.testing.assert_allclose(example.run(place, values)[0], expected, rtol=1e-4)
    have_run: set[str] = set()
    with kernelcast.Predictor() as predictor:
        for _ in range(len(places) + 1):  # on both, if it comes to that: then one runs again
            told, reason, _ = example.schedule(predictor, places, values)
            assert reason.startswith(f"{told.device_id} (by kernel alone; transfers are not known")
            observed = [piece for piece in told.list_pieces() if piece.kind == "observed"]
            assert [piece.weight > 0 for piece in observed] == [True] * (told.device_id in have_run)
            have_run.add(told.device_id)
        ids = [entry.device_id for entry in predictor.estimate_many([one.launch for one in places])]
    for slow, fast in (ids, reversed(ids)):
        write_calibration(home, slow, transfer_s=3600)
        write_calibration(home, fast, transfer_s=1e-6)
        with kernelcast.Predictor() as predictor:
            told, reason, _ = example.schedule(predictor, places, values)
        assert told.device_id == fast
        assert reason == f"{fast} (by kernel and transfers)"


SPREAD = """\
code: |
  kernel void stencil(global const float *from, global float *to, int width, int height)
  {
      int x = get_global_id(0), y = get_global_id(1);
      if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1)
          return;
      int i = y * width + x;
      to[i] = 0.25f * (from[i - 1] + from[i + 1] + from[i - width] + from[i + width]);
  }
  kernel void count(global int *a) { atomic_inc(a); }
kernel: stencil
global_size: [1008, 704]
local_size: [16, 4]
args:
  - {buffer: float32, count: 700000}
  - {buffer: float32, count: 700000}
  - {scalar: int32, value: 1000}
  - {scalar: int32, value: 700}
"""


def test_one_kernel_is_balanced_over_all_devices(device_ids: list[str], tmp_path: Path) -> None:
    """Bit for bit what one device computes alone; what may not be split is refused."""
    path = tmp_path / "spread.yaml"
    path.write_text(SPREAD)
    problem = kernelcast.read_problem(path)
    given = np.random.default_rng(0).random((700, 1000), dtype=np.float32)
    results = []
    for devices in (device_ids[-1:], device_ids):
        result = np.full_like(given, 5.0)
        args = [given, result, np.int32(1000), np.int32(700)]
        report = kernelcast.balance(problem.kernel, problem.ndrange, args, devices)
        assert [share.device_id for share in report.shares] == devices
        assert sum(share.work_groups for share in report.shares) == 63 * 176
        results.append(result)
    assert all(np.array_equal(result, results[0]) for result in results)
    assert results[0][0, 0] == 5.0
    middle = (given[1:-1, :-2] + given[1:-1, 2:] + given[:-2, 1:-1] + given[2:, 1:-1]) / 4
    np.testing.assert_allclose(results[0][1:-1, 1:-1], middle, rtol=1e-5)
    counts = np.zeros(1, np.int32)
    counting = dataclasses.replace(problem.kernel, name="count")
    with pytest.raises(kernelcast.InputError, match="atomic"):
        kernelcast.balance(counting, (4096,), [counts], device_ids)
    assert counts[0] == 0


def test_configurations_are_ranked_and_measured(
    home: Path, device_ids: list[str], tuned: Path, tmp_path: Path
) -> None:
    """Of a calibrated device: by the model, then by runs that are kept; no build is a reason."""
    save = tmp_path / "runs"
    device_id = device_ids[0]
    with pytest.raises(kernelcast.InputError, match=f"calibrate --device {device_id}"):
        kernelcast.tune(tuned, [device_id])
    write_calibration(home, device_id)
    (ranked,) = kernelcast.tune(tuned, [device_id])
    assert isinstance(ranked, kernelcast.TuneReport)
    assert ranked.device_id == device_id
    assert [one.parameters for one in ranked.configurations if one.measured_s] == []
    assert ranked.pick is not None
    assert ranked.pick.predicted_s > 0
    settings = kernelcast.TuneSettings(measure=True, top=4, runs=2)
    (measured,) = kernelcast.tune(tuned, [device_id], settings=settings, save=save)
    runs = [(one.parameters["BROKEN"], len(one.runs_s)) for one in measured.configurations]
    assert runs == [(0, 2), (0, 2), (1, 0)]
    assert measured.configurations[-1].obstacle
    assert measured.pick is not None
    assert measured.pick.measured_s == min(
        one.measured_s for one in measured.configurations if one.measured_s
    )
    (again,) = kernelcast.tune(tuned, [device_id], settings=settings, save=save)
    assert [one.runs_s for one in again.configurations] == [
        one.runs_s for one in measured.configurations
    ]


def test_devices_are_examined_each_on_its_own(device_ids: list[str]) -> None:
    """Every device of the machine once, under an id that stays; also after a bare import."""
    reports = kernelcast.examine_devices()
    ids = [report.description.id for report in reports]
    assert ids == sorted(set(ids))
    assert device_ids == [one.description.id for one in reports if one.broken_reason is None]
    assert len(ids) == len(list_devices())
    assert {kernelcast.device_id(device) for device in list_devices().values()} <= set(ids)
    for report in reports:
        assert (report.timer is None) is (report.broken_reason is not None)
        assert report.description.compute_units > 0
    with kernelcast.Predictor() as predictor:
        assert [device.id for device in predictor.devices()] == ids
    program = "import kernelcast, pyopencl as cl; print(len(cl.get_platforms()))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == len(cl.get_platforms())
