"""Keeps raw samples in a file, and answers from such a file without a device."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import InputError, RecordingError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import match_device_id
from kernelcast.sampling.replay import (
    Recording,
    ReplayLaunch,
    read_recordings,
    write_recordings,
)

__all__ = ["RecordedAnswer", "Recording", "read_recordings", "replay", "save_recordings"]


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
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            write_recordings(partial, recordings)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{path}: the recording cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


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
