"""Runs problems as a whole: once for their results, or variants of one often for their times."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import Access, BufferArgument
from kernelcast.records.problem import Problem
from kernelcast.sampling.building import build_program, read_kernel_source, take_kernel
from kernelcast.sampling.contents import shape_of
from kernelcast.sampling.launch import enqueue, explained_errors
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import ProblemArguments, check_problem
from kernelcast.sampling.session import DeviceSession

Values: TypeAlias = tuple[npt.NDArray[Any] | np.generic | None, ...]
"""Arguments in the kernel's order: buffers as arrays of shape (count,), or (count, lanes) for
vectors; scalars as they are; None for local memory."""


def run_whole(session: DeviceSession, problem: Problem, *, seed: int) -> tuple[Values, Values]:
    """Run a problem once; give its arguments before and after."""
    built = session.whole_kernel(problem.kernel)
    problem, _ = check_problem(session, problem, built)
    with explained_errors(problem.kernel, session.description):
        accesses = [Access.WRITE] * len(problem.arguments)  # nothing is restored
        held = ProblemArguments(session, problem, accesses, seed=seed)

        def read() -> Values:
            values: list[Any] = []
            for described, given in zip(problem.arguments, held.arguments, strict=True):
                value = given if isinstance(given, np.ndarray | np.generic) else None
                if isinstance(described, BufferArgument):
                    value = np.empty(shape_of(described), dtype=described.element.dtype)
                    cl.enqueue_copy(session.queue, value, given)
                values.append(value)
            return tuple(values)

        try:
            before = read()
            built.kernel.set_args(*held.arguments)
            enqueue(session.queue, built.kernel, problem.ndrange)
            session.queue.finish()
            return before, read()
        finally:
            held.release()


class TimedLaunch:
    """A launch that is built once and timed as a whole; variants find each other's buffers in the
    session's pool."""

    def __init__(
        self,
        session: DeviceSession,
        problem: Problem,
        inferred: Sequence[Access | None],
        *,
        seed: int,
    ) -> None:
        text = read_kernel_source(problem.kernel)
        program = build_program(session.context, session.device, *text)
        self._session, self._seed = session, seed
        self._built = take_kernel(program, problem.kernel)
        self._problem, self._accesses = check_problem(session, problem, self._built, inferred)
        self.cpu_s = 0.0
        """Time that all threads of this process spent during the last run, in seconds."""

    def run(self) -> float:
        """Run it as a whole, from its first content each time, since contents that grow would
        change the work; give its time in seconds."""
        session, problem, kernel = self._session, self._problem, self._built.kernel
        with explained_errors(problem.kernel, session.description):
            held = ProblemArguments(session, problem, self._accesses, seed=self._seed)
            try:
                for index, argument in enumerate(held.arguments):
                    kernel.set_arg(index, argument)
                session.queue.finish()
                session.settle()
                used_s = time.process_time()
                start = partial(enqueue, session.queue, kernel, problem.ndrange)
                seconds = session.timer.by_clock(start)
                self.cpu_s = time.process_time() - used_s
                session.note_busy()
            finally:
                held.release()
        return seconds
