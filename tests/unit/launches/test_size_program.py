"""What is written of a kernel tells of each of its launches what a look at its source does."""

import math
import random

import pytest

from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.features.overruns import OverrunCheck
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.size_program import ask_program, depends_on_sizes, write_program
from kernelcast.launches.source_work import count_by_work_groups
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import find_kernels

KERNELS = [one for one in find_kernels() if not (one.problem_path.parent / "inputs.py").is_file()]
SIZES = 3


def count_agreements(problem: Problem, shrink: int) -> int:
    """Compare one launch, its buffers made smaller; tell whether the program knows it."""
    ndrange, _ = choose_local_size(problem.ndrange)
    arguments = [
        BufferArgument(element=one.element, count=one.count // shrink)
        if isinstance(one, BufferArgument)
        else one
        for one in problem.arguments
    ]
    told = ask_program(problem.kernel, ndrange, arguments, checks_bounds=True)
    if told is None:
        return 0
    facts = analyse(problem.kernel).facts
    scalars = bind_scalars(facts, arguments)
    buffers = {
        parameter.name: one.bytes
        for parameter, one in zip(facts.parameters, arguments, strict=True)
        if isinstance(one, BufferArgument)
    }
    assert not OverrunCheck(facts).find(ndrange, buffers, scalars)
    if depends_on_sizes(problem.kernel):
        counted = count_by_work_groups(problem.kernel, ndrange, tuple(scalars.items()))
        assert counted is None if math.isnan(told) else counted == told
    else:
        assert told == 1.0
    return 1


def test_programs_tell_what_the_source_says() -> None:
    """Kernels of the corpus at random sizes; most of them need no closer look."""
    known = 0
    chosen = KERNELS[::5]
    for one in chosen:
        draw = random.Random(one.name)
        for _ in range(SIZES):
            size = one.size.fit(draw.uniform(one.size.least, one.size.most))
            problem = read_problem(one.problem_path, parameters={one.size.parameter: size})
            known += count_agreements(problem, 1)
            count_agreements(problem, draw.choice([2, 3]))
    assert known > SIZES * len(chosen) / 2


SOURCE = """
kernel void walk(global float *a, int n, int m)
{
    int i = get_global_id(0);
    if (i < n)
        for (int k = 0; k < m; ++k)
            a[i] += k;
}
"""


@pytest.mark.parametrize(
    ("items", "n", "m", "count", "is_known"),
    [
        (64, 64, 5, 64, True),
        (64, 100, 5, 64, True),
        (64, 64, 0, 64, True),
        (64, 64, 5, 63, False),  # leaves the buffer
        (128, 64, 5, 64, True),  # not all do the same
        (64, 64, -1, 64, False),  # negative: to be looked at
    ],
)
def test_what_is_not_sure_takes_a_closer_look(
    items: int, n: int, m: int, count: int, is_known: bool
) -> None:
    """Buffers that are left, scalars below zero; not guards that some work-items fail."""
    program = write_program(Kernel(name="walk", source=SOURCE), (64,), (0,), frozenset({1, 2}))
    assert program is not None
    assert (program((items,), (4 * count, n, m)) is not None) is is_known


def test_sources_that_cannot_be_read_have_none() -> None:
    """Asks nobody twice."""
    kernel = Kernel(name="missing", source=SOURCE)
    assert analyse(Kernel(name="walk", source=SOURCE)).facts.loops
    assert write_program(kernel, (64,), (0,), frozenset()) is None


UNEVEN = {
    "shares of a row": """kernel void f(global float *a, int n, int m)
{
    for (int k = get_local_id(0); k < n; k += get_local_size(0))
        a[k] += 1.0f;
    for (int s = get_local_size(0) / 2; s > 0; s /= 2)
        if (get_local_id(0) < s)
            a[s] += m;
}""",
    "rows of work-groups": """kernel void f(global float *a, int n, int m)
{
    for (int row = get_group_id(0); row < n; row += get_num_groups(0))
        for (int k = get_local_id(0); k <= m; k += get_local_size(0))
            a[k] += 1.0f;
}""",
    "borders": """kernel void f(global float *a, int n, int m)
{
    int i = get_global_id(0);
    if (i > 0 && i < n && get_local_id(0) != 3)
        for (int k = 0; k < m; ++k)
            a[i] += k;
}""",
    "data within loops that may not run": """kernel void f(global float *a, int n, int m)
{
    for (int k = get_local_id(0) + 16; k < n; k += 64)
        if (a[k] > 0.0f)
            a[k] += 1.0f;
    for (int k = 0; k < m - 100; ++k)
        while (a[k] > 0.0f)
            a[k] -= 1.0f;
}""",
    "turns of a loop": """kernel void f(global float *a, int n, int m)
{
    for (int k = 0; k < m; ++k) {
        if (k + 2 < n)
            a[k] += 1.0f;
        if (3 * k >= n)
            a[k] *= 2.0f;
    }
}""",
}


@pytest.mark.parametrize("source", UNEVEN.values(), ids=UNEVEN.keys())
def test_work_items_that_differ_are_counted(source: str) -> None:
    """Each in sampled work-groups, as a look at the source counts them."""
    kernel, draw = Kernel(name="f", source=source), random.Random(source)
    program = write_program(kernel, (32,), (0,), frozenset({1, 2}), checks_bounds=False)
    assert program is not None
    for _ in range(40):
        items, n, m = 32 * draw.randint(1, 40), draw.randint(0, 900), draw.randint(0, 200)
        scalars = (("n", n), ("m", m))
        ndrange = NDRange(global_size=(items,), local_size=(32,))
        counted = count_by_work_groups(kernel, ndrange, scalars)
        told = program((items,), (4.0, n, m))
        if told is None:  # nobody knows which work-items meet data
            assert "a[k] > 0" in source
        else:
            assert counted is None if math.isnan(told) else counted == told
