"""A child process per device that stays: only the first estimate waits for its start."""

from dataclasses import dataclass, field
from typing import ClassVar

from kernelcast.predictor.answering.executors import (
    SAMPLE,
    CountsHere,
    ReportProgress,
    take_outcome,
)
from kernelcast.predictor.answering.tasks import (
    EstimateOutcome,
    EstimateTask,
    ModelOutcome,
    ModelTask,
)
from kernelcast.workers import WarmChildren


@dataclass(slots=True)
class WarmProcesses(CountsHere):
    """Asks each device in a child process of its own, which serves the next task; an `Executor`.

    Parameters
    ----------
    children : WarmChildren
        One per device.

    Notes
    -----
    Threads may share one; tasks of one device wait for each other.
    """

    samples_here: ClassVar = True
    children: WarmChildren = field(default_factory=WarmChildren)

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample a launch; what crashes while features are made does not cost the samples.

        Raises
        ------
        KernelcastError
            What the task raised; that the child died or did not answer in time.
        """
        device_id = task.device_id
        messages = self.children.stream(
            device_id, SAMPLE, task, timeout_s=timeout_s, subject=device_id
        )
        return take_outcome(messages, device_id, report)

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model alone, here: it opens no device, and the source is the caller's.

        What it knows of a kernel stays, so that other sizes take no second look at the source.

        Raises
        ------
        KernelcastError
            If the model has no answer.
        """
        from kernelcast.predictor.answering.measuring import model_alone

        del timeout_s
        return model_alone(task, report)

    def close(self) -> None:
        """End the children; the next task starts others."""
        self.children.close()
