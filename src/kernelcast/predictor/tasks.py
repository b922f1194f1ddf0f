"""What a child process can be asked to do; each task is one function of plain records."""

from collections.abc import Callable
from typing import Any

from kernelcast.predictor.answering.asking import EstimateOutcome, EstimateTask
from kernelcast.predictor.answering.measuring import (
    estimate_in_session,
    model_alone,
    run_estimate,
)
from kernelcast.predictor.calibration_task import run_benchmark
from kernelcast.predictor.collection.kernel_task import collect_kernel
from kernelcast.predictor.corpus_check_task import check_corpus
from kernelcast.predictor.estimation import ReportProgress
from kernelcast.predictor.feature_task import read_device_features
from kernelcast.predictor.reporting import Reporter
from kernelcast.predictor.trace_task import trace_problem
from kernelcast.records.device import DeviceDescription, TimerCheck
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.session import open_session
from kernelcast.sampling.trial import try_device

__all__ = ["EstimateOutcome", "EstimateTask", "estimate_in_session", "run_task"]


def list_devices(_: None, report: ReportProgress) -> tuple[DeviceDescription, ...]:
    """Describe every device the drivers show."""
    report("asking the drivers")
    return tuple(description for description, _ in find_devices())


def check_device(device_id: str, report: ReportProgress) -> TimerCheck:
    """Build and run a kernel on one device."""
    report("trial kernel")
    return try_device(*choose_device(device_id, find_devices()))


def estimate_problem(task: EstimateTask, report: Reporter) -> EstimateOutcome:
    """Predict one problem on one device; the sampled answer is given before features are made."""
    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    return run_estimate(session, task, keep=report.give, report=report)


_TASKS: dict[str, Callable[[Any, Reporter], Any]] = {
    "collect_kernel": collect_kernel,
    "check_corpus": check_corpus,
    "list_devices": list_devices,
    "check_device": check_device,
    "estimate_problem": estimate_problem,
    "model_alone": model_alone,
    "read_device_features": read_device_features,
    "run_benchmark": run_benchmark,
    "trace_problem": trace_problem,
}


def run_task(name: str, arguments: Any, report: Reporter) -> Any:  # noqa: ANN401
    """Run a task by its name."""
    return _TASKS[name](arguments, report)
