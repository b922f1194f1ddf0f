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
        (128, 64, 5, 64, False),  # not all do the same
        (64, 64, -1, 64, False),  # negative: to be looked at
    ],
)
def test_what_is_not_sure_takes_a_closer_look(
    items: int, n: int, m: int, count: int, is_known: bool
) -> None:
    """Guards that some work-items fail, buffers that are left, scalars below zero."""
    program = write_program(Kernel(name="walk", source=SOURCE), (64,), (0,), frozenset({1, 2}))
    assert program is not None
    assert (program((items,), (4 * count, n, m)) is not None) is is_known


def test_sources_that_cannot_be_read_have_none() -> None:
    """Asks nobody twice."""
    kernel = Kernel(name="missing", source=SOURCE)
    assert analyse(Kernel(name="walk", source=SOURCE)).facts.loops
    assert write_program(kernel, (64,), (0,), frozenset()) is None
