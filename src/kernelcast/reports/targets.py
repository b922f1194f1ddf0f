"""Files and folders that somebody names for results: checked before the work, written after it."""

from pathlib import Path

from kernelcast.records.errors import InputError


def check_target(path: Path) -> None:
    """Make sure that a file can be written, before minutes of work are lost."""
    if not path.parent.is_dir():
        msg = f"{path}: there is no folder {path.parent}; make it first"
        raise InputError(msg)
    if path.is_dir():
        msg = f"{path}: is a folder; name a file"
        raise InputError(msg)


def make_folder(folder: Path) -> None:
    """Make a folder, before minutes of work are lost."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder}: the folder cannot be made: {error.strerror or error}"
        raise InputError(msg) from error
