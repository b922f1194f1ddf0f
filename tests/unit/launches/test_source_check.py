from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.source_check import (
    count_work,
    refuse_misfits,
    refuse_overruns,
    refuse_persistent,
)
from kernelcast.launches.weighing import sample_by_source
from kernelcast.predictor.answering.measuring import model_alone, run_estimate
from kernelcast.predictor.answering.tasks import EstimateTask, ModelTask
from kernelcast.records.arguments import (
    Argument,
    BufferArgument,
    ElementType,
    Init,
    LocalArgument,
    ScalarArgument,
)
from kernelcast.records.errors import (
    InputError,
    KernelNotFoundError,
    OverrunError,
    PersistentKernelError,
    SignatureError,
)
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.session import DeviceSession
from kernelcast.training_data.applications import Application, find_applications

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


def test_a_sampling_refuses_misfits_before_the_device_is_asked() -> None:
    """No device's compiler runs for a source that does not fit its arguments; both are told."""
    expected = r"1 arguments given, 2 expected: 0 \(global float\* a\), 1 \(int n\)"
    problem = make_problem("kernel void f(global float *a, int n) {}", 1)
    task = EstimateTask(problem=problem, device_id="none", settings=EstimateSettings())
    with pytest.raises(SignatureError, match=expected):
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
        ("const unsigned int n", NUMBER, r"\(uint n\): int32 given; give uint32"),
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
        ("typeof(1) n", FLOATS),
        ("real n", FLOATS),
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
    """A source with errors may be right for a device's compiler, which says better what is wrong;
    what it executes is not known."""
    problem = make_problem(source, 1)
    refuse_misfits(problem)
    refuse_persistent(problem.kernel)
    assert count_work(problem, problem.ndrange) is None


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_right_problems_are_not_refused(path: Path) -> None:
    """Every example fits its source."""
    refuse_misfits(read_problem(path))


_SOURCE = """
kernel void drain(volatile global int *head, global float *a, int n) {
  for (;;) {
    int i = atomic_add(head, 1);
    if (i >= n)
      break;
    a[i] *= 2;
  }
}
"""
_N = 1 << 16
_PROBLEM = Problem(
    name="drain",
    kernel=Kernel(name="drain", source=_SOURCE),
    ndrange=NDRange(global_size=(_N,), local_size=(64,)),
    arguments=(
        BufferArgument(element=ElementType("int32"), count=1),
        BufferArgument(element=ElementType("float32"), count=_N),
        ScalarArgument(element=ElementType("int32"), values=(_N,)),
    ),
)
_UNUSED_SESSION = cast("DeviceSession", None)
_UNUSED_LAUNCH = cast("PreparedLaunch", None)
_WAYS: dict[str, Callable[[], object]] = {
    "sampling": lambda: run_estimate(
        _UNUSED_SESSION,
        EstimateTask(problem=_PROBLEM, device_id="none", settings=EstimateSettings()),
    ),
    "collecting": lambda: sample_by_source(
        _UNUSED_LAUNCH, SamplingPlan(), _PROBLEM.kernel, _PROBLEM.arguments
    ),
    "analytic answer": lambda: model_alone(
        ModelTask(problem=_PROBLEM, device_id="none"), lambda _: None
    ),
    "model command": lambda: model_launch(_PROBLEM),
}


@pytest.mark.parametrize("way", _WAYS)
def test_no_tier_but_history_answers(way: str) -> None:
    """Neither samples nor the analytic model are asked; the loop and a way out are named."""
    with pytest.raises(PersistentKernelError, match=r"line 3: the loop .* atomic_add in line 4"):
        _WAYS[way]()


def test_texts_name_the_place_and_how_many_more() -> None:
    """Three places are listed, the others counted; fitting buffers give nothing."""
    line = NDRange(global_size=(64,), local_size=(16,))
    stores = "".join(f"a[i + {k}] = 0;\n" for k in range(1, 6))
    head = "kernel void f(global int *a, int n) { int i = get_global_id(0);"
    kernel = Kernel(name="f", source=f"{head} {stores} }}")

    def refuse(count: int) -> None:
        buffer = BufferArgument(element=ElementType("int32"), count=count)
        scalar = ScalarArgument(element=ElementType("int32"), values=(1,))
        refuse_overruns(kernel, line, [buffer, scalar])

    with pytest.raises(OverrunError) as caught:
        refuse(64)
    text = str(caught.value)
    assert text.count("leaves the buffer a") == 3
    assert "a[i + 1]" in text
    assert "work-item (63)" in text
    assert "256" in text
    assert "2 more places do so" in text
    refuse(69)


@pytest.mark.parametrize("application", find_applications(), ids=lambda one: one.folder.name)
def test_right_launches_are_not_refused(application: Application, tmp_path: Path) -> None:
    """Every kernel of the corpus keeps within its buffers, and so it is judged."""
    for kernel in application.kernels:
        size = {kernel.size.parameter: kernel.size.fit(64)}
        problem = prepare_launch(
            kernel, size, local_size=kernel.local_sizes[0], cache_folder=tmp_path
        ).problem
        refuse_overruns(problem.kernel, problem.ndrange, problem.arguments)


_LOOPS = """
kernel void loop(global float *a, int n)
{
    float x = a[get_global_id(0)];
    for (int k = 0; k < n; ++k)
        x = x * 0.5f + 1.0f;
    a[get_global_id(0)] = x;
}
kernel void triangle(global float *a, int n)
{
    float x = 0.0f;
    for (int k = 0; k < get_global_id(0); ++k)
        x += a[k];
    a[get_global_id(0)] = x;
}
kernel void guarded(global float *a, int n)
{
    if (get_global_id(0) < n)
        for (int k = 0; k < 9; ++k)
            a[get_global_id(0)] += 1.0f;
}
kernel void switched(global float *a, int n)
{
    if (n > 3)
        for (int k = 0; k < 1000; ++k)
            a[get_global_id(0)] += 1.0f;
}
"""


def _count(name: str, items: int, n: int) -> float:
    problem = Problem(
        name=name,
        kernel=Kernel(source=_LOOPS, name=name),
        ndrange=NDRange(global_size=(items,), local_size=(64,)),
        arguments=(
            replace(FLOATS, count=items),
            ScalarArgument(element=ElementType("int32"), values=(n,)),
        ),
    )
    return count_work(problem, problem.ndrange) or 0.0


@pytest.mark.parametrize(
    ("name", "launch", "other", "ratio"),
    [
        ("loop", (4096, 400), (4096, 100), 4.0),
        ("loop", (8192, 100), (4096, 100), 2.0),
        ("triangle", (8192, 0), (4096, 0), 4.0),
        ("switched", (4096, 5), (4096, 4), 1.0),
    ],
)
def test_sizes_that_end_loops_count(
    name: str, launch: tuple[int, int], other: tuple[int, int], ratio: float
) -> None:
    """Counts what scalars, and places in the index space, let work-items execute; a setting that
    switches a loop on is more work, a border of the launch is not."""
    assert _count(name, *launch) / _count(name, *other) == pytest.approx(ratio, rel=0.1)
    assert _count("switched", 4096, 4) > 100 * _count("switched", 4096, 1)
    assert _count("guarded", 4096, 4000) == 4096
