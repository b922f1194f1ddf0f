"""Has devices sample, each in a process of its own."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from kernelcast.predictor.answering.asking import (
    EstimateOutcome,
    EstimateTask,
    ModelOutcome,
    ModelTask,
)
from kernelcast.predictor.isolation import MessageKind, run_isolated, stream_isolated
from kernelcast.records.errors import KernelcastError

ReportProgress = Callable[[str], None]


class Asker(Protocol):
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


class ChildProcesses:
    """Asks devices in child processes: a driver's crash or hang ends the task, not us."""

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample a launch; what crashes while features are made does not cost the samples."""
        sampled: EstimateOutcome | None = None
        try:
            for message in stream_isolated(
                "estimate_problem", task, timeout_s=timeout_s, subject=task.device_id
            ):
                if message.kind is MessageKind.PROGRESS:
                    report(message.content)
                    continue
                sampled = message.content
                if message.kind is MessageKind.RESULT:
                    return message.content  # type: ignore[no-any-return]  # the task's type
        except KernelcastError as error:
            if sampled is None:
                raise
            return replace(sampled, row_failure=str(error))
        msg = f"{task.device_id}: the sampling ended without a result; please report it"
        raise KernelcastError(msg)

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model alone."""
        outcome: ModelOutcome = run_isolated(
            "model_alone", task, timeout_s=timeout_s, subject=task.device_id, report=report
        )
        return outcome
