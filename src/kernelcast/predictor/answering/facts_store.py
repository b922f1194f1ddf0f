"""Facts about launches in the data folder: a later process need not count what another has.

One file per launch, device, driver, calibration and version of what makes features: whatever
changes gives another name. What cannot be read is made anew, what cannot be written is not kept.
"""

import hashlib
import json
import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelcast.launches.data_folder import data_folder
from kernelcast.predictor.answering.tasks import LaunchFacts
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.arguments import Access
from kernelcast.records.errors import KernelcastError
from kernelcast.records.private_files import make_private_folder
from kernelcast.training.peaks import DevicePeaks

_log = logging.getLogger(__name__)

_NOT_KEPT = "facts about launches are not kept, so later runs count anew: %s"

FORMAT = "kernelcast facts 2"
"""Changes when a file's meaning does."""
# 256 folders of so many files: some 15 MB.
_MOST_FILES = 16


class FactsStore:
    """Keeps facts in a folder; several processes may share it.

    Parameters
    ----------
    folder : Path, optional
        ``facts`` in the data folder when left out.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._has_failed = False

    def find(self, key: Sequence[object]) -> LaunchFacts | None:
        """Give the facts of a key; None where there are none that can be read."""
        try:
            held = json.loads(self._locate(key).read_bytes())
            return read_facts(held) if held["format"] == FORMAT else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, KernelcastError):
            return None

    def keep(self, key: Sequence[object], facts: LaunchFacts) -> None:
        """Write facts so that readers see all of them or nothing; failing that, say so once."""
        try:
            path = self._locate(key)
            make_private_folder(path.parent)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(write_facts(facts)), encoding="utf-8")
            part.replace(path)
            _forget_oldest(path.parent)
        except (OSError, KernelcastError) as error:
            if not self._has_failed:
                self._has_failed = True
                _log.warning(_NOT_KEPT, error)

    def _locate(self, key: Sequence[object]) -> Path:
        text = "\n".join(map(repr, (FORMAT, _find_version(), _stamp_code(), *key)))
        digest = hashlib.sha256(text.encode()).hexdigest()
        folder = data_folder() / "facts" if self._folder is None else self._folder
        return folder / digest[:2] / f"{digest}.json"


def write_facts(facts: LaunchFacts) -> dict[str, object]:
    """Give facts as what JSON can hold."""
    return {
        "format": FORMAT,
        "values": dict(facts.values),
        "issued_per_work_item": facts.issued_per_work_item,
        "analytic": facts.analytic and asdict(facts.analytic),
        "notes": facts.notes,
        "cost_s": facts.cost_s,
        "accesses": [None if one is None else one.value for one in facts.accesses],
        "peaks": {name: one for name, one in asdict(facts.peaks).items() if math.isfinite(one)},
    }


def read_facts(held: Mapping[str, Any]) -> LaunchFacts:
    """Make facts of what `write_facts` gave.

    Raises
    ------
    ValueError, KeyError, TypeError, AttributeError, KernelcastError
        If something else is given.
    """
    analytic = held["analytic"]
    issued = held["issued_per_work_item"]
    return LaunchFacts(
        values={str(name): float(one) for name, one in held["values"].items()},
        issued_per_work_item=None if issued is None else float(issued),
        analytic=analytic and AnalyticEstimate(**{**analytic, "notes": tuple(analytic["notes"])}),
        accesses=tuple(None if one is None else Access(one) for one in held["accesses"]),
        notes=tuple(map(str, held["notes"])),
        cost_s=float(held["cost_s"]),
        peaks=DevicePeaks(**held["peaks"]),
    )


def _forget_oldest(folder: Path) -> None:
    paths = [*folder.glob("*.json")]
    if len(paths) > _MOST_FILES:
        min(paths, key=lambda one: one.stat().st_mtime_ns).unlink()


@cache
def _find_version() -> str:
    """Give the version of this package, which importlib looks for in files at each call."""
    return version("kernelcast")


@cache
def _stamp_code() -> str:
    """Give what changes with this package's code: any of it may make facts, wherever it is moved.

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
