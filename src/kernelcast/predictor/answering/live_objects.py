"""Has a program's own objects sampled, in the program's own process."""

from dataclasses import dataclass

from kernelcast.launches.live import LiveLaunch
from kernelcast.predictor.answering.executors import CountsHere, ReportProgress
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

    Notes
    -----
    A driver's crash or hang is the program's: no time limit can end it.
    """

    launch: LiveLaunch

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
        return run_estimate(self.launch.session, task, hold=self.launch.hold, report=report)

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model alone.

        Raises
        ------
        KernelcastError
            If the model has no answer.
        """
        del timeout_s
        return model_alone(task, report)
