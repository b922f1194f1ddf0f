"""Runs a problem once as a whole, for its results rather than its time."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import Access, BufferArgument
from kernelcast.records.problem import Problem
from kernelcast.sampling.contents import shape_of
from kernelcast.sampling.launch import enqueue, explained_errors
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import ProblemArguments, check_problem
from kernelcast.sampling.session import DeviceSession

Value: TypeAlias = npt.NDArray[Any] | np.generic | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """What a launch was given and what it left."""

    before: tuple[Value, ...]
    """One per argument, in the kernel's order: buffers as arrays of shape (count,), or (count,
    lanes) for vectors; scalars as they are; None for local memory."""
    after: tuple[Value, ...]
    """The same when it had ended."""


def run_whole(session: DeviceSession, problem: Problem, *, seed: int) -> WholeRun:
    """Run a problem once on buffers of its own."""
    built = session.whole_kernel(problem.kernel)
    problem, _ = check_problem(session, problem, built)
    with explained_errors(problem.kernel, session.description):
        accesses = [Access.WRITE] * len(problem.arguments)  # nothing is restored
        held = ProblemArguments(session, problem, accesses, seed=seed)

        def read() -> tuple[Value, ...]:
            values: list[Value] = []
            for described, given in zip(problem.arguments, held.arguments, strict=True):
                if isinstance(described, BufferArgument):
                    array = np.empty(shape_of(described), dtype=described.element.dtype)
                    cl.enqueue_copy(session.queue, array, given)
                    values.append(array)
                else:
                    values.append(given if isinstance(given, np.ndarray | np.generic) else None)
            return tuple(values)

        try:
            before = read()
            built.kernel.set_args(*held.arguments)
            enqueue(session.queue, built.kernel, problem.ndrange)
            session.queue.finish()
            return WholeRun(before=before, after=read())
        finally:
            held.release()
