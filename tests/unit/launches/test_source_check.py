"""What a source alone tells before any device is opened."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.source_check import (
    count_work,
    refuse_misfits,
    refuse_overruns,
    refuse_persistent,
)
from kernelcast.launches.weighing import sample_by_source
from kernelcast.predictor.answering.measuring import model_alone, run_estimate
from kernelcast.predictor.answering.processes import EstimateTask, ModelTask
from kernelcast.records.arguments import Argument, ElementType, Init, ScalarArgument
from kernelcast.records.errors import (
    InputError,
    KernelNotFoundError,
    OverrunError,
    PersistentKernelError,
    SignatureError,
)
from kernelcast.records.kernel import Kernel
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import PreparedLaunch
from kernelcast.sampling.session import DeviceSession
from kernelcast.training_data.applications import Application, find_applications
from support.problems import buffer_of, number_of, write_problem

FLOATS, NUMBER = buffer_of("float32"), number_of(3)
NO_SESSION, NO_LAUNCH = cast("DeviceSession", None), cast("PreparedLaunch", None)


def ask_device(source: str, *arguments: Argument, items: int = 64) -> None:
    problem = write_problem(source, *arguments, items=(items,))
    task = EstimateTask(problem=problem, device_id="none", settings=EstimateSettings())
    run_estimate(NO_SESSION, task)


def test_a_sampling_refuses_misfits_before_the_device_is_asked(tmp_path: Path) -> None:
    """No device's compiler runs for a source that does not fit its arguments, or lacks the kernel,
    nor for a file that is too short; each is told."""
    with pytest.raises(KernelNotFoundError, match="its kernels are: g"):
        refuse_misfits(write_problem("kernel void g(int n) {}", NUMBER, name="f"))
    expected = r"1 arguments given, 2 expected: 0 \(global float\* a\), 1 \(int n\)"
    with pytest.raises(SignatureError, match=expected):
        ask_device("kernel void f(global float *a, int n) {}", FLOATS)
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(63, dtype=np.float32))
    with pytest.raises(InputError, match="holds 63 values"):
        ask_device("kernel void f(global float *a) {}", replace(FLOATS, init=Init.FILE, path=path))


@pytest.mark.parametrize(
    ("parameter", "argument", "complaint"),
    [
        ("global const int *restrict a", FLOATS, r"\(global const int\* a\): a buffer of float32"),
        ("__constant float4 *a", NUMBER, r"a scalar given; give a buffer"),
        ("const unsigned int n", NUMBER, r"\(uint n\): int32 given; give uint32"),
        ("local float *l", FLOATS, r"give a size of local memory"),
        ("read_only image2d_t i", FLOATS, r"a buffer given; give a image2d_t"),
        ("pair p", NUMBER, r"\(pair p\): int32 given; give all 8 bytes, as uint8x8"),
        ("pair p", ScalarArgument(element=ElementType("uint8", 8), values=(0,) * 8), ""),
        ("typeof(1) n", NUMBER, ""),
        ("real n", number_of(3, "float32"), ""),
        ("const size_t n", number_of(3, "uint64"), ""),
    ],
)
def test_kinds_and_types_that_do_not_fit_are_refused(
    parameter: str, argument: Argument, complaint: str
) -> None:
    """Says as much as a device's compiler lets us say; what only it knows is left to it."""
    types = "typedef float real; typedef struct { int a; float b; } pair;"
    problem = write_problem(f"{types} kernel void f({parameter}) {{}}", argument)
    if not complaint:
        refuse_misfits(problem)
        return
    with pytest.raises(SignatureError, match=complaint):
        refuse_misfits(problem)


@pytest.mark.parametrize("source", ["kernel void f(", "#include <none.h>\nkernel void g() {}", "?"])
def test_what_cannot_be_read_is_left_to_the_compiler(source: str) -> None:
    """A source with errors may be right for a device's compiler, which says better what is wrong;
    what it executes is not known."""
    problem = write_problem(source, NUMBER)
    refuse_misfits(problem)
    refuse_persistent(problem.kernel)
    assert count_work(problem) is None


