"""Asks for every answer and keeps what is there, whatever ends the asking."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kernelcast.cli.request import EstimateRequest
from kernelcast.cli.status import ExitStatus, status_of, worst
from kernelcast.launches.recordings import RecordedAnswer, Recording, read_recordings
from kernelcast.predictor.estimates import estimate_on_devices, find_devices
from kernelcast.predictor.replaying import replay
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.records.problem import Problem

Report = Callable[[str], None]


@dataclass(slots=True)
class Collected:
    """What has been answered so far.

    Parameters
    ----------
    answers : list of DeviceAnswer
        In the order of problems and devices.
    recordings : list of Recording
        Raw samples of those that succeeded.
    refusals : list of (str, KernelcastError)
        Problems that no device takes, and what kept all devices from answering.
    is_interrupted : bool
        Whether Ctrl-C ended the asking.
    """

    answers: list[DeviceAnswer] = field(default_factory=list)
    recordings: list[Recording] = field(default_factory=list)
    refusals: list[tuple[str, KernelcastError]] = field(default_factory=list)
    is_interrupted: bool = False

    @property
    def complaints(self) -> list[str]:
        """Every error, one text each."""
        failed = [(one.problem, one.error) for one in self.answers if one.error is not None]
        return [f"{name}: {error}" if name else str(error) for name, error in
                (*failed, *self.refusals)]  # fmt: skip

    @property
    def status(self) -> ExitStatus:
        """Exit status of the program."""
        if self.is_interrupted:
            return ExitStatus.INTERRUPTED
        failed = [ExitStatus.FAILED for one in self.answers if one.error is not None]
        return worst([*failed, *(status_of(error) for _, error in self.refusals)])

    def add(self, one: RecordedAnswer) -> None:
        """Keep an answer."""
        self.answers.append(one.answer)
        if one.recording is not None:
            self.recordings.append(one.recording)


def collect(
    request: EstimateRequest,
    problems: Sequence[Problem],
    report: Report,
    refusals: Sequence[KernelcastError] = (),
) -> Collected:
    """Answer every problem; an error ends one problem, Ctrl-C ends all.

    Parameters
    ----------
    request : EstimateRequest
        Devices, settings, where to answer from.
    problems : sequence of Problem
        May be empty where a recording answers.
    report : callable
        Is told of each stage.
    refusals : sequence of KernelcastError, optional
        Why other problem files could not be read.

    Raises
    ------
    InputError
        If a device is unknown or a recording unreadable.
    NoDeviceError
        If there is no device.
    """
    collected = Collected(refusals=[("", error) for error in refusals])
    if refusals and not problems:
        return collected
    try:
        for name, answers in _questions(request, problems, report):
            try:
                for one in answers:
                    collected.add(one)
            except KernelcastError as error:
                collected.refusals.append((name, error))
    except KeyboardInterrupt:
        collected.is_interrupted = True
    return collected


def _questions(
    request: EstimateRequest, problems: Sequence[Problem], report: Report
) -> Iterator[tuple[str, Iterator[RecordedAnswer]]]:
    """Give each problem's name with its answers to come."""
    settings, ids = request.settings(), request.device_ids
    if request.replay_file is not None:
        recordings = read_recordings(request.replay_file)
        wanted: Sequence[Problem | None] = problems or [None]
        for one in wanted:
            name = request.replay_file.name if one is None else one.name
            yield name, replay(recordings, one, device_ids=ids, settings=settings)
        return
    report("looking for devices")
    devices = find_devices(ids)
    for number, problem in enumerate(problems, start=1):
        yield (
            problem.name,
            estimate_on_devices(
                problem,
                devices,
                settings=settings,
                timeout_s=request.timeout_s,
                report=_prefix(report, f"[{number}/{len(problems)}] {problem.name} on "),
            ),
        )


def _prefix(report: Report, place: str) -> Report:
    return lambda stage: report(place + stage)
