"""Keeps raw samples in a file, and answers from such a file without a device."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import InputError, RecordingError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.records.ndrange import NDRange
from kernelcast.records.private_files import written_whole
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import match_device_id
from kernelcast.sampling.replay import Recording, ReplayLaunch
from kernelcast.workers.decoding import structure

__all__ = ["RecordedAnswer", "Recording", "read_recordings", "replay", "save_recordings"]

FORMAT_VERSION = 1
"""1 (0.1.0): device, ndrange, saturation, launches, whole runs; later files may hold the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """An answer with the raw samples behind it; a device that failed has none."""

    answer: DeviceAnswer
    recording: Recording | None


def save_recordings(path: Path, recordings: Sequence[Recording]) -> None:
    """Write recordings so that the file is there whole or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        if path.exists() and not path.is_file():  # /dev/stdout and the like cannot be replaced
            write_recordings(path, recordings)
            return
        with written_whole(path) as partial:
            write_recordings(partial, recordings)
    except OSError as error:
        msg = f"{path}: the recording cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def write_recordings(path: Path, recordings: Sequence[Recording]) -> None:
    """Write recordings as JSON."""
    content = {"format": FORMAT_VERSION, "recordings": [asdict(one) for one in recordings]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_recordings(path: Path) -> list[Recording]:
    """Read recordings.

    Raises
    ------
    RecordingError
        If the file cannot be read, is no recording, or is of a newer version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content["format"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        msg = f"{path}: is no recording ({error}); make one with `kernelcast estimate --record`"
        raise RecordingError(msg) from error
    if version != FORMAT_VERSION:
        msg = f"{path}: is of format {version}, this version reads {FORMAT_VERSION}"
        raise RecordingError(msg)
    try:
        found: list[Recording] = structure(content["recordings"], list[Recording])
        for one in found:
            _check(one)
    except (KeyError, ValueError, InputError) as error:
        msg = f"{path}: the recording is incomplete ({error}); record again"
        raise RecordingError(msg) from error
    return found


def _check(recording: Recording) -> None:
    """Refuse boxes outside the index space, negative times and launches without work-groups."""
    for box, _ in recording.launches:
        recording.ndrange.work_items_of(box)
    times_s = (recording.launch_overhead_s, *dict(recording.launches).values(), *recording.whole_s)
    point = recording.saturation
    if min(times_s) < 0 or min(point.p_sat.value, point.concurrency, point.saturated_from) < 1:
        msg = f"{point}: each number is at least 1; and no time is negative"
        raise ValueError(msg)


def replay(
    recordings: Sequence[Recording],
    problem: Problem | None,
    *,
    device_ids: Sequence[str] = (),
    settings: EstimateSettings,
) -> Iterator[RecordedAnswer]:
    """Predict from recordings instead of devices.

    Parameters
    ----------
    recordings : sequence of Recording
        What devices once answered.
    problem : Problem or None
        Whose recordings to use; None means: all.
    device_ids : sequence of str
        Ids, or beginnings of ids; all recorded devices when empty.
    settings : EstimateSettings
        Budget and seed count only where a recording does not hold its own.

    Yields
    ------
    RecordedAnswer

    Raises
    ------
    RecordingError
        If there is no recording of the problem, or it lacks what these settings ask for.
    UnknownDeviceError
        If no recorded device has that id.
    """
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
    for one in chosen:
        yield RecordedAnswer(answer=_answer(one, problem, settings), recording=one)


def _answer(
    recording: Recording, problem: Problem | None, settings: EstimateSettings
) -> DeviceAnswer:
    # The first whole run of a recording is the warm-up.
    runs = max(1, min(settings.measured_runs, len(recording.whole_s) - 1))
    settings = replace(settings, measured_runs=runs, plan=recording.plan or settings.plan)
    estimate = sample_launch(
        ReplayLaunch(recording),
        recording.kernel_name if problem is None else problem.kernel,
        settings,
        arguments=() if problem is None else problem.arguments,
        is_planned=True,
    ).estimate
    return DeviceAnswer(
        device_id=recording.device.id,
        device=recording.device.name,
        problem=recording.kernel_name if problem is None else problem.name,
        kernel=recording.kernel_name,
        estimate=estimate,
    )


def _is_of(recording: Recording, problem: Problem) -> bool:
    """Tell whether a recording is of that kernel and index space, whoever chose the local size."""
    asked, ran = problem.ndrange, recording.ndrange
    return recording.kernel_digest == problem.kernel.digest and ran == NDRange(
        global_size=asked.global_size,
        local_size=asked.local_size or ran.local_size,
        global_offset=asked.global_offset,
    )
