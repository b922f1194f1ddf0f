"""Files and folders that their owner alone can read, and files that are there whole or not."""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kernelcast.records.errors import InputError

OWNER_ONLY_UMASK: Final = 0o077
"""Of a process all of whose files are its owner's alone."""
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def user_cache_folder() -> Path | None:
    """Find the folder of the user's caches; None where the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the owner alone; else leave it."""
    missing = []
    for one in (folder, *folder.parents):
        if one.exists():
            break
        missing.append(one)
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    if not missing and not folder.is_dir():
        folder.mkdir()  # says that a file is in the way


def make_private_file(path: Path) -> None:
    """Make an empty file without opening it by its name, which would drop SQLite's locks on it."""
    descriptor, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(made, path)
    finally:
        Path(made).unlink()


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Open a file that replaces another one when it is written, and is removed if that fails."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path, what: str = "the file") -> Iterator[None]:
    """Say of a file that cannot be written which one it is, and why."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {what} cannot be written: {error.strerror or error}") from error


def write_output(path: Path, text: str, what: str, *, mode: int | None = None) -> None:
    """Write a user's file whole or not at all, else `InputError`; devices as they are."""
    with writing(path, what):
        if path.exists() and not path.is_file():  # /dev/stdout and the like cannot be replaced
            path.write_text(text, encoding="utf-8")
            return
        with written_whole(path) as partial:
            partial.write_text(text, encoding="utf-8")
            if mode is not None:
                partial.chmod(mode)


def write_private(path: Path, content: bytes) -> None:
    """Write a private file whole, in a folder that is made where it is missing."""
    make_private_folder(path.parent)
    with written_whole(path) as partial:
        partial.write_bytes(content)
        partial.chmod(0o600)


def keep_among(path: Path, content: bytes, *, most: int) -> None:
    """Write a private file whole; of its kind in its folder the oldest goes beyond `most`."""
    write_private(path, content)
    others = [*path.parent.glob(f"*{path.suffix}")]
    if len(others) > most:
        min(others, key=lambda one: one.stat().st_mtime_ns).unlink(missing_ok=True)


def close_to_others(path: Path) -> bool:
    """Take the right to read from others unless they may write; tell whether they have it."""
    if sys.platform == "win32":  # a user's folders are closed to others there
        return False
    try:
        found = path.stat()
        is_open = bool(found.st_mode & _OTHERS)
        if is_open and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
            return False
    except OSError:
        return False
    return is_open


def check_target(path: Path) -> None:
    """Make sure that a file can be written, before minutes of work are lost."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file")


def make_folder(folder: Path) -> None:
    """Make a folder, before minutes of work are lost."""
    with writing(folder, "the folder"):
        folder.mkdir(parents=True, exist_ok=True)
