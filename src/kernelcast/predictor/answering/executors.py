"""Has devices sample, each in a process of its own."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from kernelcast.predictor.answering.tasks import (
    EstimateOutcome,
    EstimateTask,
    ModelOutcome,
    ModelTask,
)
from kernelcast.records.errors import KernelcastError, KernelRunError
from kernelcast.records.problem import Problem
from kernelcast.workers import Message, MessageKind, Task

ReportProgress = Callable[[str], None]
_log = logging.getLogger("kernelcast.progress")
SAMPLE = Task(
    entry="kernelcast.predictor.answering.child_tasks:sample_on_device",
    returns=EstimateOutcome,
    gives=EstimateOutcome,
    most_items=2,
    is_timed_as_a_whole=True,
)
MODEL = Task(entry="kernelcast.predictor.answering.measuring:model_alone", returns=ModelOutcome)


class Executor(Protocol):
    """Answers tasks; tests have one that needs no device."""

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample a launch.

        Raises
        ------
        KernelcastError
            If the launch cannot be sampled.
        """
        ...

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model alone.

        Raises
        ------
        KernelcastError
            If the model has no answer.
        """
        ...

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> float | None:
        """Count the instructions of a launch by its source; None where that does not tell.

        Parameters
        ----------
        problem : Problem
            The launch.
        device_id : str
            Whose process may read the source, since it will sample the launch; empty if none will.
        asks : bool
            Whether a process may be asked; else what one has told before counts.
        """
        ...


class CountsHere:
    """Counts in this process: the source is the caller's own."""

    __slots__ = ()

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> float | None:
        """Count the instructions of a launch by its source; None where that does not tell."""
        from kernelcast.launches.source_work import count_work

        del device_id, asks
        return count_work(problem, problem.ndrange)


def take_outcome(
    messages: Iterable[Message], device_id: str, report: ReportProgress
) -> EstimateOutcome:
    """Take what a sampling tells; samples that were there before something failed are given.

    Raises
    ------
    KernelcastError
        Why there are no samples.
    """
    started_s = time.perf_counter()
    sampled: EstimateOutcome | None = None
    try:
        for message in messages:
            if message.kind is MessageKind.PROGRESS:
                _log.debug("%s: %s", device_id, message.content)
                report(message.content)
                continue
            outcome: EstimateOutcome = message.content
            if outcome.estimate.device_id != device_id:
                msg = f"{device_id}: the process that ran the kernel answered for another device"
                raise KernelRunError(msg)
            sampled = outcome
    except KernelcastError as error:
        if sampled is None:
            raise
        if sampled.awaits_runs:
            estimate, told = sampled.estimate, f"whole runs were not timed: {error}"
            estimate = replace(estimate, warnings=(*estimate.warnings, told))
            return replace(sampled, estimate=estimate, awaits_runs=False)
        sampled = replace(sampled, row_failure=str(error))
    if sampled is None:
        msg = f"{device_id}: the sampling ended without a result; please report it"
        raise KernelcastError(msg)
    if sampled.estimate.measurement is not None:  # whole runs are no part of what an answer costs
        return sampled
    return sampled.with_total(time.perf_counter() - started_s)
