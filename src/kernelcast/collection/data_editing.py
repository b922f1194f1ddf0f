"""Removes and corrects observations, and has running services notice."""

import getpass
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from kernelcast.records.observation import ObservationFlag
from kernelcast.records.observed_times import summarise_runs
from kernelcast.records.service_state import AuditRecord
from kernelcast.service_state import OBSERVATIONS_CHANGED, find_state
from kernelcast.training_data.store import Selection, Store
from kernelcast.training_data.summary import observation_to_json

REMOVED: Final = "remove_observations"
"""What the audit log calls a removal."""
CORRECTED: Final = "correct_observation"
"""What it calls a correction."""
_NOTHING: Final = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Observations that a selection means."""

    count: int
    rows: tuple[Mapping[str, object], ...]
    """The first of them, as `kernelcast data ls --rows --json` shows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is to be different in an observation; None and an empty tuple leave it as it is."""

    durations_s: tuple[float, ...] = ()
    measured_at: datetime | None = None
    flags: Mapping[ObservationFlag, bool]
    """Flags that it shall have, or not."""


def find_observations(store: Store, wanted: Selection, *, most: int) -> Found:
    """Give what a selection means."""
    rows = [observation_to_json(one, is_full=False) for one in islice(store.find(wanted), most)]
    return Found(count=store.count(wanted), rows=tuple(rows))


def describe_selection(wanted: Selection) -> dict[str, Any]:
    """Write down what a selection asks for, in plain values."""
    found = {one.name: getattr(wanted, one.name) for one in fields(wanted)}
    asked = {name: value for name, value in found.items() if value != getattr(_NOTHING, name)}
    return {name: _plain(value) for name, value in asked.items()}


def correct_observation(store: Store, key: str, correction: Correction) -> dict[str, object]:
    """Change an observation; its key, launch, features and samples stay."""
    one = store.get(key)
    new = {flag for flag, is_set in correction.flags.items() if is_set}
    if correction.durations_s:
        one = replace(one, runs=summarise_runs(correction.durations_s))
    one = replace(
        one,
        flags=(one.flags - set(correction.flags)) | new,
        measured_at=correction.measured_at or one.measured_at,
    )
    store.add(one, replace=True)
    return observation_to_json(one, is_full=False)


def remove_by_hand(store: Store, wanted: Selection, count: int) -> int:
    """Remove observations for the user at this terminal."""
    state = find_state(store.address)
    if state is None:
        return store.remove_selected(wanted)
    with state:
        state.audit.add(
            AuditRecord(
                at=datetime.now(UTC),
                actor=f"command line: {_find_user()}",
                action=REMOVED,
                subject=f"{count} observations",
                detail=describe_selection(wanted),
            )
        )
        try:
            return store.remove_selected(wanted)
        finally:
            state.changes.count(OBSERVATIONS_CHANGED)


def _find_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset | tuple):
        items: Sequence[object] = sorted(map(str, value))
        return list(items)
    return None if value == math.inf else value
