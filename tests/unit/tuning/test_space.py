"""Which configurations a problem file allows, of one's own and of the examples."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arithmetic import ArithmeticProblem, holds
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.tuning.ranking import cost_launch
from kernelcast.tuning.space import read_space

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
    """The last list changes fastest; sizes and options follow, what is forbidden is not there."""
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


def test_values_of_a_list_may_use_parameters_above(problem_file: Path) -> None:
    """A later list is computed anew for each earlier value."""
    text = problem_file.read_text().replace("ITEMS: [1, 4]", 'ITEMS: ["{LX} // 8", 4]')
    problem_file.write_text(text)
    found = [tuple(one.parameters.values()) for one in read_space(problem_file).configurations]
    assert found == [(8, 1), (8, 4), (16, 2), (16, 4)]


def test_configurations_that_cannot_be_written_say_why(problem_file: Path) -> None:
    """A local size above the global size is an obstacle of one configuration, no error of all."""
    first, *_, last = read_space(problem_file, parameters={"N": 32}).configurations
    assert first.problem is not None
    assert last.problem is None
    assert "64" in last.obstacle


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
