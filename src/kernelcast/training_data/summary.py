"""What a store holds, in groups and in plain dictionaries for JSON."""

from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa

from kernelcast.records.observation import FailureRecord, Observation
from kernelcast.training_data.store import Selection, Store
from kernelcast.training_data.store.schema import OBSERVATIONS, list_conditions, load_time

GROUPS = ("device", "kernel", "application", "suite")
_COLUMNS = {
    "device": ("device_id",),
    "kernel": ("suite", "application", "kernel"),
    "application": ("suite", "application"),
    "suite": ("suite",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    group: str
    rows: int
    kernels: int
    devices: int
    flagged: int
    shortest_s: float
    longest_s: float
    median_noise: float | None
    newest: datetime | None


def summarise_store(store: Store, wanted: Selection, *, by: str = "device") -> list[GroupSummary]:
    """Group observations; names as in `GROUPS`."""
    columns = OBSERVATIONS.c
    group = [columns[name] for name in _COLUMNS[by]]
    kernel = columns.suite + "/" + columns.application + "/" + columns.kernel
    query = (
        sa.select(
            *group,
            sa.func.count().label("rows"),
            sa.func.count(kernel.distinct()).label("kernels"),
            sa.func.count(columns.device_id.distinct()).label("devices"),
            sa.func.sum(sa.case((columns.flags == "", 0), else_=1)).label("flagged"),
            sa.func.min(columns.seconds).label("shortest_s"),
            sa.func.max(columns.seconds).label("longest_s"),
            sa.func.max(columns.measured_at_us).label("newest"),
        )
        .where(*list_conditions(wanted, OBSERVATIONS))
        .group_by(*group)
        .order_by(*group)
    )
    # Give the lower median of the noise per group; SQL's own function is not everywhere.
    noise = OBSERVATIONS.c.noise
    place = sa.func.row_number().over(partition_by=group, order_by=noise)
    size = sa.func.count().over(partition_by=group)
    ranked = (
        sa.select(*group, noise, place.label("place"), size.label("size"))
        .where(noise.is_not(None), *list_conditions(wanted, OBSERVATIONS))
        .subquery()
    )
    middle = sa.select(ranked).where(ranked.c.place * 2 - ranked.c.size <= 1,
                                     ranked.c.place * 2 - ranked.c.size >= 0)  # fmt: skip
    labels = [one.name for one in group]
    noises = {
        tuple(getattr(row, name) for name in labels): float(row.noise)
        for row in store.select(middle)
    }
    found = []
    for row in store.select(query):
        names = tuple(row[: len(group)])
        found.append(GroupSummary(
            group="/".join(filter(None, names)),
            rows=row.rows,
            kernels=row.kernels,
            devices=row.devices,
            flagged=row.flagged,
            shortest_s=row.shortest_s,
            longest_s=row.longest_s,
            median_noise=noises.get(names),
            newest=load_time(row.newest),
        ))  # fmt: skip
    return found


def summary_to_json(one: GroupSummary) -> dict[str, object]:
    """Turn a summary into what ``kernelcast data ls --json`` prints of it."""
    return {name: _to_plain(value) for name, value in asdict(one).items()}


def observation_to_json(one: Observation, *, is_full: bool = True) -> dict[str, object]:
    """Turn an observation into what ``kernelcast data show --json`` prints of it."""
    content = {name: _to_plain(value) for name, value in one.list_facts().items()}
    if not is_full:
        return content
    return {
        **content,
        "durations_s": list(one.runs.durations_s),
        "machine_state": asdict(one.machine_state),
        "versions": dict(one.versions),
        "samples": [
            {
                "multiple": sample.multiple,
                "window_set": sample.window_set,
                "work_groups": list(sample.work_groups),
                "durations_s": [launch.duration_s for launch in sample.launches],
                "linear_s": sample.linear_s,
                "sampling_s": sample.sampling_s,
                "overhead_s": sample.overhead_s,
            }
            for sample in one.samples
        ],
        "schema": None if one.features is None else one.features.schema.id,
        "features": None if one.features is None else one.features.as_dict(),
    }


def failure_to_json(one: FailureRecord) -> dict[str, object]:
    """Turn a failure into what ``kernelcast data ls --failures --json`` prints of it."""
    ndrange = one.launch.ndrange
    content = {
        "key": one.key,
        "kernel": one.launch.kernel.label,
        "device_id": one.launch.device.id,
        "global_size": None if ndrange is None else ndrange.global_size,
        "kind": one.kind,
        "message": one.message,
        "failed_at": one.failed_at,
    }
    return {name: _to_plain(value) for name, value in content.items()}


def _to_plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return value.isoformat() if isinstance(value, datetime) else value
