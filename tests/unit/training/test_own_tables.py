import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from kernelcast.training.table import load_training_table, read_observations
from support.commands import run_command

PROBLEM = """\
code: kernel void scale(global float *x) { x[get_global_id(0)] *= 2; }
kernel: scale
global_size: ["{N}"]
local_size: [64]
parameters: {N: 4096}
args: [{buffer: float32, count: "{N}", init: zeros}]
"""


def write(folder: Path, columns: dict[str, list[object]], ending: str = "csv") -> Path:
    """Write a table."""
    path, table = folder / f"rows.{ending}", pa.table(columns)
    if ending == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return path


def make_columns(kernels: int = 6) -> dict[str, list[object]]:
    """Make measurements of kernels at sizes, each with a rate of its own."""
    places = [(kernel, size) for kernel in range(kernels) for size in (1000, 2000, 4000, 8000)]
    return {
        "kernel": [f"k{kernel}" for kernel, _ in places],
        "device": ["My Device"] * len(places),
        "N": [size for _, size in places],
        "seconds": [1e-4 * size * (1 + 0.1 * kernel) for kernel, size in places],
    }


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_three_columns_and_a_size_are_enough(tmp_path: Path, ending: str) -> None:
    """Named numbers beside the required columns become sizes to learn from, in both formats."""
    path = write(tmp_path, make_columns() | {"__index_level_0__": [*range(24)]}, ending)
    rows = [*read_observations([path])]
    assert len({one.key for one in rows}) == len(rows) == 24
    one = rows[0]
    assert (one.launch.kernel.label, one.launch.device.id) == ("k0", "my-device")
    assert (one.launch.parameters, one.seconds) == ({"N": 1000}, 0.1)
    assert one.features is not None
    assert one.features.as_dict() == {"static.size_n_count": 1000.0}


def test_features_sizes_and_noise_are_taken_as_they_are_called(tmp_path: Path) -> None:
    """Index spaces, repeated runs and features by our names."""
    path = write(tmp_path, {
        "kernel": ["scale"], "application": ["demo"], "device": ["d"], "seconds": [0.5],
        "noise": [0.02], "runs": [5], "global_size": ["1024.0 x 8"], "local_size": ["64x1"],
        "counters.flops_per_work_item": [3.0],
    })  # fmt: skip
    (one,) = read_observations([path])
    assert (one.runs.noise, one.runs.run_count) == (0.02, 5)
    assert one.launch.work_group_count == 128
    assert one.features is not None
    assert one.features.as_dict()["counters.flops_per_work_item"] == 3.0
    assert one.launch.kernel.label == "demo/scale"


def test_a_problem_file_gives_what_the_source_tells(tmp_path: Path) -> None:
    """Columns called as its parameters are replace them."""
    (tmp_path / "scale.yaml").write_text(PROBLEM, encoding="utf-8")
    path = write(tmp_path, {
        "kernel": ["scale"] * 2, "device": ["d"] * 2, "seconds": [0.1, 0.2], "N": [1024, 2048],
        "problem": ["scale.yaml"] * 2,
    })  # fmt: skip
    first, second = read_observations([path])
    assert (first.launch.work_group_count, second.launch.work_group_count) == (16, 32)
    assert second.features is not None
    values = second.features.as_dict()
    assert values["static.buffer_bytes"] == 8192
    assert values["static.size_n_count"] == 2048


def test_a_model_without_samples_is_trained_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train --rows` says that it takes the model that needs none, how good it is, and as `data
    import` does which rows it leaves out."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    columns = make_columns()
    columns["N"][3] = None
    path = write(tmp_path, columns)
    result = run_command("train", "--rows", path, "--jobs", 1, "--json")
    assert result.exit_code == 0, result.stderr
    assert "the model static is trained" in result.stderr
    assert "1 of 24 rows are left out, they have no time that static starts from" in result.stderr
    (one,) = json.loads(result.stdout)
    assert (one["name"], one["rows"]) == ("static/my-device", 23)
    (score,) = one["validation"]
    assert score["mean"] < 0.3
    assert np.isnan(load_training_table([path]).linear_s).all()
    imported = run_command("data", "import", path)
    assert "1 rows have no static.size_n_count" in imported.stdout


def test_exact_copies_of_rows_count_once_and_are_told(tmp_path: Path) -> None:
    """A table that was pasted twice teaches as much as one; repeats with other times stay."""
    columns = {name: [*values, *values, values[0]] for name, values in make_columns().items()}
    columns["seconds"][-1] = 0.2
    told: list[str] = []
    table = load_training_table([write(tmp_path, columns)], tell=told.append)
    assert len(table) == 25
    assert told == ["24 observations are left out: exact copies of other rows, which count once"]
    columns["seconds"] = [2 * one for one in columns["seconds"]]
    (tmp_path / "b").mkdir()
    load_training_table([tmp_path / "rows.csv", write(tmp_path / "b", columns)], tell=told.append)
    assert "other times of the same measurement" in told[-1]
