import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelcast.records.errors import BrokenDeviceError
from kernelcast.records.feature_vector import group_of
from kernelcast.sampling.discovery import find_devices
from kernelcast.training_data.check import check_store
from kernelcast.training_data.store import open_store

pytestmark = pytest.mark.device

WORDS = [
    "--kernels", "dot_product", "--sizes", "2", "--runs", "2", "--shortest", "0.02",
    "--longest", "0.06", "--json",
]  # fmt: skip


def start(data: Path) -> subprocess.Popen[str]:
    """Start a tiny collection on the first device, in a session of its own."""
    device, _ = find_devices()[0]
    return subprocess.Popen(
        [sys.executable, "-m", "kernelcast", "collect", "--device", device.id, *WORDS],
        env={**os.environ, "KERNELCAST_DATA": str(data)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def read_launches(data: Path) -> list[str]:
    """Give the launches of all rows."""
    with open_store(data / "observations.sqlite") as store:
        assert list(check_store(store)) == []
        return sorted(one.launch.key for one in store.find())


def wait_for_a_row(data: Path) -> None:
    """Wait until the first row is stored."""
    path = data / "observations.sqlite"
    for _ in range(600):
        if path.is_file() and read_launches(data):
            return
        time.sleep(0.1)
    pytest.fail("no row within a minute")


def test_kill_loses_no_row_and_the_rest_follows(tmp_path: Path) -> None:
    """SIGKILL keeps the rows that are there; the same command measures just the missing ones."""
    try:
        process = start(tmp_path)
    except BrokenDeviceError as error:
        pytest.skip(f"the device is broken: {error}")
    wait_for_a_row(tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = read_launches(tmp_path)
    output, _ = start(tmp_path).communicate()
    (answer,) = json.loads(output)
    after = read_launches(tmp_path)
    assert set(before) < set(after)
    assert len(after) == len(set(after)) == answer["measured"] + answer["present"]
    assert answer["failures"] == []
    output, _ = start(tmp_path).communicate()
    (answer,) = json.loads(output)
    # A disturbed row is measured again each time, a calm one never.
    assert answer["present"] + answer["measured"] == len(after)
    assert read_launches(tmp_path) == after


def test_rows_hold_what_models_need(tmp_path: Path) -> None:
    """A row has features of every group, three default samples, pairs, and whole runs."""
    process = start(tmp_path)
    process.communicate()
    with open_store(tmp_path / "observations.sqlite") as store:
        rows = list(store.find())
    assert rows
    for row in rows:
        assert row.features is not None
        groups = {group_of(name).value for name in row.features.names}
        assert {"static", "compiler", "sampled", "counters"} <= groups
        defaults = [one for one in row.samples if one.multiple == 0]
        assert [one.window_set for one in defaults] == [0, 1, 2]
        assert all(one.linear_s is not None and one.linear_s > 0 for one in row.samples)
        assert {one.multiple for one in row.samples} >= {0, 1}
        assert row.runs.run_count in {2, 4}
        assert row.launch.work_group_count is not None
        assert row.launch.work_group_count >= 256
