"""What a child process does for an estimate: it opens the device once and samples launches."""

from functools import cache

from kernelcast.predictor.answering.measuring import run_estimate
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.workers.task import Reporter


def sample_on_device(task: EstimateTask, report: Reporter) -> EstimateOutcome:
    """Predict one problem on one device; the sampled answer is given before features are made.

    A process that is asked again finds the device open, and programs built.
    """
    report("opening the device")
    session = _open(task.device_id)
    return run_estimate(session, task, keep=report.give, report=report, give_up=report.give_up)


@cache
def _open(device_id: str) -> DeviceSession:
    return open_session(*choose_device(device_id, find_devices()))
