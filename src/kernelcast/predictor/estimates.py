"""Estimates of whole problems: of several devices, each in a process of its own, or of recordings.

Recorded samples are answered from on the way that answers from devices go.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

from kernelcast.launches.data_folder import choose_store
from kernelcast.launches.devices import choose_devices, forget_devices, share_children
from kernelcast.launches.estimation import ReportProgress, estimate_runs
from kernelcast.launches.recordings import RecordedAnswer, Recording
from kernelcast.launches.settings import (
    DEFAULT_TIMEOUT_S,
    EstimateSettings,
    check_timeout,
    prefix,
)
from kernelcast.predictor.answering.memory import Answer
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import (
    EstimateOutcome,
    EstimateTask,
    ModelOutcome,
    ModelTask,
    WarmProcesses,
    put_analytic,
    read_moments,
)
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.contention import combine_contention
from kernelcast.records.device import DeviceDescription, match_device_id
from kernelcast.records.errors import (
    DeviceError,
    InputError,
    KernelcastError,
    RecordingError,
    UnknownDeviceError,
)
from kernelcast.records.estimates import DeviceAnswer, Estimate, Measurement
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training.registry import choose_registry

_NO_FACTS = "the recording holds no facts about the launch; record it again"


def estimate_on_devices(
    problem: Problem,
    devices: Sequence[DeviceDescription],
    *,
    settings: EstimateSettings,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    report: ReportProgress = lambda _: None,
) -> Iterator[RecordedAnswer]:
    """Predict one problem on devices one after the other: two at once would time each other."""
    check_timeout(timeout_s)
    predictor = _find_predictor(choose_registry(), str(choose_store()))
    policy = Policy(settings=settings, timeout_s=timeout_s, spares_samples=True)
    refusals: list[InputError] = []
    for device in devices:
        found: list[Answer] = []
        told = prefix(report, f"{device.id}: ")
        ask = partial(predictor.estimate, policy=policy, report=told, keep=found.append)
        answer = _ask(ask, problem, device)
        if isinstance(answer.error, UnknownDeviceError):
            forget_devices()
        if isinstance(answer.error, InputError):
            refusals.append(answer.error)
        yield answer, found[0].recording if found else None
    if refusals and len(refusals) == len(devices):
        raise refusals[0]


def _ask(
    ask: Callable[[Problem, DeviceDescription], Estimate],
    problem: Problem,
    device: DeviceDescription,
) -> DeviceAnswer:
    make = partial(
        DeviceAnswer,
        device_id=device.id,
        device=device.name,
        problem=problem.name,
        kernel=problem.kernel.name,
    )
    try:
        return make(estimate=ask(problem, device))
    except KernelcastError as error:
        return make(error=error)


def find_devices(device_ids: Sequence[str]) -> list[DeviceDescription]:
    return choose_devices(device_ids, share_children())


@cache
def _find_predictor(registry: str, store: str) -> Predictor:
    executor = WarmProcesses(share_children())
    return Predictor(registry=registry, store=store, options=PredictorOptions(executor=executor))


class RecordedSamples:
    """Gives the samples of a recording, the one that is set, instead of a device's: `Executor`."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        del timeout_s, report
        recording, settings = self.recording, task.settings
        subject = f"the recording of {recording.device.id}"
        estimate = estimate_runs(
            recording, task.problem.kernel.name, recording.runs, settings.coverage
        )
        if settings.measure:
            if not recording.whole_s:
                raise RecordingError(f"{subject} has no whole runs; record with --measure")
            # Of older files only the samples tell what other programs did then.
            seen = combine_contention([one.contention for one in recording.runs if one.contention])
            usual = seen.slowdown if seen and seen.is_noticeable else 1.0
            measurement = Measurement(
                durations_s=recording.whole_s[: settings.measured_runs],
                slowdown=recording.slowdown or usual,
            )
            estimate = replace(estimate, measurement=measurement)
        from kernelcast.predictor.answering.measuring import make_row

        facts = recording.facts
        if facts is not None:
            estimate = put_analytic(estimate, facts.analytic)
        return EstimateOutcome(
            estimate=estimate,
            recording=recording,
            # They say what they did then, however long ago that was.
            moments=tuple(replace(one, at_s=None) for one in read_moments(recording.runs, facts)),
            row=make_row(recording, facts) if facts and task.wants_row else None,
            row_failure=_NO_FACTS if facts is None and task.wants_row else "",
        )

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        del timeout_s, report
        raise DeviceError(f"{task.device_id}: a recording has samples alone")

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> None:
        """Count nothing: its sizes are of no other launch."""


def replay(
    recordings: Sequence[Recording],
    problem: Problem | None,
    *,
    device_ids: Sequence[str] = (),
    settings: EstimateSettings,
) -> Iterator[RecordedAnswer]:
    def is_of(recording: Recording, problem: Problem) -> bool:
        """Tell whether it is of that kernel and index space, whoever chose the local size."""
        asked, ran = problem.ndrange, recording.ndrange
        return recording.kernel_digest == problem.kernel.digest and ran == NDRange(
            global_size=asked.global_size,
            local_size=asked.local_size or ran.local_size,
            global_offset=asked.global_offset,
        )

    known = {one.device.id for one in recordings}
    wanted = {match_device_id(text, known) for text in device_ids} or known
    chosen = [
        one
        for one in recordings
        if one.device.id in wanted and (problem is None or is_of(one, problem))
    ]
    if not chosen:
        what = "the recording is empty" if problem is None else f"no recording of {problem.name}"
        have = ", ".join(f"{one.kernel_name} on {one.device.id}" for one in recordings) or "nothing"
        msg = f"{what} with this source, build options and sizes; recorded are: {have}"
        raise RecordingError(msg)
    executor = RecordedSamples(chosen[0])
    settings = replace(settings, uses_history=False)
    predictor = Predictor(options=PredictorOptions(settings=settings, executor=executor))
    for one in chosen:
        executor.recording = one
        stand_in = Kernel(name=one.kernel_name, source=f"kernel void {one.kernel_name}();")
        asked = problem or Problem(
            name=one.kernel_name, kernel=stand_in, ndrange=one.ndrange, arguments=()
        )
        answer = _ask(partial(predictor.estimate, anew=True), asked, one.device)
        if isinstance(answer.error, RecordingError):
            raise answer.error
        if problem is None and answer.estimate is not None:
            answer = replace(answer, estimate=replace(answer.estimate, identity=None))
        yield answer, one if answer.estimate else None
