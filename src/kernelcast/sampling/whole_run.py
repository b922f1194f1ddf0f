"""Runs a problem once as a whole, for its results rather than its time."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import BufferArgument
from kernelcast.records.problem import Problem
from kernelcast.sampling.launch import enqueue, explained_errors
from kernelcast.sampling.launch_limits import check_launch
from kernelcast.sampling.local_size import choose_local_size
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import put_arguments, release_arguments
from kernelcast.sampling.scratch import KernelArgument
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import check_arguments

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
    check_arguments(problem.kernel.name, built.parameters, problem.arguments)
    ndrange = choose_local_size(session, built.kernel, problem.ndrange)
    check_launch(session, built.kernel, problem.kernel, ndrange)
    with explained_errors(problem.kernel, session.description):
        arguments = put_arguments(session, problem, seed=seed)
        try:
            before = _read(session, problem, arguments)
            for index, argument in enumerate(arguments):
                built.kernel.set_arg(index, argument)
            enqueue(session.queue, built.kernel, ndrange)
            session.queue.finish()
            return WholeRun(before=before, after=_read(session, problem, arguments))
        finally:
            release_arguments(session, arguments)


def _read(
    session: DeviceSession, problem: Problem, arguments: list[KernelArgument]
) -> tuple[Value, ...]:
    values: list[Value] = []
    for described, held in zip(problem.arguments, arguments, strict=True):
        if isinstance(described, BufferArgument):
            lanes = described.element.stored_lanes
            shape = (described.count,) if lanes == 1 else (described.count, lanes)
            array = np.empty(shape, dtype=described.element.dtype)
            cl.enqueue_copy(session.queue, array, held)
            values.append(array)
        else:
            values.append(held if isinstance(held, (np.ndarray, np.generic)) else None)
    return tuple(values)
