"""What a child process can be asked to do; each task is one function of plain records."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kernelcast.features.access import infer_accesses
from kernelcast.predictor.calibration_task import run_benchmark
from kernelcast.predictor.collection.kernel_task import collect_kernel
from kernelcast.predictor.corpus_check_task import check_corpus
from kernelcast.predictor.estimation import ReportProgress, estimate_launch
from kernelcast.predictor.feature_task import read_device_features
from kernelcast.predictor.own_machine import add_analytic
from kernelcast.predictor.reporting import Reporter
from kernelcast.predictor.settings import EstimateSettings
from kernelcast.predictor.trace_task import trace_problem
from kernelcast.records.device import DeviceDescription, TimerCheck
from kernelcast.records.estimates import Estimate
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.replay import Recording, RecordingLaunch
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.sampling.trial import try_device


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateTask:
    """An estimate to be made in a child process."""

    problem: Problem
    device_id: str
    settings: EstimateSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOutcome:
    """An estimate with the samples behind it."""

    estimate: Estimate
    recording: Recording


def list_devices(_: None, report: ReportProgress) -> tuple[DeviceDescription, ...]:
    """Describe every device the drivers show."""
    report("asking the drivers")
    return tuple(description for description, _ in find_devices())


def check_device(device_id: str, report: ReportProgress) -> TimerCheck:
    """Build and run a kernel on one device."""
    report("trial kernel")
    return try_device(*choose_device(device_id, find_devices()))


def estimate_problem(task: EstimateTask, report: ReportProgress) -> EstimateOutcome:
    """Predict one problem on one device."""
    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    return estimate_in_session(session, task.problem, task.settings, report=report)


def estimate_in_session(
    session: DeviceSession,
    problem: Problem,
    settings: EstimateSettings,
    *,
    report: ReportProgress = lambda _: None,
) -> EstimateOutcome:
    """Predict one problem on a device that is open already."""
    report("building the kernel and its buffers")
    started_s = time.perf_counter()
    kernel = problem.kernel
    accesses = infer_accesses(kernel, len(problem.arguments))
    with (
        session.lock,
        prepared_problem(
            session, problem, OpenCLLaunch, seed=settings.seed, inferred=accesses
        ) as launch,
    ):
        recorder = RecordingLaunch(launch, kernel.name)
        estimate = estimate_launch(
            recorder, kernel.name, settings, report=report, started_s=started_s
        )
    recording = replace(recorder.recording(), plan=settings.plan)
    return EstimateOutcome(estimate=add_analytic(estimate, problem), recording=recording)


_TASKS: dict[str, Callable[[Any, Reporter], Any]] = {
    "collect_kernel": collect_kernel,
    "check_corpus": check_corpus,
    "list_devices": list_devices,
    "check_device": check_device,
    "estimate_problem": estimate_problem,
    "read_device_features": read_device_features,
    "run_benchmark": run_benchmark,
    "trace_problem": trace_problem,
}


def run_task(name: str, arguments: Any, report: Reporter) -> Any:  # noqa: ANN401
    """Run a task by its name."""
    return _TASKS[name](arguments, report)
