"""The auto-tuning community's files: T1 problems are read, T4 results are written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelcast.records.arguments import Access, BufferArgument, LocalArgument, ScalarArgument
from kernelcast.records.errors import InputError
from kernelcast.training_data.importers.tuning import TuningFiles, read_tuning
from kernelcast.tuning.report import (
    TunedConfiguration,
    TuneModels,
    TuneReport,
    report_to_json,
    report_to_t4,
)
from kernelcast.tuning.space import read_t1


def make_t1(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any part of the file
    kernel = {
        "Language": "OpenCL",
        "KernelName": "add",
        "KernelFile": "add.cl",
        "CompilerOptions": ["-cl-fast-relaxed-math"],
        "GlobalSize": {"X": "ProblemSize[0] / work"},
        "LocalSize": {"X": "block_size_x"},
        "ProblemSize": [4096],
        "Arguments": [
            {"Type": "float", "MemoryType": "Vector", "Size": "ProblemSize[0]",
             "FillType": "Random", "AccessType": "ReadOnly"},
            {"Type": "float", "MemoryType": "Vector", "Size": 4096, "FillType": "Constant",
             "FillValue": 0, "AccessType": "WriteOnly"},
            {"Type": "int32", "MemoryType": "Scalar", "FillValue": 7},
            {"Type": "float", "MemoryType": "Local", "Size": "block_size_x"},
        ],
    }  # fmt: skip
    space = {
        "TuningParameters": [
            {"Name": "block_size_x", "Type": "int", "Values": "[16, 32, 64]"},
            {"Name": "work", "Type": "int", "Values": "list(range(1, 3))"},
        ],
        "Conditions": [
            {"Parameters": ["block_size_x", "work"], "Expression": "block_size_x * work < 128"}
        ],
    }
    kernel |= changes.pop("kernel", {})
    for name in [one for one, value in kernel.items() if value is None]:
        del kernel[name]
    return {"ConfigurationSpace": space | changes.pop("space", {}), "KernelSpecification": kernel}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "add.cl").write_text("kernel void add() {}")
    return tmp_path


def write(folder: Path, content: object) -> Path:
    path = folder / "add.json"
    path.write_text(json.dumps(content))
    return path


def test_configurations_of_a_t1_file(folder: Path) -> None:
    """Parameters become macros, sizes are evaluated, conditions hold."""
    space = read_t1(write(folder, make_t1()))
    found = [tuple(one.parameters.values()) for one in space.configurations]
    assert found == [(16, 1), (16, 2), (32, 1), (32, 2), (64, 1)]
    problem = space.configurations[3].problem
    assert problem is not None
    assert problem.ndrange.global_size == (2048,)
    assert problem.ndrange.local_size == (32,)
    assert problem.kernel.build_options == (
        "-cl-fast-relaxed-math",
        "-Dblock_size_x=32",
        "-Dwork=2",
    )
    given, result, scalar, local = problem.arguments
    assert isinstance(given, BufferArgument)
    assert isinstance(result, BufferArgument)
    assert (given.count, given.access, result.access) == (4096, Access.READ, Access.WRITE)
    assert isinstance(scalar, ScalarArgument)
    assert scalar.values == (7,)
    assert local == LocalArgument(bytes=128)


@pytest.mark.parametrize(
    ("kernel", "place", "global_size"),
    [
        # Kernel Tuner divides the problem by the block and by the grid's divisors.
        ({"GlobalSize": None, "LocalSize": None, "GridDivX": ["block_size_x", "work"]}, 3, 2048),
        # CUDA counts work-groups.
        ({"GlobalSizeType": "CUDA", "GlobalSize": {"X": "10"}}, 0, 160),
    ],
)
def test_sizes_as_others_count_them(
    folder: Path, kernel: dict[str, object], place: int, global_size: int
) -> None:
    """Sizes that are left out, or that count work-groups, are read as well."""
    content = make_t1(kernel=kernel)
    problem = read_t1(write(folder, content)).configurations[place].problem
    assert problem is not None
    assert problem.ndrange.global_size == (global_size,)
    assert problem.ndrange.local_size == ((32,) if place else (16,))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "holds a list; expected a JSON object"),
        ({"ConfigurationSpace": {}}, "has no ConfigurationSpace and KernelSpecification"),
        (make_t1(kernel={"Language": "CUDA"}), "Language is CUDA"),
        (make_t1(kernel={"KernelFile": "none.cl"}), "there is no file"),
        (make_t1(kernel={"KernelName": None}), "'KernelName'"),
        (make_t1(space={"Conditions": [{"Expression": "block_size_x < 0"}]}), "no configuration"),
        (make_t1(space={"Conditions": [{"Expression": "other < 0"}]}), "'other' is not allowed"),
        (
            make_t1(space={"TuningParameters": [{"Name": "a", "Values": "open('x')"}]}),
            "expected a list of numbers",
        ),
    ],
)
def test_files_that_cannot_be_used_say_why(folder: Path, content: object, message: str) -> None:
    """Each complaint names the file and what is wrong; nothing of it is executed."""
    path = write(folder, content)
    with pytest.raises(InputError, match=message) as caught:
        read_t1(path)
    assert "add.json" in str(caught.value)


@pytest.fixture
def report() -> TuneReport:
    """Give a report with one measured, one refused and one predicted configuration."""
    predicted = TunedConfiguration(
        number=1, parameters={"LX": 16}, local_size=(16,), global_size=(64,), predicted_s=0.001
    )
    return TuneReport(
        problem="add", kernel="add", device="A device", device_id="a-device", names=("LX",),
        models=TuneModels.ANALYTIC, models_s=0.5, measuring_s=1.0,
        configurations=(
            replace(predicted, number=0, parameters={"LX": 8}, runs_s=(2e-3, 4e-3, 3e-3),
                    build_s=0.25),
            predicted,
            replace(predicted, number=2, parameters={"LX": 32}, obstacle="no answer within 60 s"),
        ),
    )  # fmt: skip


def test_t4_results_are_read_by_the_importer(tmp_path: Path, report: TuneReport) -> None:
    """Run times are in milliseconds; a prediction is no result."""
    content = report_to_t4(report)
    assert content["metadata"] == {"timeunit": "milliseconds"}
    first, second = content["results"]
    assert first["times"] == {"compilation": 250, "runtimes": pytest.approx([2, 4, 3])}
    assert (first["invalidity"], second["invalidity"]) == ("correct", "timeout")
    path = tmp_path / "t4.json"
    path.write_text(json.dumps(content))
    measured, failures = read_tuning(TuningFiles(results=path, device="A device", time_unit="ms"))
    assert [one.runs.median_s for one in measured] == pytest.approx([0.003])
    assert [one.kind for one in failures] == ["timeout"]


def test_json_of_a_report(report: TuneReport) -> None:
    """The pick, and as many configurations as asked for."""
    content = report_to_json(report, top=1)
    assert content["pick"]["parameters"] == {"LX": 8}
    assert content["pick"]["measured_seconds"] == 0.003
    assert len(content["configurations"]) == 1
    assert (content["configurations_total"], content["configurations_valid"]) == (3, 2)
    json.dumps(content, allow_nan=False)
