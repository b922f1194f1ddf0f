"""Whole runs of many variants of one launch, which find each other's buffers in the pool."""

import time
from collections.abc import Sequence
from functools import partial

from kernelcast.records.arguments import Access
from kernelcast.records.problem import Problem
from kernelcast.sampling.building import build_program, read_kernel_source, take_kernel
from kernelcast.sampling.launch import enqueue, explained_errors
from kernelcast.sampling.problems import ProblemArguments, check_problem
from kernelcast.sampling.session import DeviceSession


class TimedLaunch:
    """A launch that is built once and timed as a whole, as often as wanted."""

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
        """Run it as a whole and give its time in seconds.

        What it reads and writes has its first content each time: contents that grow from run to
        run would change the work.
        """
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
