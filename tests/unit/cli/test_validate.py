from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.launches.data_store import STORE_VARIABLE
from kernelcast.models.validation.report import report_from_json
from kernelcast.records.observation import Observation
from kernelcast.training_data.store import open_store
from support.observations import make_observation

KERNELS, ROWS = 5, 40


def observe(number: int) -> Observation:
    """Make an observation on one of two devices, with the samples of an estimate and a pair."""
    one = make_observation(number, kernels=KERNELS, devices=2)
    (samples,) = one.samples
    usual = replace(samples, multiple=0)
    return replace(one, samples=(usual, samples))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fill the store that commands use."""
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "home"))
    monkeypatch.setenv(STORE_VARIABLE, str(path))
    with open_store(path) as store:
        store.add_many(map(observe, range(ROWS)))
    return path


def run(*words: str | Path) -> Result:
    """Run `kernelcast validate` in this process."""
    return CliRunner().invoke(app, ["validate", "--jobs", "1", *map(str, words)])


def test_devices_that_lack_kernels_end_with_status_1(place: Path) -> None:
    """The others are shown."""
    with open_store(place) as store:
        one = make_observation(2, kernels=KERNELS, devices=3)  # device-2
        store.add(replace(one, samples=(replace(one.samples[0], multiple=0),)))
    result = run("--models", "linear", "--json")
    assert result.exit_code == 1
    assert "every model on device-2: 1 row, 1 measured" in result.stderr
    assert {one.device for one in report_from_json(result.stdout).scores} == {
        "device-0", "device-1",
    }  # fmt: skip
    assert run("--models", "linear", "--json", "--device", "device-1").exit_code == 0
