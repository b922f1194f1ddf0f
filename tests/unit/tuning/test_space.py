"""Which configurations a problem file allows, of one's own, of the examples and of other tuners."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.cli.tune import list_best
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import Access, BufferArgument, LocalArgument, ScalarArgument
from kernelcast.records.arithmetic import ArithmeticProblem, holds
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.reports.presenter import write_lines
from kernelcast.training_data.importers.tuning import TuningFiles, read_tuning
from kernelcast.tuning.ranking import cost_launch
from kernelcast.tuning.report import (
    TunedConfiguration,
    TuneModels,
    TuneReport,
    report_to_json,
    report_to_t4,
)
from kernelcast.tuning.space import read_space, read_t1

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(ROOT.glob("examples/tuning/*/*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_can_be_tuned(path: Path, machine: MachineDescription) -> None:
    """It is listed, has enough configurations, all can be launched, and the model knows them."""
    listed = (ROOT / "examples/tuning/README.md").read_text(encoding="utf-8")
    assert f"({path.parent.name}/{path.name})" in listed
    problems = [one.problem for one in read_space(path).configurations]
    assert len(problems) >= 60
    assert all(problems)
    for problem in (problems[0], problems[-1]):
        assert problem is not None
        kernel = model_kernel(problem)
        assert not kernel.facts.gaps
        assert cost_launch(kernel, problem.ndrange, read_device(machine)).seconds > 0


def test_lists_are_combined_and_restricted(problem_file: Path) -> None:
    """The last list changes fastest; sizes and options follow, what is forbidden is not there, and
    what cannot be written has an obstacle. Later lists may use parameters above."""
    space = read_space(problem_file)
    assert space.names == ("LX", "ITEMS")
    assert [tuple(one.parameters.values()) for one in space.configurations] == [
        (8, 1), (8, 4), (16, 1), (16, 4), (64, 1),
    ]  # fmt: skip
    assert [one.number for one in space.configurations] == list(range(5))
    fourth = space.configurations[3].problem
    assert fourth is not None
    assert fourth.ndrange == NDRange(global_size=(1024,), local_size=(16,))
    assert fourth.kernel.build_options == ("-DLX=16", "-DITEMS=4")
    assert read_problem(problem_file).ndrange.local_size == (8,)  # the first of each list
    # A value from outside replaces a list and the value of a parameter below it.
    space = read_space(problem_file, parameters={"LX": 16, "N": 128})
    assert space.names == ("ITEMS",)
    problems = [one.problem for one in space.configurations]
    assert [one.ndrange.global_size for one in problems if one] == [(128,), (32,)]
    first, *_, last = read_space(problem_file, parameters={"N": 32}).configurations
    assert (first.obstacle, last.problem, "64" in last.obstacle) == ("", None, True)
    text = problem_file.read_text().replace("ITEMS: [1, 4]", 'ITEMS: ["{LX} // 8", 4]')
    problem_file.write_text(text)
    found = [tuple(one.parameters.values()) for one in read_space(problem_file).configurations]
    assert found == [(8, 1), (8, 4), (16, 2), (16, 4)]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("<= 64", "< 0", "leave no configuration"),
        ("{LX} * {ITEMS}", "{LY}", r"restrictions\[0\]: \{LY\} is no parameter"),
    ],
)
def test_restrictions_that_cannot_be_are_told(
    problem_file: Path, old: str, new: str, told: str
) -> None:
    """Those that forbid everything, and unknown parameters with their place."""
    problem_file.write_text(problem_file.read_text().replace(old, new))
    with pytest.raises(InputError, match=told):
        read_space(problem_file)


def test_without_lists_local_sizes_are_searched(problem_file: Path) -> None:
    """Powers of two that divide the global size are tried."""
    text = problem_file.read_text()
    own = "get_group_id(0) * (LX * ITEMS) + get_local_id(0)"
    assert own in text
    problem_file.write_text(text.replace(own, "get_global_id(0)"))
    space = read_space(problem_file, parameters={"LX": 8, "ITEMS": 1})
    assert space.names == ("local_x",)
    sizes = [one.problem.ndrange.local_size for one in space.configurations if one.problem]
    assert sizes == [(2**power,) for power in range(2, 11)]


@pytest.mark.parametrize("text", ["1 is 2", "__import__('os')", "'a' < 'b'", "1 in (1,)", "x"])
def test_conditions_are_arithmetic_only(text: str) -> None:
    """Whatever is no comparison of numbers is refused."""
    with pytest.raises(ArithmeticProblem):
        holds(text)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 9))
def test_conditions_mean_what_they_mean_in_python(one: int, other: int, third: int) -> None:
    """Chains, and, or, not and arithmetic agree with Python's own."""
    text = f"({one}) < ({other}) + {third} <= 40 or not ({one}) % {third} and ({other}) != {third}"
    assert holds(text) == (one < other + third <= 40 or (not one % third and other != third))


@pytest.mark.parametrize(
    "kernel",
    [
        "kernel void k(global float *a, local float *t) { t[get_local_id(0)] = 1; a[0] = t[0]; }",
        "kernel void k(global float *a) { local float t[64]; t[0] = 1; a[0] = t[0]; }",
        "kernel void k(global float *a) { if (get_local_id(0) == 0) a[get_group_id(0)] = 1; }",
        "kernel void k(global float *a) { a[0] = work_group_reduce_add(1.0f); }",
        "kernel __attribute__((reqd_work_group_size(64, 1, 1))) void k(global float *a) { }",
    ],
)
def test_a_source_for_one_local_size_is_searched_by_lists_only(tmp_path: Path, kernel: str) -> None:
    """Refuses other local sizes where they would have the kernel leave its memory."""
    given = [{"buffer": "float32", "count": 64}, {"local": 256}]
    content = {
        "code": kernel, "kernel": "k", "global_size": [4096], "local_size": [64],
        "args": given if "local float *t" in kernel else given[:1],
    }  # fmt: skip
    path = tmp_path / "one.yaml"
    path.write_text(json.dumps(content))  # YAML as well
    with pytest.raises(InputError, match="right for one local size"):
        read_space(path)


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


def test_json_and_tables_show_what_is_known(report: TuneReport) -> None:
    """The pick and as many configurations as asked for, columns of sampled and measured times;
    where every configuration is barred it pretends no pick."""
    content = report_to_json(report, top=1)
    assert content["pick"]["parameters"] == {"LX": 8}
    assert content["pick"]["measured_seconds"] == 0.003
    assert len(content["configurations"]) == 1
    assert (content["configurations_total"], content["configurations_valid"]) == (3, 2)
    json.dumps(content, allow_nan=False)
    first, predicted, barred = report.configurations
    both = replace(report, configurations=(replace(first, sampled_s=0.002),))
    assert [*list_best(both, top=1).columns] == [
        "LX", "local size", "predicted", "sampled", "measured", "limited by"
    ]  # fmt: skip
    alone = replace(report, configurations=(predicted,), warnings=("beware",))
    assert [*list_best(alone, top=1).columns] == ["LX", "local size", "predicted", "limited by"]
    assert write_lines("tune.txt", report=alone)[-1] == "warning: beware"
    nothing = replace(report, configurations=(barred,))
    assert nothing.pick is None
    assert "none of them can be launched" in write_lines("tune.txt", report=nothing)
