"""What a compiler's code adds to a launch on a GPU."""

import pytest

from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling import estimating
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.records.errors import MissingExtraError
from kernelcast.records.problem import Problem
from support.problems import buffer_of, number_of, write_problem

SOURCE = """
kernel void power(global float *a, int n)
{
    float x = a[get_global_id(0)];
    for (int k = 0; k < n; k++) x = x * x + 1.0f;
    a[get_global_id(0)] = x;
}
"""


def make_problem(turns: int) -> Problem:
    """Make a launch whose argument says how often its loop runs."""
    given = (buffer_of("float32", 1 << 20), number_of(turns))
    return write_problem(SOURCE, *given, items=(1 << 20,), local=(128,))


@pytest.mark.parametrize("machine", ["v100", "mi210"])
def test_arguments_decide_what_is_executed(machine: str) -> None:
    """A loop's turns are those of the argument, registers those of the GPU's own code."""
    problem = make_problem(1000)
    found = estimating.add_code(model_launch(problem), find_machine(machine))
    assert found.work is not None
    assert found.work.fp32 == pytest.approx(1000, rel=0.01)
    assert found.work.latency_cycles >= 4 * 1000
    assert found.registers is not None
    assert 2 <= found.registers <= 32
    short, long = (
        estimate_analytically(model_launch(make_problem(turns)), find_machine("a100")).seconds
        for turns in (1000, 10000)
    )
    assert long / short == pytest.approx(10, rel=0.1)


def test_without_a_compiler_the_source_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launch stays as it is, and says why."""

    def refuse(*_: object) -> None:
        raise MissingExtraError("no compiler was found")

    monkeypatch.setattr(estimating, "_compile", refuse)
    problem = make_problem(1000)
    launch = model_launch(problem)
    found = estimating.add_code(launch, find_machine("v100"))
    assert found.work is None
    assert found.executed == launch.executed
    assert any("no compiler was found" in note for note in found.notes)
