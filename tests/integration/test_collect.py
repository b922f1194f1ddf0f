import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kernelcast.cli.app import app
from kernelcast.records.device import DeviceDescription
from kernelcast.records.feature_vector import group_of
from kernelcast.records.observation import ObservationFlag
from kernelcast.training_data.check import check_store
from kernelcast.training_data.store import open_store

pytestmark = pytest.mark.device

WORDS = [
    "--kernels", "dot_product", "--sizes", "2", "--local-sizes", "1", "--runs", "2",
    "--shortest", "0.02", "--longest", "0.06", "--json",
]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the data folder of all collections here."""
    folder = tmp_path_factory.mktemp("collected")
    with pytest.MonkeyPatch.context() as changes:
        changes.setenv("KERNELCAST_DATA", str(folder))
        yield folder


@pytest.fixture(scope="module")
def killed(data: Path, first_device: DeviceDescription) -> list[str]:
    """Kill a collection once it has a row; give the launches that are stored."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelcast", "collect", "--device", first_device.id, *WORDS],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    path = data / "observations.sqlite"
    try:
        while process.poll() is None and not (path.is_file() and read_launches(data)):
            time.sleep(0.05)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return read_launches(data)


@pytest.fixture(scope="module")
def resumed(killed: list[str], first_device: DeviceDescription) -> dict[str, Any]:
    """Give what the same command says the second time."""
    del killed
    return collect(first_device)


def collect(device: DeviceDescription) -> dict[str, Any]:
    """Collect; give what the command says."""
    ran = CliRunner().invoke(app, ["collect", "--device", device.id, *WORDS])
    assert ran.exit_code == 0, ran.stderr
    (answer,) = json.loads(ran.stdout)
    assert isinstance(answer, dict)
    return answer


def read_launches(data: Path) -> list[str]:
    """Give the launches of all rows."""
    with open_store(data / "observations.sqlite") as store:
        assert list(check_store(store)) == []
        return sorted(one.launch.key for one in store.find())


def test_kill_loses_no_row_and_the_rest_follows(
    data: Path, first_device: DeviceDescription, killed: list[str], resumed: dict[str, Any]
) -> None:
    """SIGKILL keeps the rows that are there; the same command measures just the missing ones."""
    after = read_launches(data)
    # On a busy machine a launch may seem to take too long for a row.
    assert set(killed) < set(after) or (resumed["skipped"] and set(killed) == set(after))
    assert len(after) == len(set(after)) == resumed["measured"] + resumed["present"]
    assert resumed["failures"] == []
    with open_store(data / "observations.sqlite") as store:
        calm = sum(ObservationFlag.CONTAMINATED not in one.flags for one in store.find())
    # A disturbed row is measured again each time, a calm one never.
    answer = collect(first_device)
    assert answer["present"] == calm, answer
    assert read_launches(data) == after


@pytest.mark.usefixtures("resumed")
def test_rows_hold_what_models_need(data: Path) -> None:
    """A row has features of every group, three default samples, and whole runs."""
    with open_store(data / "observations.sqlite") as store:
        rows = list(store.find())
    assert rows
    for row in rows:
        assert row.features is not None
        groups = {group_of(name).value for name in row.features.names}
        assert {"static", "compiler", "sampled", "counters"} <= groups
        defaults = [one for one in row.samples if one.multiple == 0]
        assert [one.window_set for one in defaults] == [0, 1, 2]
        assert all(one.linear_s is not None and one.linear_s > 0 for one in row.samples)
        assert row.runs.run_count in {2, 4}
        assert row.launch.work_group_count is not None
        assert row.launch.work_group_count >= 256
