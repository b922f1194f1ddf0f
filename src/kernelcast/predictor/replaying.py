"""Answers from recorded samples, on the way that answers from devices go."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kernelcast.launches.estimation import estimate_runs
from kernelcast.launches.recordings import RecordedAnswer, Recording
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.fusion import Kind, Piece
from kernelcast.predictor.answering.measuring import make_row
from kernelcast.predictor.answering.processes import ReportProgress
from kernelcast.predictor.answering.tasks import (
    EstimateOutcome,
    EstimateTask,
    LaunchFacts,
    ModelOutcome,
    ModelTask,
    put_analytic,
    read_facts,
    read_moments,
)
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.contention import combine_contention
from kernelcast.records.device import match_device_id
from kernelcast.records.errors import DeviceError, InputError, KernelcastError, RecordingError
from kernelcast.records.estimates import DeviceAnswer, Measurement
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

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
        recording, settings = self.recording, task.settings
        subject = f"the recording of {recording.device.id}"
        sampled = estimate_runs(
            recording, task.problem.kernel.name, recording.runs, settings.coverage
        )
        estimate = sampled.estimate
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
        facts: LaunchFacts | None = None
        try:
            pieces = tuple(Piece(**{**one, "kind": Kind(one["kind"])}) for one in recording.pieces)
            if recording.facts is not None:
                facts = read_facts(recording.facts)
                estimate = put_analytic(estimate, facts.analytic)
        except (KeyError, TypeError, ValueError, InputError) as error:
            raise RecordingError(f"{subject} holds no sound facts or pieces ({error!r})") from error
        return EstimateOutcome(
            estimate=estimate,
            recording=recording,
            # They say what they did then, however long ago that was.
            moments=tuple(replace(one, at_s=None) for one in read_moments(recording.runs, facts)),
            pieces=pieces,
            row=make_row(sampled, facts) if facts and task.wants_row else None,
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
    """Predict from recordings instead of devices."""

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
        make = partial(
            DeviceAnswer,
            device_id=one.device.id,
            device=one.device.name,
            problem=asked.name,
            kernel=one.kernel_name,
        )
        try:
            estimate = predictor.estimate(asked, one.device, anew=True)
        except RecordingError:
            raise
        except KernelcastError as error:
            yield RecordedAnswer(answer=make(error=error), recording=None)
            continue
        if problem is None:
            estimate = replace(estimate, identity=None)
        yield RecordedAnswer(answer=make(estimate=estimate), recording=one)
