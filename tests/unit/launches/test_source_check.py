from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.source_check import refuse_misfits
from kernelcast.predictor.answering.measuring import run_estimate
from kernelcast.predictor.answering.tasks import EstimateTask
from kernelcast.records.arguments import (
    Argument,
    BufferArgument,
    ElementType,
    Init,
    LocalArgument,
    ScalarArgument,
)
from kernelcast.records.errors import InputError, KernelNotFoundError, SignatureError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

if TYPE_CHECKING:
    from kernelcast.sampling.session import DeviceSession

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


def test_a_sampling_refuses_misfits_before_the_device_is_asked() -> None:
    """No device's compiler runs for a source that does not fit its arguments."""
    problem = make_problem("kernel void f(global float *a, int n) {}", 1)
    task = EstimateTask(problem=problem, device_id="none", settings=EstimateSettings())
    with pytest.raises(SignatureError, match="1 arguments given, 2 expected"):
        run_estimate(cast("DeviceSession", None), task)


FLOATS = BufferArgument(element=ElementType("float32"), count=64)
NUMBER = ScalarArgument(element=ElementType("int32"), values=(3,))
TYPES = "typedef float real; typedef struct { int a; float b; } pair;"


@pytest.mark.parametrize(
    ("parameter", "argument", "complaint"),
    [
        (
            "global const int *restrict a",
            FLOATS,
            r"\(global const int\* a\): a buffer of float32",
        ),
        ("__constant float4 *a", NUMBER, r"a scalar given; give a buffer"),
        ("const unsigned int n", NUMBER, r"\(unsigned int n\): int32 given; give uint32"),
        ("uint n", FLOATS, r"a buffer given; give a scalar \(uint32\)"),
        ("local float *l", FLOATS, r"give a size of local memory"),
        ("read_only image2d_t i", FLOATS, r"a buffer given; give a image2d_t"),
        ("pair p", NUMBER, r"\(pair p\): int32 given; give all 8 bytes, as uint8x8"),
    ],
)
def test_kinds_and_types_that_do_not_fit_are_refused(
    parameter: str, argument: Argument, complaint: str
) -> None:
    """Says as much as a device's compiler lets us say, without a device."""
    source = f"{TYPES} kernel void f({parameter}) {{}}"
    problem = replace(make_problem(source, 0), arguments=(argument,))
    with pytest.raises(SignatureError, match=complaint):
        refuse_misfits(problem)


@pytest.mark.parametrize(
    ("parameter", "argument"),
    [
        ("__global float *a", FLOATS),
        ("const volatile global float4 *a", FLOATS),
        ("typeof(1) n", FLOATS),
        ("real n", FLOATS),
        ("global pair *p", FLOATS),
        ("pair p", ScalarArgument(element=ElementType("uint8", 8), values=(0,) * 8)),
        ("const size_t n", ScalarArgument(element=ElementType("uint64"), values=(3,))),
    ],
)
def test_what_fits_or_only_a_compiler_knows_is_not_refused(
    parameter: str, argument: Argument
) -> None:
    """Leaves types with names of the source's own to the device."""
    source = f"{TYPES} kernel void f({parameter}) {{}}"
    if parameter == "real n":
        argument = ScalarArgument(element=ElementType("float32"), values=(3,))
    elif parameter.startswith("typeof"):
        argument = NUMBER
    refuse_misfits(replace(make_problem(source, 0), arguments=(argument,)))


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    """Looks at its header."""
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(63, dtype=np.float32))
    argument = replace(FLOATS, init=Init.FILE, path=path)
    problem = replace(make_problem("kernel void f(global float *a) {}", 0), arguments=(argument,))
    with pytest.raises(InputError, match="holds 63 values"):
        refuse_misfits(problem)


@pytest.mark.parametrize("source", ["kernel void f(", "#include <none.h>\nkernel void g() {}", "?"])
def test_what_cannot_be_read_is_left_to_the_compiler(source: str) -> None:
    """A source with errors may be right for a device's compiler."""
    refuse_misfits(make_problem(source, 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_right_problems_are_not_refused(path: Path) -> None:
    """Every example fits its source."""
    refuse_misfits(read_problem(path))
