"""What a child process does for an estimate: it opens the device once and samples launches."""

from dataclasses import replace
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
    outcome = run_estimate(session, task, keep=report.give, report=report, give_up=report.give_up)
    return _state_compile_time(outcome, task)


@cache
def _open(device_id: str) -> DeviceSession:
    return open_session(*choose_device(device_id, find_devices()))


@cache
def _compile_times_s() -> dict[str, float | None]:
    """Give how long each kernel took to build at its first time, by its digest."""
    return {}


def _state_compile_time(outcome: EstimateOutcome, task: EstimateTask) -> EstimateOutcome:
    """Say what building the kernel costs whoever has not built it: the first time's cost."""
    estimate = outcome.estimate
    digest = task.problem.kernel.digest
    first_s = _compile_times_s().setdefault(digest, estimate.compile_seconds)
    return replace(outcome, estimate=replace(estimate, compile_seconds=first_s))
