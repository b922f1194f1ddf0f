import pytest
from click.testing import CliRunner

from kernelcast.cli.app import app
from kernelcast.launches.data_folder import data_folder
from kernelcast.records.device import DeviceDescription
from kernelcast.records.feature_vector import group_of
from kernelcast.training_data.store import open_store

pytestmark = pytest.mark.device

WORDS = [
    "--kernels", "dot_product", "--sizes", "2", "--local-sizes", "1", "--runs", "2",
    "--shortest", "0.02", "--longest", "0.06", "--json",
]  # fmt: skip


def test_rows_hold_what_models_need(first_device: DeviceDescription) -> None:
    """A row has features of every group, three default samples, and whole runs."""
    ran = CliRunner().invoke(app, ["collect", "--device", first_device.id, *WORDS])
    assert ran.exit_code == 0, ran.stderr
    with open_store(data_folder() / "observations.sqlite") as store:
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
