"""Gives drivers and libraries a place for their caches where the user's own cannot be written.

A home that is read-only, full or missing costs a cache, not an answer: without this, pyopencl
fails at the first kernel, whatever it is asked.
"""

import atexit
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

_FOLDERS: Final = {
    "POCL_CACHE_DIR": "pocl",
    "MESA_SHADER_CACHE_DIR": "mesa",
    "NUMBA_CACHE_DIR": "numba",
    "MPLCONFIGDIR": "matplotlib",
}
_OFF: Final = {"PYOPENCL_NO_CACHE": "1"}
# A disk that is full takes an empty file, and often a small one.
_TRIAL_BYTES: Final = 2**16


def user_cache_folder() -> Path | None:
    """Give the folder of the user's caches; None where the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None


def ensure_caches() -> Path | None:
    """Point caches at a temporary folder if the user's folder cannot be written.

    Must be called before pyopencl is imported. What the caller has chosen is left alone, and
    child processes find what their parent has chosen. The folder goes when the process ends.

    Returns
    -------
    Path or None
        The temporary folder, where one was needed.
    """
    if all(name in os.environ for name in (*_FOLDERS, *_OFF)):
        return None
    failure = _try_writing(user_cache_folder())
    if failure is None:
        return None
    _log.warning("caches are not kept, so later runs build kernels anew: %s", failure)
    for name, value in _OFF.items():
        os.environ.setdefault(name, value)
    try:
        temporary = Path(tempfile.mkdtemp(prefix="kernelcast-caches-"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    for name, folder in _FOLDERS.items():
        (temporary / folder).mkdir()
        os.environ.setdefault(name, str(temporary / folder))
    return temporary


def _try_writing(folder: Path | None) -> str | None:
    """Say why files cannot be kept in a folder; None where they can."""
    if folder is None:
        return "there is no home folder"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix="kernelcast-") as trial:
            trial.write(bytes(_TRIAL_BYTES))
            trial.flush()
    except OSError as error:
        return f"{folder}: {error.strerror or error}"
    return None
