"""Which rows of a store are meant."""

import math
from dataclasses import dataclass, fields
from datetime import datetime

import sqlalchemy as sa

from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.training_data.store.schema import dump_time

_CARE = frozenset({ObservationFlag.CONTAMINATED, ObservationFlag.OUTLIER,
                   ObservationFlag.FIRST_LAUNCH, ObservationFlag.DOUBTED})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions on observations; an empty one holds for all, several hold together."""

    keys: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    kernel_digests: tuple[str, ...] = ()
    launch_keys: tuple[str, ...] = ()
    device_ids: tuple[str, ...] = ()
    arguments_digests: tuple[str, ...] = ()
    ndranges: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Ids of devices or their beginnings."""
    schema_ids: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    with_flags: frozenset[ObservationFlag] = frozenset()
    without_flags: frozenset[ObservationFlag] = frozenset()
    least_seconds: float = 0.0
    most_seconds: float = math.inf
    """Kernels that take at least so long, and at most."""
    measured_from: datetime | None = None
    measured_before: datetime | None = None
    """Measured then or later, and before; rows without a time are left out."""
    least_work_groups: int = 0
    """Launches with at least so many work-groups; rows without a known number are left out."""


EVERYTHING = Selection()
SOUND = Selection(without_flags=_CARE)
"""Rows without any flag: what models learn from."""


# Conditions of several values, each on the column of its name.
_ONE_OF = tuple(
    one.name for one in fields(Selection) if one.default == () and one.name != "devices"
)


def list_conditions(wanted: Selection, table: sa.FromClause) -> list[sa.ColumnElement[bool]]:
    """Give what a query must hold; conditions on columns that a table lacks are left out."""
    columns = table.c
    found: list[sa.ColumnElement[bool]] = [
        columns[name].in_([*map(str, getattr(wanted, f"{name}s"))])
        for name in (one.removesuffix("s") for one in _ONE_OF)
        if getattr(wanted, f"{name}s") and name in columns
    ]
    if wanted.devices:
        begins = [sa.func.substr(columns.device_id, 1, len(x)) == x for x in wanted.devices]
        found.append(sa.or_(*begins))
    if "flags" in columns:
        found += [~columns.flags.contains(f",{one},") for one in sorted(wanted.without_flags)]
        if wanted.with_flags:
            has = (columns.flags.contains(f",{one},") for one in sorted(wanted.with_flags))
            found.append(sa.or_(*has))
    if wanted.least_work_groups > 0:
        found.append(columns.work_groups >= wanted.least_work_groups)
    if "seconds" in columns:
        if wanted.least_seconds > 0:
            found.append(columns.seconds >= wanted.least_seconds)
        if wanted.most_seconds < math.inf:
            found.append(columns.seconds <= wanted.most_seconds)
    if "measured_at_us" in columns:
        if wanted.measured_from is not None:
            found.append(columns.measured_at_us >= dump_time(wanted.measured_from))
        if wanted.measured_before is not None:
            found.append(columns.measured_at_us < dump_time(wanted.measured_before))
    return found
