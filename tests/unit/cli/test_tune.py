"""What ``kernelcast tune`` shows, and how it ends."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kernelcast.cli.app import app
from kernelcast.cli.tune import list_best, list_remarks
from kernelcast.records.device import DeviceDescription
from kernelcast.tuning.api import tune_on_device
from kernelcast.tuning.report import TunedConfiguration, TuneReport
from kernelcast.tuning.settings import TuneModels
from kernelcast.tuning.space import SearchSpace
from support.builders import make_description

ROOT = Path(__file__).parents[3]
MACHINE = "intel-amd-epyc-c960"
PROBLEM = """
code: "kernel void k(global float *a) { a[get_global_id(0)] *= FACTOR; }"
kernel: k
build_options: ["-DFACTOR={FACTOR}"]
global_size: [4096]
local_size: ["{LX}"]
parameters: {LX: [16, 64, 256, 1024], FACTOR: 2}
args: [{buffer: float32, count: 4096}]
"""


@pytest.fixture
def problem_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a problem, one calibrated device and one that is not."""
    (tmp_path / "machines").mkdir()
    shutil.copy(ROOT / f"benchmarks/results/calibration/{MACHINE}.yaml", tmp_path / "machines")
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    calibrated = replace(make_description(), id=MACHINE, max_work_group_size=512)

    def choose(ids: Sequence[str]) -> list[DeviceDescription]:
        every = [calibrated, make_description()]
        return [one for one in every if not ids or one.id.startswith(tuple(ids))]

    monkeypatch.setattr("kernelcast.cli.tune.choose_devices", choose)
    path = tmp_path / "scale.yaml"
    path.write_text(PROBLEM)
    return path


def run(*words: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["tune", *map(str, words)])


def test_shows_the_best_and_what_to_use(problem_file: Path) -> None:
    """The table has the best K, a line names the parameters to use."""
    result = run(problem_file, "--device", MACHINE, "--top", "2")
    assert result.exit_code == 0
    assert "use: LX=" in result.stdout
    assert "4 configurations, 3 of them possible" in result.stdout
    assert "LX=1024: 1024 work-items a work-group, the device allows 512" in result.stdout
    assert result.stdout.count(" us ") + result.stdout.count(" ms ") >= 2


def test_json_lists_devices(problem_file: Path) -> None:
    """One object per device; the one that was not calibrated says what to do, exit status 1."""
    result = run(problem_file, "--json", "--top", "2")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)
    assert first["device_id"] == MACHINE
    assert first["configurations_total"] == 4
    assert len(first["configurations"]) == 2
    assert first["pick"] == first["configurations"][0]
    assert "kernelcast calibrate" in second["error_message"]
    assert "kernelcast calibrate" in result.stderr


def test_parameters_can_be_fixed(problem_file: Path) -> None:
    """A fixed list leaves nothing to search but local sizes."""
    result = run(problem_file, "--device", MACHINE, "--param", "LX=64", "--json")
    assert json.loads(result.stdout)[0]["searched"] == ["local_x"]


def test_ctrl_c_shows_what_is_there(problem_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 130, the devices that were done are shown, and how to go on."""
    whole = tune_on_device

    def interrupt(space: SearchSpace, device: DeviceDescription, **rest: Any) -> TuneReport:  # noqa: ANN401 - as `tune_on_device`
        if device.id != MACHINE:
            raise KeyboardInterrupt
        return whole(space, device, **rest)

    monkeypatch.setattr("kernelcast.cli.tune.tune_on_device", interrupt)
    result = run(problem_file)
    assert result.exit_code == 130
    assert "use: LX=" in result.stdout
    assert "goes on where this ended" in result.stderr


def test_table_has_columns_for_what_is_known() -> None:
    """Sampled and measured times have columns where there are any."""
    one = TunedConfiguration(
        number=0, parameters={"LX": 8}, local_size=(8, 2), predicted_s=0.001, limiter="L1"
    )
    report = TuneReport(
        problem="p", kernel="k", device="A", device_id="a", names=("LX",),
        models=TuneModels.ANALYTIC, configurations=(one,), models_s=0.1, warnings=("beware",),
    )  # fmt: skip
    names = [*list_best(report, top=1).columns]
    assert names == ["LX", "local size", "predicted", "limited by"]
    measured = replace(report, configurations=(replace(one, sampled_s=0.002, runs_s=(0.003,)),))
    names = [*list_best(measured, top=1).columns]
    assert names == ["LX", "local size", "predicted", "sampled", "measured", "limited by"]
    assert list_remarks(report)[-1] == "warning: beware"


def test_nothing_possible_is_said() -> None:
    """Where every configuration is barred, no table pretends a pick."""
    barred = TunedConfiguration(number=0, parameters={"LX": 8}, obstacle="too large")
    report = TuneReport(
        problem="p", kernel="k", device="A", device_id="a", names=("LX",),
        models=TuneModels.ANALYTIC, configurations=(barred,), models_s=0.1,
    )  # fmt: skip
    assert report.pick is None
    assert "none of them can be launched" in list_remarks(report)
