"""Launches that do the same share the work of an answer, and answers stay what they are."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.launches.machine_file import read_machine
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.static_answers import KernelAnswers, look_at
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.arguments import BufferArgument, ElementType, ScalarArgument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import find_kernels

ROOT = Path(__file__).parents[3]
MACHINE = read_machine(ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml")
INT, FLOAT = ElementType("int32"), ElementType("float32")
CORPUS = [
    one for one in find_kernels() if not (one.problem_path.parent / "inputs.py").is_file()
][::7]  # fmt: skip
BODIES = (
    "b[x + w * y] = a[x + w * y] + a[x + w * y + 1] + a[x + w * y + w];",
    "b[y + h * x] = a[x + w * y];",
    "if (x > 0 && x < w - 1 && y > 0 && y < h - 1) b[x + w * y] = a[x + w * (y - 1)];",
    "if (x == 0 || y == h - 1) b[x + w * y] = a[x];",
    "for (int k = 0; k < w; k++) b[x + w * y] += a[k + w * y] * a[x + w * k];",
    "for (int k = 0; k < 5; k++) b[x + (w + 3) * y] += a[(x + k) * h + y];",
    "for (int k = 0; k <= x; k++) b[x] += a[k];",
    "b[get_group_id(0)] = a[x + w]; b[get_group_id(1) + 7] = a[y * 16];",
    "if (get_local_id(0) == 0) b[get_group_id(0) + w * get_group_id(1)] = a[x % w];",
    "for (int k = x; k < w * h; k += get_global_size(0)) b[k] = a[k];",
    "for (int k = get_local_id(0); k < w; k += 4) b[k + w * y] = a[k + h * y];",
    "b[x + w * y] = a[max(x - 1, 0) + w * y] + a[min(x + 1, w - 1) + w * min(y + 1, h - 1)];",
    "for (int k = -2; k < 3; k++) b[x] += a[clamp(x + k, 0, w - 1) + w * clamp(y + k, 0, h - 1)];",
    "b[x + w * y] = a[max((int)get_group_id(0) - 1, 0) + w * min(2 * y + 9, h)] + a[w];",
    "if ((x + y + h) % 2 == 0) b[x + w * y] = a[x + w * y + 1] + a[x % 8];",
    "b[2 * x + (y + w) % 2 + w * y] = a[x % 3 + w * (y % 4)];",
    "if (x != 0 && y != 5 && x < w - 1 && get_local_id(0) != 3) b[x + w * y] = a[x + w * (y + 1)];",
    "for (int k = 0; k < h; k++) b[x] += a[k * w + x] * a[x * h + k];",
    "b[max(x - 9, 3) + w * y] = a[min(h * x, w)] + a[clamp(x + w - h, 0, 77) * w];",
)
LENGTHS = st.one_of(st.integers(1, 400), st.integers(1, 40).map(lambda one: 16 * one))


def ask(answers: KernelAnswers, problem: Problem, ndrange: NDRange) -> AnalyticEstimate | str:
    """Answer a launch, or say why not."""
    try:
        return answers.answer(problem, ndrange)
    except KernelcastError as error:
        return str(error)


def expect_same(known: KernelAnswers, problem: Problem) -> None:
    """Compare an answer that may share another one's work with that of who knows no other."""
    ndrange, _ = choose_local_size(problem.ndrange)
    fresh = ask(KernelAnswers(problem.kernel, ndrange.known_local_size, MACHINE), problem, ndrange)
    found = ask(known, problem, ndrange)
    if isinstance(fresh, str) or isinstance(found, str):
        assert fresh == found
        return
    for name in ("limiters", "volumes", "quantities"):
        assert getattr(found, name) == pytest.approx(getattr(fresh, name), rel=1e-12)
    assert found.seconds == pytest.approx(fresh.seconds, rel=1e-12)
    assert (found.notes, found.doubt) == (fresh.notes, fresh.doubt)


@cache
def make_kernel(body: str) -> Kernel:
    """Make a kernel over a plane."""
    return Kernel(
        name="k",
        source="kernel void k(global const float* a, global float* b, int w, int h) {"
        f"int x = get_global_id(0), y = get_global_id(1); {body} }}",
    )


