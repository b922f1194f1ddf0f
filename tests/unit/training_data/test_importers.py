import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernelcast.records.arithmetic import evaluate_size
from kernelcast.records.errors import InputError
from kernelcast.records.frames import to_frame
from kernelcast.records.observation import Origin
from kernelcast.training_data.importers.tables import ImportFileError, find_data_set
from kernelcast.training_data.importers.tuning import TuningFiles, read_tuning
from kernelcast.training_data.store import open_store
from kernelcast.training_data.summary import check_store

REFERENCE = Path(__file__).parents[4] / "shared/reference/datasets"
FILES = {
    "aiwc_opendwarfs": ("aiwc_opendwarfs/configs.parquet", 1560, 37, 15),
    "amaris_nca": ("amaris_nca/data.parquet", 9390, 9, 9),
    "neusight": ("neusight/data.parquet", None, None, None),
    "rajaperf_gpu": ("rajaperf/lassen_v100_configs.parquet", 928, 60, 1),
    "rajaperf_cpu": ("rajaperf/quartz_cpu_runs.parquet", 469, 67, 1),
}
WHOLE = [name for name, (_, rows, _, _) in FILES.items() if rows and rows < 2000]


def cut(name: str, folder: Path, rows: int) -> Path:
    """Copy the first rows of a data set."""
    path = folder / f"{name}.parquet"
    pq.write_table(pq.read_table(REFERENCE / FILES[name][0]).slice(0, rows), path)
    return path


def test_rows_mark_what_they_lack_and_join_repeated_runs(tmp_path: Path) -> None:
    """AIWC's are medians of forty runs without index space, single runs or noise; ten runs of
    RAJAPerf are one observation with their median."""
    path = cut("aiwc_opendwarfs", tmp_path, 1)
    (one,) = find_data_set(path).read(path)
    (row,) = pq.read_table(path).to_pylist()
    assert (one.seconds, one.runs.run_count) == (row["time_s"], 40)
    assert (one.launch.ndrange, one.runs.noise, one.runs.durations_s) == (None, None, ())
    assert one.features is not None
    assert one.features.as_dict()["static.work_items_count"] == row["aiwc_workitems"]
    assert one.launch.parameters == {"input_size": "tiny"}
    path = cut("rajaperf_cpu", tmp_path, 3685)
    repeated = [one for one in find_data_set(path).read(path) if one.runs.run_count == 10]
    assert len(repeated) > 100
    one = repeated[0]
    assert min(one.runs.durations_s) <= one.seconds <= max(one.runs.durations_s)
    assert one.launch.device.driver == "gcc-10.3.1 O0"


@pytest.mark.parametrize("name", WHOLE)
def test_data_sets_are_read_whole(name: str, tmp_path: Path) -> None:
    """Brings every row of a data set into a store that the check finds sound."""
    file, rows, kernels, devices = FILES[name]
    found = find_data_set(REFERENCE / file)
    assert found.name == name
    with open_store(tmp_path / "rows.sqlite") as store:
        assert store.add_many(found.read(REFERENCE / file)).added == rows
        assert list(check_store(store)) == []
        table = to_frame(store.find())
    assert len(set(table["kernel"])) == kernels
    assert len(set(table["device_id"])) == devices
    assert set(table["origin"]) == {Origin.IMPORTED.value}


def test_amaris_has_grids_and_counters_in_our_units(tmp_path: Path) -> None:
    """Turns CUDA's grid into work-items, MHz into Hz, and leaves out what overflowed."""
    path = tmp_path / "some.parquet"
    whole = pq.read_table(REFERENCE / FILES["amaris_nca"][0])
    pq.write_table(whole.take(list(range(0, whole.num_rows, 50))), path)
    rows = pq.read_table(path).to_pylist()
    absent = 0
    for one, row in zip(find_data_set(path).read(path), rows, strict=True):
        assert (one.seconds, one.samples) == (row["time_s"], ())
        assert one.launch.work_group_count == row["n_workgroups"]
        assert one.features is not None
        have = one.features.as_dict()
        assert have["static.work_items_per_work_group"] == row["wg_size"]
        assert have["analytic.machine_clock_cycles_per_s"] == row["dev_clock_mhz"] * 1e6
        assert have["compiler.registers_per_work_item"] == row["regs_per_thread"]
        absent += row["ctr_issued_ipc"] is None
        assert ("counters.nvprof_issued_ipc_ratio" in have) == (row["ctr_issued_ipc"] is not None)
    assert absent


