"""The folder in which the processes of one service put their counts together."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kernelcast.service.metrics import MULTIPROCESS_VARIABLE

_PREFIX: Final = "kernelcast-metrics-"
_OWNERS: Final = "owners.lock"


@contextmanager
def shared_folder() -> Iterator[None]:
    """Have processes that start meanwhile share a folder; it goes at the end.

    Folders that killed services have left go, too.
    """
    _remove_stale()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    # Read when prometheus_client makes its first number, in each process.
    os.environ[MULTIPROCESS_VARIABLE] = str(folder)
    try:
        hold_shared_folder()
        yield
    finally:
        del os.environ[MULTIPROCESS_VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)


def hold_shared_folder() -> None:
    """Have this process count as one that needs the folder, if there is one, until it ends."""
    folder = Path(os.environ.get(MULTIPROCESS_VARIABLE, ""))
    if folder.name.startswith(_PREFIX):  # else it is an administrator's
        owners = os.open(folder / _OWNERS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(owners, fcntl.LOCK_SH)  # freed when the process ends, however it ends


def _remove_stale() -> None:
    """Remove folders of ours that no process needs.

    One without a list of owners is another version's, or about to get one: it stays.
    """
    for one in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if one.lstat().st_uid == os.geteuid() and not one.is_symlink():
                _remove_if_unused(one)


def _remove_if_unused(folder: Path) -> None:
    owners = os.open(folder / _OWNERS, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(owners, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(owners)
