"""Looks through a store for rows that cannot be right."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import numpy as np

from kernelcast.records.errors import KernelcastError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.training_data.store import Store
from kernelcast.training_data.store.schema import (
    FEATURE_TYPE,
    OBSERVATIONS,
    Row,
    dump_time,
    row_to_observation,
)

# A sample runs a part of the kernel: even a cold and noisy one should cost less than the whole.
_SAMPLED_OVER_WHOLE = 1.5
_SAME = 1e-9
_A_DAY_US = 86_400_000_000


class FindingKind(StrEnum):
    """What is wrong with a row, or with the whole database."""

    DAMAGED = "damaged"
    """The database itself is: its tables and indexes contradict each other."""
    UNREADABLE = "unreadable"
    """It cannot be made an observation of."""
    IMPOSSIBLE = "impossible"
    """No measurement can have given it."""
    INCONSISTENT = "inconsistent"
    DUPLICATED = "duplicated"
    """It holds the very times of another row."""


_ADVICE = {
    FindingKind.DAMAGED: "change nothing; copy the database with all its files, then put a backup "
    "back, or save what can be read: the sqlite3 program's .recover, PostgreSQL's pg_dump",
    FindingKind.UNREADABLE: "remove it by `kernelcast data check --remove`, then collect it again",
    FindingKind.IMPOSSIBLE: "remove it by `kernelcast data check --remove`, then collect it again",
    FindingKind.INCONSISTENT: "remove it by `kernelcast data check --remove`, then collect or "
    "import it again",
    FindingKind.DUPLICATED: "keep one: `kernelcast data check --remove` keeps the first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong with a row, or with the database."""

    kind: FindingKind
    key: str
    kernel: str
    device_id: str
    message: str

    @property
    def advice(self) -> str:
        """What to do."""
        return _ADVICE[self.kind]


def check_store(
    store: Store, *, report: Callable[[int], None] = lambda _: None
) -> Iterator[Finding]:
    """Have the database check itself, then look at every observation as it is there."""
    damage = store.find_damage()
    for message in damage:
        yield Finding(
            kind=FindingKind.DAMAGED, key="", kernel="", device_id="", message=message
        )  # fmt: skip
    if damage:
        return
    schemas = store.schemas()
    seen: dict[tuple[Any, ...], str] = defaultdict(str)
    count = 0
    for rows in store.read_rows(ordered=True):
        for one in rows:
            row = dict(zip(OBSERVATIONS.c.keys(), one, strict=True))
            if row["schema_id"] is not None and row["schema_id"] not in schemas:
                schemas = store.schemas()  # somebody has added the row meanwhile
            found = _examine(row, schemas) or _find_twin(row, seen)
            if found:
                kind, message = found
                yield Finding(
                    kind=kind, key=str(row["key"]), kernel=str(row["kernel"]),
                    device_id=str(row["device_id"]), message=message,
                )  # fmt: skip
        count += len(rows)
        report(count)


def _examine(row: Row, schemas: Mapping[str, FeatureSchema]) -> tuple[FindingKind, str] | None:
    impossible = _find_impossible(row)
    if impossible:
        return FindingKind.IMPOSSIBLE, impossible
    made = _make(row, schemas)
    if isinstance(made, str):
        return FindingKind.UNREADABLE, made
    inconsistent = next(filter(None, (rule(row, made) for rule in _RULES)), None)
    return (FindingKind.INCONSISTENT, inconsistent) if inconsistent else None


def _find_impossible(row: Row) -> str | None:
    """Look for times that no clock gives."""
    times = {"seconds": row["seconds"], "linear_s": row["linear_s"],
             "sampling_s": row["sampling_s"]}  # fmt: skip
    for name, value in times.items():
        if value is not None and not 0 < value < math.inf:
            return f"{name} is {value}; a time is positive and finite"
    sampled, whole = row["sampling_s"], row["seconds"]
    if sampled is not None and sampled > _SAMPLED_OVER_WHOLE * whole:
        return f"samples took {sampled:.4g} s, the whole kernel {whole:.4g} s"
    if row["measured_at_us"] is not None:
        ahead_us = row["measured_at_us"] - (dump_time(datetime.now(UTC)) or 0)
        if ahead_us > _A_DAY_US:
            return f"it was measured {ahead_us / _A_DAY_US:.0f} days from now; set the clock"
    return None


def _make(row: Row, schemas: Mapping[str, FeatureSchema]) -> Observation | str:
    """Make the observation of a row, or say why there is none."""
    schema = schemas.get(row["schema_id"])
    if row["features"] is not None:
        if schema is None:
            return f"its feature schema {row['schema_id']} is not in the store"
        have = len(row["features"]) / FEATURE_TYPE.itemsize
        if have != len(schema.names):
            return f"it has {have:g} features, its schema {len(schema.names)}"
    try:
        return row_to_observation(row, schemas)
    except (KernelcastError, ValueError, TypeError, KeyError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"


def _check_key(row: Row, made: Observation) -> str | None:
    if made.key != row["key"] or made.launch.key != row["launch_key"]:
        return f"its content makes the key {made.key[:12]}: somebody changed the row"
    if made.launch.work_group_count != row["work_groups"]:
        return f"{row['work_groups']} work-groups, its sizes make {made.launch.work_group_count}"
    return None


def _check_runs(row: Row, made: Observation) -> str | None:
    durations = made.runs.durations_s
    if not durations:
        return None
    low, high, median = min(durations), max(durations), row["seconds"]
    if not low * (1 - _SAME) <= median <= high * (1 + _SAME):
        return f"median {median:.6g} s lies outside its runs, {low:.6g} to {high:.6g} s"
    half_range = (high - low) / 2 / median
    if row["noise"] is not None and row["noise"] > half_range * (1 + _SAME) + _SAME:
        return f"noise {row['noise']:.4g} exceeds what its runs differ by, {half_range:.4g}"
    return None


def _check_features(row: Row, _: Observation) -> str | None:
    if (row["features"] is None) != (row["schema_id"] is None):
        return "it has features without a schema, or a schema without features"
    if row["features"] is None:
        if row["origin"] == "collected":
            return "it was collected and has no features"
        return None
    if np.isnan(np.frombuffer(row["features"], dtype=FEATURE_TYPE)).all():
        return "all its features are absent"
    return None


def _check_samples(row: Row, made: Observation) -> str | None:
    samples = made.samples
    groups = row["work_groups"]
    for one in samples:
        if groups is not None and sum(one.work_groups) > groups:
            return f"{sum(one.work_groups)} work-groups were sampled of {groups}"
    first = samples[0].sampling_s if samples else None
    stored = row["sampling_s"]
    if (first is None) != (stored is None) or (
        first is not None and not math.isclose(first, stored, rel_tol=_SAME)
    ):
        return f"sampling_s is {stored}, its launches took {first}"
    return None


_RULES = (_check_key, _check_runs, _check_features, _check_samples)


def _find_twin(row: Row, seen: dict[tuple[Any, ...], str]) -> tuple[FindingKind, str] | None:
    """Look for another row with exactly the same times: a copy under another name."""
    durations = json.loads(row["durations_s"])
    # Summaries and single runs may agree by chance where a timer is coarse; five runs do not.
    if len(durations) < 2:
        return None
    mark = (row["device_id"], row["kernel_digest"], row["ndrange"], *durations)
    twin = seen[mark]
    seen[mark] = twin or row["key"]
    if not twin:
        return None
    return FindingKind.DUPLICATED, f"it has the very times of {twin[:12]}"
