"""Keeps the generated inputs of the corpus's kernels: made once, and not for good."""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelcast.records.private_files import make_private_folder
from kernelcast.training_data.applications import InputMaker

_MADE = "made.json"
_MAKING = "making-"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCache:
    """A folder of inputs; several processes may use it at once."""

    folder: Path
    """Where they are kept: a folder per application, in it one for each set of parameters."""
    most_bytes: int = 8 << 30
    """What all together may take; those that were used longest ago go first. A collection of every
    kernel at some sizes generates tens of GB."""
    in_use_s: float = 600.0
    """Whoever asked for inputs within so many seconds may still be about to read them: they
    stay."""

    def get(
        self, application: str, parameters: Mapping[str, int], code: bytes, make: InputMaker
    ) -> tuple[Path, dict[str, int]]:
        """Give the folder of inputs and the parameters that follow; make them if need be.

        Parameters
        ----------
        parameters : mapping of str to int
            What they depend on.
        code : bytes
            What makes them: inputs of other code are others.
        """
        identity = json.dumps([application, dict(parameters)], sort_keys=True).encode() + code
        kept = self.folder / application / hashlib.sha256(identity).hexdigest()[:16]
        try:
            os.utime(kept)  # before anything else: nobody drops what was just used
        except FileNotFoundError:
            _make_at(kept, dict(parameters), make)
            self._make_room()
        return kept, json.loads((kept / _MADE).read_text(encoding="utf-8"))

    def _make_room(self) -> None:
        """Drop what was used longest ago until the rest is small enough, and what killed ones left.

        Their unfinished folders are nobody's.
        """
        total = 0
        for used_s, folder, size in sorted(_list_entries(self.folder), reverse=True):
            total += size
            is_surplus = total > self.most_bytes or folder.name.startswith(_MAKING)
            if is_surplus and time.time() - used_s > self.in_use_s:
                shutil.rmtree(folder, ignore_errors=True)


def _list_entries(folder: Path) -> list[tuple[float, Path, int]]:
    """Give when each set of inputs was last used, its folder and its bytes."""
    found = []
    for one in folder.glob("*/*/"):
        try:
            size = sum(file.stat().st_size for file in one.iterdir())
            found.append((one.stat().st_mtime, one, size))
        except OSError:  # another process has just dropped it
            continue
    return found


def _make_at(kept: Path, parameters: dict[str, int], make: InputMaker) -> None:
    make_private_folder(kept.parent)
    making = Path(tempfile.mkdtemp(prefix=_MAKING, dir=kept.parent))
    try:
        made = make(parameters, making)
        (making / _MADE).write_text(json.dumps(made), encoding="utf-8")
        _move_into_place(making, kept)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _move_into_place(making: Path, folder: Path) -> None:
    """Rename a finished folder; if another process was first, its folder holds the same."""
    try:
        making.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
