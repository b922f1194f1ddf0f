from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kernelcast.launches.data_store import STORE_VARIABLE
from kernelcast.models.validation.report import report_from_json
from kernelcast.records.observation import Observation
from kernelcast.training_data.store import open_store
from support.commands import run_command
from support.observations import make_observation

run = partial(run_command, "validate", "--jobs", "1")
KERNELS, ROWS = 5, 40


def observe(number: int, devices: int = 2) -> Observation:
    """Make an observation on one of some devices, with the samples of an estimate and a pair."""
    one = make_observation(number, kernels=KERNELS, devices=devices)
    return replace(one, samples=(replace(one.samples[0], multiple=0), *one.samples))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fill the store that commands use."""
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv(STORE_VARIABLE, str(path))
    with open_store(path) as store:
        store.add_many(map(observe, range(ROWS)))
    return path


def test_devices_that_lack_kernels_end_with_status_1(place: Path) -> None:
    """The others are shown."""
    with open_store(place) as store:
        store.add(observe(2, devices=3))  # device-2
    result = run("--models", "linear", "--json")
    assert result.exit_code == 1
    assert "every model on device-2: 1 row, 1 measured" in result.stderr
    assert {one.device for one in report_from_json(result.stdout).scores} == {
        "device-0", "device-1",
    }  # fmt: skip
    assert run("--models", "linear", "--json", "--device", "device-1").exit_code == 0
