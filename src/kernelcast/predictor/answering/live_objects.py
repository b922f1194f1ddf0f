"""Has a program's own objects sampled, in the program's own process."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelcast.launches.live import LiveLaunch
from kernelcast.predictor.answering.executors import CountsHere, Executor, ReportProgress
from kernelcast.predictor.answering.measuring import model_alone, run_estimate
from kernelcast.predictor.answering.tasks import (
    EstimateOutcome,
    EstimateTask,
    ModelOutcome,
    ModelTask,
)


@dataclass(frozen=True, slots=True)
class LiveObjects(CountsHere):
    """Samples one launch where its buffers are; an `Executor`.

    Parameters
    ----------
    launch : LiveLaunch
        The launch.
    is_enough : callable or None
        Tells after the first moment whether others would gain less than they take; all are taken
        when left out.

    Notes
    -----
    A driver's crash or hang is the program's: no time limit can end it.
    """

    launch: LiveLaunch
    is_enough: Callable[[EstimateOutcome], bool] | None = None

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample the launch.

        Raises
        ------
        DeviceError
            If the device cannot run it.
        """
        del timeout_s
        return run_estimate(
            self.launch.session,
            task,
            hold=self.launch.hold,
            report=report,
            is_enough=self.is_enough,
        )

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model alone.

        Raises
        ------
        KernelcastError
            If the model has no answer.
        """
        del timeout_s
        return model_alone(task, report)


def stop_early(executor: Executor, is_enough: Callable[[EstimateOutcome], bool]) -> Executor:
    """Have live objects sampled no further than pays."""
    return replace(executor, is_enough=is_enough) if isinstance(executor, LiveObjects) else executor
