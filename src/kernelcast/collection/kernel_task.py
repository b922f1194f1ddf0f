"""All rows of one corpus kernel on one device, in a child process."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kernelcast.collection.corpus_problems import PreparedProblem, prepare_launch
from kernelcast.collection.progress import (
    RowFailed,
    RowMeasured,
    RowSkipped,
    RowStarted,
    SizesChosen,
)
from kernelcast.collection.row import TooLongError, observe_launch
from kernelcast.collection.settings import CollectionSettings
from kernelcast.collection.sizes import choose_sizes, find_anchor, lengthen_times
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.problem_file import read_parameters
from kernelcast.launches.weighing import sample_by_source
from kernelcast.models.linear import fit_linear
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.launch_identity import (
    DeviceIdentity,
    KernelIdentity,
    LaunchIdentity,
    digest_arguments,
)
from kernelcast.records.observation import FailureRecord
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.workers.task import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTask:
    """What to collect."""

    kernel: CorpusKernel
    device_id: str
    settings: CollectionSettings
    cache_folder: Path
    sizes: tuple[int, ...] = ()
    """Values of the size parameter; empty: find them."""
    done: frozenset[str] = frozenset()
    """Keys of launches that need no row any more (`LaunchIdentity.key`)."""


def collect_kernel(task: KernelTask, report: Reporter) -> None:
    """Measure the rows of a kernel; each is given to the parent as soon as it is there."""
    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    sizes = task.sizes
    if not sizes:
        report("looking for sizes")
        sizes = find_sizes(session, task)
        report.give(SizesChosen(sizes=sizes))
    shapes = list_shapes(task.kernel.local_sizes[: task.settings.local_sizes], sizes)
    for number, (size, local_size) in enumerate(shapes, start=1):
        report("making inputs")
        prepared = _prepare(task, size, local_size)
        launch = _identify(task, session.description, prepared)
        work_groups = prepared.problem.ndrange.work_group_count
        if launch.key in task.done:
            report.give(RowSkipped(launch_key=launch.key))
        elif work_groups < task.settings.least_work_groups:
            report.give(RowSkipped(launch_key=launch.key, reason=f"{work_groups} work-groups"))
        else:
            report.give(RowStarted(launch=launch, number=number, total=len(shapes)))
            problem = prepared.problem.on(session.description)
            report.give(_observe(session, problem, launch, task.settings, report))


def find_sizes(session: DeviceSession, task: KernelTask) -> tuple[int, ...]:
    """Find the sizes at which the kernel takes the times that are wanted on this device."""
    kernel, settings = task.kernel, task.settings
    times_s = (settings.shortest_s, settings.longest_s)
    goal_s = (settings.shortest_s * settings.longest_s) ** 0.5

    fill_s: dict[int, float] = {}

    def predict(size: int) -> float:
        prepared = _prepare(task, size, kernel.local_sizes[0])
        seconds, fills = _predict(session, prepared.problem.on(session.description), settings.seed)
        fill_s[size] = seconds / fills
        return seconds

    start = int(read_parameters(kernel.problem_path)[kernel.size.parameter])
    anchor = find_anchor(kernel.size, start, goal_s, predict)
    return choose_sizes(
        kernel.size, anchor, lengthen_times(times_s, fill_s[anchor[0]]), settings.sizes
    )


def list_shapes(
    local_sizes: tuple[tuple[int, ...], ...], sizes: tuple[int, ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """List sizes with local sizes: the usual one at every size, others at every other size."""
    usual, *others = local_sizes
    shapes = [(size, usual) for size in sizes]
    return shapes + [(size, other) for other in others for size in sizes[::2]]


def _prepare(task: KernelTask, size: int, local_size: tuple[int, ...]) -> PreparedProblem:
    parameters = {task.kernel.size.parameter: size}
    return prepare_launch(
        task.kernel, parameters, local_size=local_size, cache_folder=task.cache_folder
    )


def _identify(
    task: KernelTask, device: DeviceDescription, prepared: PreparedProblem
) -> LaunchIdentity:
    return LaunchIdentity(
        kernel=KernelIdentity(
            name=task.kernel.stem,
            digest=prepared.problem.kernel.digest,
            application=task.kernel.application,
            suite=task.kernel.suite,
        ),
        device=DeviceIdentity(
            id=device.id, name=device.name, platform=device.platform, driver=device.driver
        ),
        ndrange=prepared.problem.ndrange,
        arguments_digest=digest_arguments(prepared.problem.arguments, seed=task.settings.seed),
        parameters=dict(prepared.parameters),
    )


def _observe(
    session: DeviceSession, problem: Problem, launch: LaunchIdentity, settings: CollectionSettings,
    report: Reporter,
) -> RowMeasured | RowFailed | RowSkipped:  # fmt: skip
    """Observe a launch; a disturbed one is left to the next collection, for its data are warm."""
    try:
        return RowMeasured(
            observation=observe_launch(session, problem, launch, settings, report=report)
        )
    except TooLongError as error:
        return RowSkipped(launch_key=launch.key, reason=str(error))
    except KernelcastError as error:
        return RowFailed(failure=make_failure(launch, error))


def make_failure(launch: LaunchIdentity, error: KernelcastError) -> FailureRecord:
    """Record why a launch could not be observed."""
    return FailureRecord(
        launch=launch,
        kind=type(error).__name__,
        message=str(error),
        failed_at=datetime.now(UTC),
    )


def _predict(session: DeviceSession, problem: Problem, seed: int) -> tuple[float, float]:
    """Predict a launch's time, and tell how often its work-groups fill the device."""
    with prepared_launch(session, problem, OpenCLLaunch, seed=seed) as launch:
        plan = SamplingPlan(seed=seed)
        run = sample_by_source(launch, plan, problem.kernel, problem.arguments)
        fills = launch.ndrange.work_group_count / launch.saturation.concurrency
        return fit_linear(run).seconds, fills