def test_neusight_leaves_sums_over_kernels_out(tmp_path: Path) -> None:
    """Skips rows of several kernels, and tells repeated measurements apart; takes figures of
    devices from the table beside the file, and refuses a broken one."""
    table, path = pq.read_table(REFERENCE / FILES["neusight"][0]), tmp_path / "some.parquet"
    several = table.filter(pa.compute.greater(table["n_kernels"], 1)).slice(0, 5)
    single = table.slice(0, 5)
    pq.write_table(pa.concat_tables([several, single, single]), path)
    found = list(find_data_set(path).read(path))
    assert len({one.key for one in found}) == len(found) == 10
    assert sum(one.measurement != "" for one in found) >= 5
    assert not any("machine" in name for one in found for name in one.features.values)  # type: ignore[union-attr]  # all have features
    devices = tmp_path / "devices.csv"
    devices.write_bytes((REFERENCE / "neusight/devices.csv").read_bytes())
    one = next(iter(find_data_set(path).read(path)))
    assert one.features is not None
    assert one.features.as_dict()["analytic.machine_bandwidth_bytes_per_s"] == 1555e9
    devices.write_text("Device,Mem_Bw\nx,fast\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match="no table of devices"):
        next(iter(find_data_set(path).read(path)))


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    """Names those that have an importer, or the column that one lacks."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ImportFileError, match=r"another kind.*rajaperf_gpu"):
        find_data_set(tmp_path / "a.parquet")
    path = cut("aiwc_opendwarfs", tmp_path, 5)
    pq.write_table(pq.read_table(path).drop_columns(["time_s"]), path)
    with pytest.raises(ImportFileError, match=r"lacks a column: .*time_s"):
        list(find_data_set(path).read(path))


# Auto-tuners ---------------------------------------------------------------------------------

T1: Mapping[str, Any] = {
    "General": {"BenchmarkName": "convolution"},
    "ConfigurationSpace": {"TuningParameters": []},
    "KernelSpecification": {
        "KernelName": "convolution_kernel",
        "Language": "CUDA",
        "GlobalSizeType": "CUDA",
        "Device": {"Name": "A100"},
        "LocalSize": {"X": "block_size_x", "Y": "block_size_y", "Z": "1"},
        "GlobalSize": {"X": "ceil(ProblemSize[0] / block_size_x)", "Y": "(4096 // block_size_y)"},
        "ProblemSize": [1000, 4096],
    },
}
VALID = {
    "timestamp": "2023-12-21 10:44:42.236642+00:00",
    "configuration": {"block_size_x": 16, "block_size_y": 4, "use_padding": True},
    "times": {"runtimes": [12.0, 12.5, 13.0], "compilation": 600.0},
    "invalidity": "correct",
    "correctness": 1,
    "measurements": [{"name": "time", "value": 12.4, "unit": "ms"}],
    "objectives": ["time"],
}
INVALID = {
    "configuration": {"block_size_x": 1024, "block_size_y": 4},
    "times": {"runtimes": []},
    "invalidity": "compile",
    "correctness": 0,
}


def write(folder: Path, name: str, content: object) -> Path:
    """Write JSON."""
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def tuned(folder: Path, *results: object, problem: object = T1, **options: str) -> TuningFiles:
    """Write a tuner's files."""
    return TuningFiles(
        results=write(folder, "t4.json", {"schema_version": "1.0.0", "results": results}),
        problem=None if problem is None else write(folder, "t1.json", problem),
        **options,
    )


def test_tuning_results_become_observations(tmp_path: Path) -> None:
    """Evaluates sizes, converts times by the unit of the measurement, keeps failures apart."""
    (one,), (failure,) = read_tuning(tuned(tmp_path, VALID, INVALID))
    assert one.runs.durations_s == pytest.approx((0.012, 0.0125, 0.013))
    assert one.launch.kernel.label == "t4/convolution/convolution_kernel"
    assert one.launch.device.name == "A100"
    assert one.launch.ndrange is not None
    assert one.launch.ndrange.local_size == (16, 4)
    assert one.launch.ndrange.group_counts == (63, 1024)
    assert one.launch.parameters["use_padding"] is True
    assert str(one.measured_at) == VALID["timestamp"]
    assert failure.kind == "compile"
    assert failure.launch.parameters["block_size_x"] == 1024


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        ({"GlobalSizeType": "OpenCL", "GlobalSize": {"X": "1024", "Y": "8"}}, (64, 2)),
        ({"GlobalSize": {"X": "__import__('os').getpid()"}}, None),
    ],
    ids=["of work-items", "no arithmetic"],
)
def test_sizes_are_what_the_tuner_says(
    tmp_path: Path, change: dict[str, object], groups: tuple[int, ...] | None
) -> None:
    """Global sizes may be work-items; what is not understood gives neither sizes nor features."""
    problem = {"KernelSpecification": {**T1["KernelSpecification"], **change}}
    (one,), _ = read_tuning(tuned(tmp_path, VALID, problem=problem))
    ndrange = one.launch.ndrange
    assert (None if ndrange is None else ndrange.group_counts) == groups
    assert one.features is not None
    assert bool(one.features.values) == (groups is not None)


