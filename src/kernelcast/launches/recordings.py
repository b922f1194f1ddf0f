"""Keeps raw samples in a file."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.sampling.replay import Recording, read_recordings, write_recordings

__all__ = ["RecordedAnswer", "Recording", "read_recordings", "save_recordings"]


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