@pytest.mark.parametrize("application", find_applications(), ids=lambda one: one.folder.name)
def test_right_launches_are_not_refused(application: Application, tmp_path: Path) -> None:
    """Every kernel of the corpus keeps within its buffers, and so it is judged."""
    for kernel in application.kernels:
        size = {kernel.size.parameter: kernel.size.fit(64)}
        problem = prepare_launch(
            kernel, size, local_size=kernel.local_sizes[0], cache_folder=tmp_path
        ).problem
        refuse_overruns(problem)


def test_texts_name_the_place_and_how_many_more() -> None:
    """Three places are listed, the others counted; fitting buffers give nothing."""
    stores = "".join(f"a[i + {k}] = 0;\n" for k in range(1, 6))
    source = f"kernel void f(global int *a, int n) {{ int i = get_global_id(0); {stores} }}"
    problem = write_problem(source, local=(16,))
    with pytest.raises(OverrunError) as caught:
        refuse_overruns(replace(problem, arguments=(buffer_of("int32"), NUMBER)))
    text = str(caught.value)
    assert text.count("leaves the buffer a") == 3
    for part in ("a[i + 1]", "work-item (63)", "256", "2 more places do so"):
        assert part in text
    refuse_overruns(replace(problem, arguments=(buffer_of("int32", 69), NUMBER)))


DRAIN = """
kernel void drain(volatile global int *head, global float *a, int n) {
  for (;;) {
    int i = atomic_add(head, 1);
    if (i >= n) break;
    a[i] *= 2; } }"""
ITEMS = 1 << 16
GIVEN = (buffer_of("int32", 1), buffer_of("float32", ITEMS), number_of(ITEMS))
QUEUE = write_problem(DRAIN, *GIVEN, items=(ITEMS,))
WAYS: dict[str, Callable[[], object]] = {
    "sampling": lambda: ask_device(DRAIN, *GIVEN, items=ITEMS),
    "collecting": lambda: sample_by_source(NO_LAUNCH, SamplingPlan(), QUEUE),
    "analytic answer": lambda: model_alone(
        ModelTask(problem=QUEUE, device_id="none"), lambda _: None
    ),
    "model command": lambda: model_launch(QUEUE),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_tier_but_history_answers(way: str) -> None:
    """Neither samples nor the analytic model are asked; the loop and a way out are named."""
    with pytest.raises(PersistentKernelError, match=r"line 3: the loop .* atomic_add in line 4"):
        WAYS[way]()
    refuse_persistent(Kernel(name="other", source=DRAIN))


HEAD = "(global float *a, int n) { int i = get_global_id(0); "
WORK = "".join(
    f"kernel void {name}{HEAD}{body} }}\n"
    for name, body in {
        "loop": "float x = a[i]; for (int k = 0; k < n; ++k) x = x * 0.5f + 1.0f; a[i] = x;",
        "triangle": "float x = 0.0f; for (int k = 0; k < i; ++k) x += a[k]; a[i] = x;",
        "guarded": "if (i < n) for (int k = 0; k < 9; ++k) a[i] += 1.0f;",
        "switched": "if (n > 3) for (int k = 0; k < 1000; ++k) a[i] += 1.0f;",
    }.items()
)


@pytest.mark.parametrize(
    ("name", "launch", "other", "ratio"),
    [
        ("loop", (4096, 400), (4096, 100), 4.0),
        ("loop", (8192, 100), (4096, 100), 2.0),
        ("triangle", (8192, 0), (4096, 0), 4.0),
        ("switched", (4096, 5), (4096, 4), 1.0),
        ("guarded", (4096, 4000), (4096, 4), 1.0),
    ],
)
def test_sizes_that_end_loops_count(
    name: str, launch: tuple[int, int], other: tuple[int, int], ratio: float
) -> None:
    """Counts what scalars, and places in the index space, let work-items execute; a setting that
    switches a loop on is more work, a border of the launch is not."""

    def count(name: str, items: int, n: int) -> float:
        given = (buffer_of("float32", items), number_of(n))
        problem = write_problem(WORK, *given, items=(items,), name=name)
        return count_work(problem) or 0.0

    assert count(name, *launch) / count(name, *other) == pytest.approx(ratio, rel=0.1)
    assert count("switched", 4096, 4) > 100 * count("switched", 4096, 1)
