import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import kernelcast
from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.collection.remodelling import REMODELLED, remodel_rows
from kernelcast.training_data.applications import find_kernels
from kernelcast.training_data.parquet import read_parquet
from kernelcast.training_data.store import Selection, open_store

MEASURED = Path(kernelcast.__file__).parent / "training_data" / "measured"
DEVICE = "pocl-skylake-avx512-amd-91ef"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a user whose device is described as that of the shipped rows."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    (tmp_path / "machines").mkdir()
    shutil.copy(MEASURED / f"{DEVICE}.yaml", tmp_path / "machines")
    return tmp_path


def test_rows_get_the_analytic_features_of_today(home: Path) -> None:
    """Samples, times and other features stay; what cannot be had is counted by the reason."""
    rows = [*read_parquet(MEASURED / f"{DEVICE}.parquet")]
    one = next(row for row in rows if row.launch.kernel.label == "NVIDIA/blackscholes/blackscholes")
    elsewhere = replace(
        one, launch=replace(one.launch, device=replace(one.launch.device, id="elsewhere"))
    )
    unknown = replace(
        one, launch=replace(one.launch, kernel=replace(one.launch.kernel, name="unknown"))
    )
    with open_store(home / "rows.sqlite") as store:
        store.add_many([one, elsewhere, unknown])
        counts = remodel_rows(store, Selection(), find_kernels("blackscholes"))
        made = store.get(one.key)
        assert store.get(elsewhere.key) == elsewhere
    assert counts.pop(REMODELLED) == 1
    assert {reason.partition(":")[0] for reason in counts} == {
        "elsewhere",
        "no problem file of the kernel is known, or no local size; name files by --problems",
    }
    assert (made.samples, made.runs, made.launch) == (one.samples, one.runs, one.launch)
    assert made.versions["cpu_model"] == str(REVISION)
    assert made.features is not None
    assert one.features is not None
    new, old = made.features.as_dict(), one.features.as_dict()
    assert new["analytic.estimate_s"] > 0
    plain = {name: value for name, value in old.items() if not name.startswith("analytic.")}
    assert plain.items() <= new.items()