def test_results_alone_need_device_and_unit(tmp_path: Path) -> None:
    """Asks for what no file says, and takes it from the caller."""
    bare = {**VALID, "measurements": []}
    with pytest.raises(ImportFileError, match="on which device"):
        read_tuning(tuned(tmp_path, bare, problem=None))
    with pytest.raises(ImportFileError, match="result 0: does not say the unit"):
        read_tuning(tuned(tmp_path, bare, problem=None, device="A100"))
    files = tuned(tmp_path, bare, problem=None, device="A100", time_unit="us")
    (one,), _ = read_tuning(files)
    assert one.seconds == pytest.approx(12.5e-6)
    assert (one.launch.kernel.name, one.launch.ndrange) == ("t4", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: [], "holds a list"),
        (lambda content: {}, "no list `results`"),
        (lambda content: {**content, "schema_version": "2.0.0"}, "T4 2.0.0.*reads version 1"),
        (lambda content: {**content, "results": [{}]}, "is no entry of T4 .*configuration"),
        (lambda content: {**content, "results": [3]}, "result 0: is no entry of T4"),
        (lambda content: {**content, "results": [{**VALID, "times": {"runtimes": [-1.0]}}]},
         "result 0: "),
        (lambda content: {**content, "results": [{**VALID, "times": {"runtimes": ["fast"]}}]},
         "result 0: is no entry of T4 .*fast"),
        # A unit that does not fit the runs is not believed.
        (lambda content: {**content, "results": [
            {**VALID, "measurements": [{"name": "time", "value": 0.0124, "unit": "s"}]}
        ]}, "does not say the unit"),
        (lambda content: json.dumps(content)[:-5], "is it complete"),
    ],
)  # fmt: skip
def test_malformed_results_are_refused(
    tmp_path: Path, change: Callable[[Any], object], message: str
) -> None:
    """Names the file and the result that is wrong."""
    files = tuned(tmp_path, VALID)
    write(tmp_path, "t4.json", change(json.loads(files.results.read_text(encoding="utf-8"))))
    with pytest.raises(ImportFileError, match=message):
        read_tuning(files)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel;device;seconds\na;b;1\n", "has the columns kernel;device;seconds; .* with commas"),
        ("kernel,device,seconds\n", "has no rows"),
        ("kernel,device,seconds\na,b,1,2\n", "row 1: has more cells than"),
        ("kernel,device,seconds\na,b,1\na,b,\n", "row 2: seconds: no value"),
        ("kernel,device,seconds\na,b,3 ms\n", "row 1: column seconds: .*3 ms"),
        ("kernel,device,seconds\na,b,-1\n", "row 1: .*expected a positive"),
        ("kernel,seconds\na,1\n", "add device"),
        ("kernel,device,seconds,global_size\na,b,1,1.5\n", "whole numbers"),
        ("kernel,device,seconds,N,N\na,b,1,5,6\n", "several columns 'N'"),
    ],
)
def test_malformed_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """Names the row and the column that is wrong."""
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ImportFileError, match=message):
        list(find_data_set(path).read(path))


def test_a_table_saved_by_excel_is_read(tmp_path: Path) -> None:
    """Reads CSV with a mark of its encoding; a row without sizes is sound."""
    path = tmp_path / "own.csv"
    path.write_bytes("kernel,device,seconds,how\r\nü,b,1,x\r\n".encode("utf-8-sig"))
    with open_store(tmp_path / "rows.sqlite") as store:
        assert store.add_many(find_data_set(path).read(path)).added == 1
        assert list(check_store(store)) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("2**10", 1024), ("(n // 3) * m[1]", 15), ("max(n, 3) % 4", 2), ("int(7 / 2)", 3), (12, 12)],
)
def test_sizes_are_evaluated(text: str, value: int) -> None:
    """Evaluates arithmetic over configurations."""
    assert evaluate_size(text, {"n": 10, "m": [1, 5]}) == value


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "2**64 * 2", "n.real", "open('x')", "[1]", "lambda: 1", "", "0", "-4", "n +",
     "unknown", "1 / 0", "m", "(" * 400, "'a' * 3", "n if n else 2"],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    """Evaluates nothing that is no arithmetic, or has no positive result."""
    with pytest.raises(InputError, match="size"):
        evaluate_size(text, {"n": 10, "m": [1, 5]})
