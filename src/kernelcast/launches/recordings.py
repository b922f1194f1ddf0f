"""Keeps raw samples in a file."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from kernelcast.records.errors import InputError, RecordingError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.records.private_files import written_whole
from kernelcast.sampling.replay import Recording
from kernelcast.workers.decoding import structure

__all__ = ["RecordedAnswer", "Recording", "read_recordings", "save_recordings"]

FORMAT_VERSION = 1
"""1 (0.1.0): device, ndrange, saturation, launches, whole runs; later files may hold more."""


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
    text = json.dumps(content, indent=1, default=datetime.isoformat)
    path.write_text(text + "\n", encoding="utf-8")


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
        return [_read(dict(one)) for one in content["recordings"]]
    except (KeyError, TypeError, ValueError, InputError) as error:
        msg = f"{path}: the recording is incomplete ({error}); record again"
        raise RecordingError(msg) from error


def _read(content: dict[str, Any]) -> Recording:
    facts = content.pop("facts", None)
    if not isinstance(facts, dict | None):
        msg = f"facts: expected a mapping, found {facts!r}"
        raise ValueError(msg)  # noqa: TRY004 - the file is wrong, not a caller's type
    recording: Recording = replace(structure(content, Recording), facts=facts)
    _check(recording)
    return recording


def _check(recording: Recording) -> None:
    """Refuse boxes outside the index space, negative times and launches without work-groups."""
    for box, _ in recording.launches:
        recording.ndrange.work_items_of(box)
    clocks_s = filter(None, recording.clocks_s)
    times_s = (recording.launch_overhead_s, *dict(recording.launches).values(), *recording.whole_s,
               *clocks_s)  # fmt: skip
    point = recording.saturation
    if min(times_s) < 0 or min(point.p_sat.value, point.concurrency, point.saturated_from) < 1:
        msg = f"{point}: each number is at least 1; and no time is negative"
        raise ValueError(msg)
