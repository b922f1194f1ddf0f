"""Facts about launches, in memory and in the data folder: a later process need not count them.

The key names launch, device, driver and calibration, see `KnownFacts`.
"""

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from kernelcast.launches.machines import machine_path
from kernelcast.predictor.answering.identity import FileStamps, stamp_files
from kernelcast.predictor.answering.kept_files import KeptFiles
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.tasks import LaunchFacts
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.arguments import Access
from kernelcast.records.errors import KernelcastError
from kernelcast.training.peaks import DevicePeaks

FORMAT = "kernelcast facts 2"
"""Changes when a file's meaning does."""
_NOT_KEPT = "facts about launches are not kept, so later runs count anew"
# Together some 15 MB.
_MOST_FILES = 16
_FACTS_KEPT = 1000

FactsKey = tuple[str, str, str, str, FileStamps, int, int]


class FactsStore:
    """Keeps facts in a folder; several processes may share it.

    Parameters
    ----------
    folder : Path, optional
        ``facts`` in the data folder when left out.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._files = KeptFiles("facts", most_files=_MOST_FILES, not_kept=_NOT_KEPT, folder=folder)

    def find(self, key: Sequence[object]) -> LaunchFacts | None:
        """Give the facts of a key; None where there are none that can be read."""
        try:
            held = json.loads(self._files.find((FORMAT, *key)) or b"null")
            return read_facts(held) if held["format"] == FORMAT else None
        except (ValueError, KeyError, TypeError, AttributeError, KernelcastError):
            return None

    def keep(self, key: Sequence[object], facts: LaunchFacts) -> None:
        """Write facts; where that fails, it is said once."""
        self._files.keep((FORMAT, *key), json.dumps(write_facts(facts)).encode())


class KnownFacts:
    """Facts of launches that this process has met, and of those that a store has.

    Parameters
    ----------
    store : FactsStore or None
        None: there is no store.
    """

    def __init__(self, store: FactsStore | None) -> None:
        self._store = store
        self._known: LRUCache[FactsKey, LaunchFacts | str] = LRUCache(_FACTS_KEPT)
        self._lock = threading.Lock()

    def find(self, request: LaunchRequest) -> LaunchFacts | str | None:
        """Give the facts of a launch, or why it has none; None where nobody has looked yet."""
        key = _name(request)
        with self._lock:
            found = self._known.get(key)
        if found is None and self._store is not None and not request.includes_files:
            found = self._store.find(key)
            if found is not None:
                self._remember(key, found)
        return found

    def keep(self, request: LaunchRequest, facts: LaunchFacts | str) -> None:
        """Keep what was found of a launch."""
        if not facts:
            return
        key = _name(request)
        if self._store is not None and not (request.includes_files or isinstance(facts, str)):
            self._store.keep(key, facts)
        self._remember(key, facts)

    def _remember(self, key: FactsKey, facts: LaunchFacts | str) -> None:
        with self._lock:
            self._known[key] = facts


def _name(request: LaunchRequest) -> FactsKey:
    """Say what facts hold for: kernel, sizes, arguments, device, calibration."""
    problem, device = request.problem, request.device
    try:
        changed_ns = machine_path(device.id).stat().st_mtime_ns
    except (OSError, KernelcastError):
        changed_ns = 0
    sizes = f"{problem.ndrange} {problem.arguments}"
    return (problem.kernel.digest, device.id, device.driver, sizes, stamp_files(problem),
            changed_ns, request.policy.settings.seed)  # fmt: skip


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
