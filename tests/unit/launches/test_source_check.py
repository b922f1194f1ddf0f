from pathlib import Path

import pytest

from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.source_check import refuse_misfits
from kernelcast.records.arguments import Argument, LocalArgument
from kernelcast.records.errors import KernelNotFoundError, SignatureError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/*.yaml"))


def make_problem(source: str, arguments: int, name: str = "f") -> Problem:
    """Make a problem; the kinds of its arguments do not matter."""
    given: tuple[Argument, ...] = (LocalArgument(bytes=4),) * arguments
    ndrange = NDRange(global_size=(64,), local_size=(64,))
    return Problem(
        name="p", kernel=Kernel(name=name, source=source), ndrange=ndrange, arguments=given
    )


def test_a_kernel_that_is_not_there_is_named_with_those_that_are() -> None:
    """Needs no device."""
    with pytest.raises(KernelNotFoundError, match="its kernels are: g"):
        refuse_misfits(make_problem("kernel void g(int n) {}", 1))


def test_another_number_of_arguments_is_refused_with_the_signature() -> None:
    """Says what was given and what was expected."""
    expected = r"1 arguments given, 2 expected: 0 \(global float\* a\), 1 \(int n\)"
    with pytest.raises(SignatureError, match=expected):
        refuse_misfits(make_problem("kernel void f(global float *a, int n) {}", 1))


@pytest.mark.parametrize("source", ["kernel void f(", "#include <none.h>\nkernel void g() {}", "?"])
def test_what_cannot_be_read_is_left_to_the_compiler(source: str) -> None:
    """A source with errors may be right for a device's compiler."""
    refuse_misfits(make_problem(source, 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_right_problems_are_not_refused(path: Path) -> None:
    """Every example fits its source."""
    refuse_misfits(read_problem(path))
