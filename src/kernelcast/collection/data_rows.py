"""Brings observations in from files and other stores, removes and corrects them."""

import dataclasses
import getpass
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kernelcast.records.errors import InputError
from kernelcast.records.observation import Observation, ObservationFlag, summarise_runs
from kernelcast.records.plain import CONVERTER
from kernelcast.records.service_state import AuditRecord
from kernelcast.service_state import OBSERVATIONS_CHANGED, find_state
from kernelcast.training_data.importers.tuning import TuningFiles
from kernelcast.training_data.sources import SourceFile, read_file
from kernelcast.training_data.store import AddedRows, Selection, Store
from kernelcast.training_data.summary import observation_to_json

REMOVED: Final = "remove_observations"
CORRECTED: Final = "correct_observation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is to be different in an observation; None and an empty tuple leave it as it is."""

    durations_s: tuple[float, ...] = ()
    measured_at: datetime | None = None
    flags: Mapping[ObservationFlag, bool]


def find_observations(store: Store, wanted: Selection, *, most: int) -> list[dict[str, object]]:
    """Find the first of what a selection means, as `kernelcast data ls --rows --json` shows it."""
    return [observation_to_json(one, is_full=False) for one in islice(store.find(wanted), most)]


def describe_selection(wanted: Selection) -> dict[str, Any]:
    asked = {one.name: getattr(wanted, one.name) for one in fields(wanted)
             if getattr(wanted, one.name) != one.default}  # fmt: skip
    plain: dict[str, Any] = CONVERTER.unstructure(asked)
    return plain


def correct_observation(store: Store, key: str, correction: Correction) -> dict[str, object]:
    """Change an observation; its key, launch, features and samples stay."""
    one = store.get(key)
    new = {flag for flag, is_set in correction.flags.items() if is_set}
    if correction.durations_s:
        one = dataclasses.replace(one, runs=summarise_runs(correction.durations_s))
    one = dataclasses.replace(
        one,
        flags=(one.flags - set(correction.flags)) | new,
        measured_at=correction.measured_at or one.measured_at,
    )
    store.add(one, replace=True)
    return observation_to_json(one, is_full=False)


def remove_by_hand(store: Store, wanted: Selection, count: int) -> int:
    state = find_state(store.address)
    if state is None:
        return store.remove_selected(wanted)
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    with state:
        state.audit.add(
            AuditRecord(
                at=datetime.now(UTC),
                actor=f"command line: {user}",
                action=REMOVED,
                subject=f"{count} observations",
                detail=describe_selection(wanted),
            )
        )
        try:
            return store.remove_selected(wanted)
        finally:
            state.changes.count(OBSERVATIONS_CHANGED)


Report = Callable[[str], None]


def import_file(
    store: Store,
    path: Path,
    *,
    replace: bool = False,
    tuning: TuningFiles | None = None,
    report: Report = lambda _: None,
) -> tuple[SourceFile, AddedRows, Mapping[str, int]]:
    """Add what a file holds to a store; an error leaves the store as it was.

    Return what the file is, what was added, and how many rows of a table have no value of a size,
    by its feature: models that start from sizes leave them out.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    found = read_file(path, tuning)
    lacking: Counter[str] = Counter()

    def note(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            absent = () if one.features is None else one.features.absent
            lacking.update(name for name in absent if name.startswith("static.size_"))
            yield one

    rows = store.add_many(_count(note(found.observations), report), replace=replace)
    store.add_failures(found.failures)
    return found, rows, lacking if found.kind == "table" else {}


def merge_stores(
    target: Store,
    sources: Sequence[Store],
    *,
    replace: bool = False,
    report: Report = lambda _: None,
) -> list[AddedRows]:
    """Add the observations and failures of other stores, each store in one transaction."""
    for one in sources:
        if one.address == target.address:
            raise InputError(f"{one.where}: is the store to merge into; name another")
    added = []
    for one in sources:
        added.append(target.add_many(_count(one.find(), report), replace=replace))
        target.add_failures(one.failures())
    return added


def _count(observations: Iterable[Observation], report: Report) -> Iterator[Observation]:
    for number, one in enumerate(observations, start=1):
        if number % 1000 == 0:
            report(f"{number:,} rows")
        yield one
