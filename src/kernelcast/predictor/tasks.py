"""What a child process can be asked to do; each task is one function of plain records."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelcast.predictor.reporting import Reporter
from kernelcast.records.device import DeviceDescription, TimerCheck
from kernelcast.sampling.discovery import choose_device, find_devices

if TYPE_CHECKING:
    from kernelcast.predictor.answering.asking import EstimateOutcome, EstimateTask

Task = Callable[[Any, Reporter], Any]


def list_devices(_: None, report: Reporter) -> tuple[DeviceDescription, ...]:
    """Describe every device the drivers show."""
    report("asking the drivers")
    return tuple(description for description, _ in find_devices())


def check_device(device_id: str, report: Reporter) -> TimerCheck:
    """Build and run a kernel on one device."""
    from kernelcast.sampling.trial import try_device

    report("trial kernel")
    return try_device(*choose_device(device_id, find_devices()))


def estimate_problem(task: "EstimateTask", report: Reporter) -> "EstimateOutcome":
    """Predict one problem on one device; the sampled answer is given before features are made."""
    from kernelcast.predictor.answering.measuring import run_estimate
    from kernelcast.sampling.session import open_session

    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    return run_estimate(session, task, keep=report.give, report=report, give_up=report.give_up)


# A child imports what its own task needs: all together take as long as an estimate.
_TASKS: dict[str, Task | str] = {
    "collect_kernel": "collection.kernel_task",
    "check_corpus": "corpus_check_task",
    "list_devices": list_devices,
    "check_device": check_device,
    "estimate_problem": estimate_problem,
    "model_alone": "answering.measuring",
    "read_device_features": "feature_task",
    "read_lab_source": "lab.source",
    "model_local_sizes": "lab.local_sizes",
    "find_layer_conditions": "lab.conditions",
    "run_benchmark": "calibration_task",
    "run_tuning": "tuning.device_task",
    "trace_problem": "trace_task",
}
"""Each task's function, or the module of the function that is called like the task."""


def run_task(name: str, arguments: Any, report: Reporter) -> Any:  # noqa: ANN401
    """Run a task by its name."""
    found = _TASKS[name]
    if isinstance(found, str):
        task: Task = getattr(import_module(f"{__package__}.{found}"), name)
        return task(arguments, report)
    return found(arguments, report)