def make_problem(body: str, size: tuple[int, int], sides: tuple[int, int]) -> Problem:
    """Make a launch over a plane whose row is of another length."""
    w, h = sides
    buffer = BufferArgument(element=FLOAT, count=4 * max(w, size[0]) * max(h, size[1]) + 64)
    return Problem(
        name="k",
        kernel=make_kernel(body),
        ndrange=NDRange(global_size=size, local_size=(8, 2)),
        arguments=(buffer, buffer, *(ScalarArgument(element=INT, values=(n,)) for n in sides)),
    )


@pytest.mark.parametrize("body", BODIES)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 40), st.integers(1, 40), LENGTHS, LENGTHS
        ),
        min_size=2, max_size=12,
    )
)  # fmt: skip
@settings(max_examples=6, deadline=None)
def test_answers_as_if_nothing_was_known(body: str, sizes: list[tuple[int, int, int, int]]) -> None:
    """Gives the same answer whether or not launches of the kernel were answered before."""
    known = KernelAnswers(make_kernel(body), (8, 2), MACHINE)
    for x, y, w, h in sizes:
        expect_same(known, make_problem(body, (8 * x, 2 * y), (w, h)))


@pytest.mark.parametrize("kernel", CORPUS, ids=[one.name for one in CORPUS])
def test_answers_of_the_corpus_do_not_depend_on_others(kernel) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Gives the same answer for every size, in whatever order sizes are asked for."""
    known: dict[tuple[int, ...], KernelAnswers] = {}
    for part in (1.0, 0.5, 0.31, 0.77, 0.12):
        value = kernel.size.fit(kernel.size.least + part * (kernel.size.most - kernel.size.least))
        problem = read_problem(
            kernel.problem_path,
            parameters={kernel.size.parameter: value},
        )
        local = choose_local_size(problem.ndrange)[0].known_local_size
        if local not in known:
            known[local] = KernelAnswers(problem.kernel, local, MACHINE)
        expect_same(known[local], problem)


def test_shares_work_between_sizes() -> None:
    """Studies rows that keep apart once, however long they are and however many there are."""
    known = KernelAnswers(make_kernel(BODIES[0]), (8, 2), MACHINE)
    for w in (640, 1280, 1920, 2560):  # places that begin at a line
        problem = make_problem(BODIES[0], (w, w), (w, w))
        known.answer(problem, problem.ndrange)
    assert known.studied == 1


def test_columns_that_meet_in_few_sets_share_work_with_rows_as_long_only() -> None:
    """Studies columns whose rows are a power of two apart by themselves, and others once."""
    known = KernelAnswers(make_kernel("b[y + h * x] = a[x + w * y];"), (8, 2), MACHINE)
    for h in (1040, 1048, 1056, 1072):
        expect_same(known, make_problem("b[y + h * x] = a[x + w * y];", (512, 512), (1040, h)))
    shared = known.studied
    for h in (1024, 2048, 1025):
        expect_same(known, make_problem("b[y + h * x] = a[x + w * y];", (512, 512), (1040, h)))
    assert known.studied == shared + 3
    body = "b[y + h * x] = w;"
    known = KernelAnswers(make_kernel(body), (8, 2), MACHINE)
    for x in (512, 640, 1024):
        expect_same(known, make_problem(body, (x, 512), (1040, 1024)))
    assert known.studied == 1


def test_shares_work_where_rows_that_may_meet_are_as_long() -> None:
    """Asks for the same length only of rows that may meet, and not of another buffer's."""
    body = "b[x + w * y] = a[x + h * y];"
    known = KernelAnswers(make_kernel(body), (8, 2), MACHINE)
    for h in (640, 1280, 1920):
        problem = make_problem(body, (640, 640), (16, h))  # 640 numbers into rows of 16
        known.answer(problem, problem.ndrange)
    assert known.studied == 1
    for w in (32, 48):
        expect_same(known, make_problem(body, (640, 640), (w, 1280)))
    assert known.studied == 3


def test_looks_at_neighbours_of_all_places() -> None:
    """Pairs each place with the work-group before it along each dimension that has several."""
    found = look_at(NDRange(global_size=(64, 32, 2), local_size=(4, 4, 2)))
    together = found.work_groups[1:, found.alone :].T
    assert len({*map(tuple, together)}) == len(together)
    for own, other in found.pairs.T:
        assert sorted((together[own] - together[other]).tolist()) == [0, 0, 1]
    assert found.axes == (True, True, False)
