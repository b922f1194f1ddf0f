"""What a store holds, in groups and in plain dictionaries for JSON; rows that cannot be right."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from statistics import median
from typing import Any, cast

from kernelcast.records.errors import KernelcastError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import FailureRecord, Observation
from kernelcast.records.plain import CONVERTER, pick
from kernelcast.training_data.store import Selection, Store
from kernelcast.training_data.store.schema import (
    Row,
    dump_time,
    load_time,
    observation_to_row,
    row_to_observation,
)

_COLUMNS = {
    "device": ["device_id"],
    "kernel": ["suite", "application", "kernel"],
    "application": ["suite", "application"],
    "suite": ["suite"],
}
GROUPS = tuple(_COLUMNS)
_SAMPLE_FIELDS = (
    "multiple", "window_set", "work_groups", "linear_s", "sampling_s", "overhead_s",
)  # fmt: skip


def summarise_store(store: Store, wanted: Selection, *, by: str = "device") -> list[dict[str, Any]]:
    """Group observations as ``kernelcast data ls --json`` shows them; names as in `GROUPS`."""
    import pandas as pd  # slow to import

    names = (
        "suite", "application", "kernel", "device_id", "flags", "seconds", "noise",
        "measured_at_us",
    )  # fmt: skip
    rows = [tuple(row) for some in store.read_rows(wanted, columns=names) for row in some]
    frame = pd.DataFrame(rows, columns=[*names])
    groups = frame.assign(
        flagged=frame["flags"] != "",
        label=frame["suite"] + "/" + frame["application"] + "/" + frame["kernel"],
        noise=frame["noise"].astype(float),
        newest=frame["measured_at_us"].astype(float),
    ).groupby(_COLUMNS[by])
    found = groups.agg(
        rows=("label", "size"), kernels=("label", "nunique"), devices=("device_id", "nunique"),
        flagged=("flagged", "sum"), shortest_s=("seconds", "min"), longest_s=("seconds", "max"),
        median_noise=("noise", lambda noise: noise.quantile(0.5, interpolation="lower")),
        newest=("newest", "max"),
    ).reset_index()  # fmt: skip
    keys = found[_COLUMNS[by]].itertuples(index=False, name=None)
    found.insert(0, "group", ["/".join(filter(None, key)) for key in keys])
    found = found.drop(columns=_COLUMNS[by]).astype(object)
    summed = cast("list[dict[str, Any]]", found.where(found.notna(), None).to_dict("records"))
    for one in summed:
        one["newest"] = CONVERTER.unstructure(load_time(one["newest"] and int(one["newest"])))
    return summed


def observation_to_json(one: Observation, *, is_full: bool = True) -> dict[str, object]:
    """Turn an observation into what ``kernelcast data show --json`` prints of it."""
    content: dict[str, object] = CONVERTER.unstructure(one.list_facts())
    if not is_full:
        return content
    return {
        **content,
        "durations_s": list(one.runs.durations_s),
        "machine_state": asdict(one.machine_state),
        "versions": dict(one.versions),
        "samples": [
            {
                "durations_s": [launch.duration_s for launch in sample.launches],
                **CONVERTER.unstructure(pick(sample, *_SAMPLE_FIELDS)),
            }
            for sample in one.samples
        ],
        **pick(one, schema="features.schema.id"),
        "features": None if one.features is None else one.features.as_dict(),
    }


def failure_to_json(one: FailureRecord) -> dict[str, object]:
    """Turn a failure into what ``kernelcast data ls --failures --json`` prints of it."""
    content: dict[str, object] = CONVERTER.unstructure(
        pick(
            one, "key", "kind", "message", "failed_at", kernel="launch.kernel.label",
            device_id="launch.device.id", global_size="launch.ndrange.global_size",
        )
    )  # fmt: skip
    return content


_SAME = 1e-9
_A_DAY_US = 86_400_000_000


class FindingKind(StrEnum):
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


def check_store(
    store: Store, *, report: Callable[[int], None] = lambda _: None
) -> Iterator[dict[str, str]]:
    """Have the database check itself, then look at every observation as it is there.

    Yields
    ------
    dict
        ``kind`` (`FindingKind`), ``message`` and ``advice``, and of a row that cannot be right its
        ``key``, ``kernel`` and ``device_id``, which are empty where the database is damaged.
    """

    def describe(kind: FindingKind, message: str, row: Row) -> dict[str, str]:
        names = {name: str(row.get(name, "")) for name in ("key", "kernel", "device_id")}
        return {"kind": kind, **names, "message": message, "advice": _ADVICE[kind]}

    damage = store.find_damage()
    yield from (describe(FindingKind.DAMAGED, message, {}) for message in damage)
    if damage:
        return
    seen: dict[tuple[Any, ...], str] = {}
    count = 0
    for count, (row, schemas) in enumerate(store.read_whole_rows(), start=1):
        found = next(_examine(row, schemas, seen), None)
        if found:
            yield describe(*found, row)
        if count % 1000 == 0:
            report(count)
    report(count)


def _examine(
    row: Row, schemas: Mapping[str, FeatureSchema], seen: dict[tuple[Any, ...], str]
) -> Iterator[tuple[FindingKind, str]]:
    """Return what is wrong with a row, the gravest first."""
    for name in ("seconds", "linear_s", "sampling_s"):
        if row[name] is not None and not 0 < row[name] < math.inf:
            message = f"{name} is {row[name]}; a time is positive and finite"
            yield FindingKind.IMPOSSIBLE, message
    ahead_us = (row["measured_at_us"] or 0) - (dump_time(datetime.now(UTC)) or 0)
    if ahead_us > _A_DAY_US:
        message = f"it was measured {ahead_us / _A_DAY_US:.0f} days from now; set the clock"
        yield FindingKind.IMPOSSIBLE, message
    try:
        made = row_to_observation(row, schemas)
    except (KernelcastError, ValueError, TypeError, KeyError, RecursionError) as error:
        yield FindingKind.UNREADABLE, f"{type(error).__name__}: {error}"
        return
    # Each sampled launch runs a part of the kernel: few are so cold and disturbed that they take
    # longer than the whole. All together may, for each pays what the whole launch pays once.
    for one in made.samples:
        usual_s = median(launch.duration_s for launch in one.launches)
        if usual_s > 1.5 * made.seconds:
            message = f"launches of a part took {usual_s:.4g} s, the whole {made.seconds:.4g} s"
            yield FindingKind.IMPOSSIBLE, message
    for message in _list_contradictions(row, made):
        yield FindingKind.INCONSISTENT, message
    durations = made.runs.durations_s
    # Summaries and single runs may agree by chance where a timer is coarse; five runs do not.
    if len(durations) >= 2:
        mark = (row["device_id"], row["kernel_digest"], row["ndrange"], *durations)
        twin = seen.setdefault(mark, row["key"])
        if twin != row["key"]:  # a copy under another name
            yield FindingKind.DUPLICATED, f"it has the very times of {twin[:12]}"


def _list_contradictions(row: Row, made: Observation) -> Iterator[str]:
    """List where a row's parts contradict each other, what is stored for searches too."""
    written = observation_to_row(made)
    for name in ("key", "launch_key", "work_groups", "linear_s", "sampling_s"):
        stored, told = row[name], written[name]
        is_time = isinstance(stored, float) and isinstance(told, float)
        if stored != told and not (is_time and math.isclose(stored, told, rel_tol=_SAME)):
            yield f"{name} is {stored}, its content makes {told}: the row was changed by hand"
    if (row["features"] is None) != (row["schema_id"] is None):
        yield "it has features without a schema, or a schema without features"
    elif row["features"] is None and row["origin"] == "collected":
        yield "it was collected and has no features"
    # A table without sizes has none.
    elif made.features is not None and not made.features.values and row["origin"] != "imported":
        yield "all its features are absent"
    for one in made.samples:
        if row["work_groups"] is not None and sum(one.work_groups) > row["work_groups"]:
            yield f"{sum(one.work_groups)} work-groups were sampled of {row['work_groups']}"
    durations, middle = made.runs.durations_s, row["seconds"]
    if durations:
        low, high = min(durations), max(durations)
        if not low * (1 - _SAME) <= middle <= high * (1 + _SAME):
            yield f"median {middle:.6g} s lies outside its runs, {low:.6g} to {high:.6g} s"
        half_range = (high - low) / 2 / middle
        if row["noise"] is not None and row["noise"] > half_range * (1 + _SAME) + _SAME:
            yield f"noise {row['noise']:.4g} exceeds what its runs differ by, {half_range:.4g}"
