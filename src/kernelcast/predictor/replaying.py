"""Answers from recorded samples, on the way that answers from devices go."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kernelcast.launches.estimation import estimate_runs
from kernelcast.launches.recordings import RecordedAnswer, Recording
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.fusion import Kind, Piece
from kernelcast.models.evidence.moments import SampledMoment
from kernelcast.predictor.answering.measuring import make_row, put_analytic
from kernelcast.predictor.answering.processes import ReportProgress
from kernelcast.predictor.answering.tasks import (
    EstimateOutcome,
    EstimateTask,
    LaunchFacts,
    ModelOutcome,
    ModelTask,
    read_facts,
    read_moments,
)
from kernelcast.predictor.predictor import Predictor
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.records.contention import combine_contention
from kernelcast.records.errors import DeviceError, InputError, KernelcastError, RecordingError
from kernelcast.records.estimates import DeviceAnswer, Measurement
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.device_ids import match_device_id

_NO_FACTS = "the recording holds no facts about the launch; record it again"


@dataclass(slots=True)
class RecordedSamples:
    """Gives the samples of a recording instead of a device's; an `Executor`."""

    recording: Recording
    """The one that answers next."""

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        del timeout_s, report
        recording = self.recording
        sampled = estimate_runs(
            recording, task.problem.kernel.name, recording.runs, task.settings.coverage
        )
        estimate = sampled.estimate
        if task.settings.measure:
            estimate = replace(estimate, measurement=_find_measurement(recording, task.settings))
        outcome = EstimateOutcome(
            estimate=estimate,
            recording=recording,
            moments=_read_moments(recording),
            pieces=_read_pieces(recording),
        )
        if recording.facts is None:
            return replace(outcome, row_failure=_NO_FACTS if task.wants_row else "")
        facts = _read(recording)
        return replace(
            outcome,
            estimate=put_analytic(estimate, facts.analytic),
            row=make_row(sampled, facts) if task.wants_row else None,
            moments=_read_moments(recording, facts),
        )

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        del timeout_s, report
        msg = f"{task.device_id}: a recording has samples alone"
        raise DeviceError(msg)

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> None:
        """Count nothing: its sizes are of no other launch."""


def _read_moments(
    recording: Recording, facts: LaunchFacts | None = None
) -> tuple[SampledMoment, ...]:
    """Give what samples say as they did then, however long ago that was."""
    return tuple(replace(one, at_s=None) for one in read_moments(recording.runs, facts))


def _find_measurement(recording: Recording, settings: EstimateSettings) -> Measurement:
    if not recording.whole_s:
        msg = f"the recording of {recording.device.id} has no whole runs; record with --measure"
        raise RecordingError(msg)
    # Of older files only the samples tell what other programs did then.
    seen = combine_contention([one.contention for one in recording.runs if one.contention])
    slowdown = recording.slowdown or (seen.slowdown if seen and seen.is_noticeable else 1.0)
    return Measurement(durations_s=recording.whole_s[: settings.measured_runs], slowdown=slowdown)


def _read_pieces(recording: Recording) -> tuple[Piece, ...]:
    """Give what the recorded answer was put together of; none where an older file does not say."""
    try:
        return tuple(Piece(**{**one, "kind": Kind(one["kind"])}) for one in recording.pieces)
    except (KeyError, TypeError, ValueError, InputError) as error:
        msg = f"the recording of {recording.device.id} holds no sound pieces ({error!r})"
        raise RecordingError(msg) from error


def _read(recording: Recording) -> LaunchFacts:
    try:
        return read_facts(recording.facts or {})
    except ValueError as error:
        msg = f"the recording of {recording.device.id} holds no sound facts ({error!r})"
        raise RecordingError(msg) from error


def replay(
    recordings: Sequence[Recording],
    problem: Problem | None,
    *,
    device_ids: Sequence[str] = (),
    settings: EstimateSettings,
) -> Iterator[RecordedAnswer]:
    known = {one.device.id for one in recordings}
    wanted = {match_device_id(text, known) for text in device_ids} or known
    chosen = [
        one
        for one in recordings
        if one.device.id in wanted and (problem is None or _is_of(one, problem))
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
        yield _answer(predictor, one, problem)


def _answer(predictor: Predictor, recording: Recording, problem: Problem | None) -> RecordedAnswer:
    asked = problem or _make_problem(recording)
    make = partial(
        DeviceAnswer,
        device_id=recording.device.id,
        device=recording.device.name,
        problem=asked.name,
        kernel=recording.kernel_name,
    )
    try:
        estimate = predictor.estimate(asked, recording.device, anew=True)
    except RecordingError:
        raise
    except KernelcastError as error:
        return RecordedAnswer(answer=make(error=error), recording=None)
    if problem is None:
        estimate = replace(estimate, identity=None)
    return RecordedAnswer(answer=make(estimate=estimate), recording=recording)


def _make_problem(recording: Recording) -> Problem:
    """Stand in for the problem of a recording: it holds no source."""
    kernel = Kernel(name=recording.kernel_name, source=f"kernel void {recording.kernel_name}();")
    return Problem(
        name=recording.kernel_name, kernel=kernel, ndrange=recording.ndrange, arguments=()
    )


def _is_of(recording: Recording, problem: Problem) -> bool:
    """Tell whether a recording is of that kernel and index space, whoever chose the local size."""
    asked, ran = problem.ndrange, recording.ndrange
    return recording.kernel_digest == problem.kernel.digest and ran == NDRange(
        global_size=asked.global_size,
        local_size=asked.local_size or ran.local_size,
        global_offset=asked.global_offset,
    )
