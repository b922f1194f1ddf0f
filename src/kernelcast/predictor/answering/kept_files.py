"""What was found out about launches, in the data folder: a later process need not find it again.

One file per key and version of what makes it: whatever changes gives another name. What cannot be
read is made anew, what cannot be written is not kept.
"""

import hashlib
import logging
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

from kernelcast.launches.data_folder import data_folder
from kernelcast.records.errors import KernelcastError
from kernelcast.records.private_files import keep_among

_log = logging.getLogger(__name__)


class KeptFiles:
    """Keeps texts in 256 folders; several processes may share them.

    Parameters
    ----------
    name : str
        Of the folder in the data folder.
    most_files : int
        In each of the 256; the oldest go.
    not_kept : str
        What is said, once, where they cannot be written; the error follows.
    folder : Path, optional
        In the place of that in the data folder.
    """

    def __init__(
        self, name: str, *, most_files: int, not_kept: str, folder: Path | None = None
    ) -> None:
        self._name, self._most_files, self._not_kept = name, most_files, not_kept
        self._folder = folder
        self._has_failed = False

    def find(self, key: Sequence[object]) -> bytes | None:
        """Give the text of a key; None where there is none that can be read."""
        try:
            return self._locate(key).read_bytes()
        except (OSError, KernelcastError):
            return None

    def keep(self, key: Sequence[object], text: bytes) -> None:
        """Write a text so that readers see all of it or nothing; failing that, say so once."""
        try:
            keep_among(self._locate(key), text, most=self._most_files)
        except (OSError, KernelcastError) as error:
            if not self._has_failed:
                self._has_failed = True
                _log.warning("%s: %s", self._not_kept, error)

    def _locate(self, key: Sequence[object]) -> Path:
        text = "\n".join(map(repr, (self._name, _find_version(), _stamp_code(), *key)))
        digest = hashlib.sha256(text.encode()).hexdigest()
        folder = data_folder() / self._name if self._folder is None else self._folder
        return folder / digest[:2] / f"{digest}.json"


@cache
def _find_version() -> str:
    """Give the version of this package, which importlib looks for in files at each call."""
    return version("kernelcast")


@cache
def _stamp_code() -> str:
    """Give what changes with this package's code, wherever it is moved: any of it may matter.

    An installed package is written as a whole: one file tells. To look at all takes 20 ms.
    """
    package = Path(__file__).parents[2]
    is_installed = package.parent.name in {"site-packages", "dist-packages"}
    places = [package / "__init__.py"] if is_installed else sorted(package.rglob("*.py"))
    found = hashlib.sha256()
    for path in places:
        status = path.stat()
        found.update(f"{path} {status.st_mtime_ns} {status.st_size}".encode())
    return found.hexdigest()
