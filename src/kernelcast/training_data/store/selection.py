"""Which rows of a store are meant."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.training_data.store.schema import dump_time

_CARE = frozenset({ObservationFlag.CONTAMINATED, ObservationFlag.OUTLIER,
                   ObservationFlag.FIRST_LAUNCH, ObservationFlag.DOUBTED})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions on observations; an empty one holds for all, several hold together.

    Examples
    --------
    >>> Selection(kernels=("triad",), least_seconds=0.1).kernels
    ('triad',)
    """

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
    """One of these, exactly."""
    devices: tuple[str, ...] = ()
    """Ids of devices or their beginnings."""
    schema_ids: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    with_flags: frozenset[ObservationFlag] = frozenset()
    """One of these flags at least."""
    without_flags: frozenset[ObservationFlag] = frozenset()
    """None of these."""
    least_seconds: float = 0.0
    most_seconds: float = math.inf
    """Kernels that take at least so long, and at most."""
    measured_from: datetime | None = None
    measured_before: datetime | None = None
    """Measured then or later, and before; rows without a time are left out."""
    least_work_groups: int = 0
    """Launches with at least so many work-groups; rows without a known number are left out."""


EVERYTHING = Selection()
"""All rows."""
SOUND = Selection(without_flags=_CARE)
"""Rows without any flag: what models learn from."""


def list_conditions(wanted: Selection, table: sa.FromClause) -> list[sa.ColumnElement[bool]]:
    """Give what a query must hold; conditions on columns that a table lacks are left out."""
    columns = table.c
    found = [
        *_one_of(columns, "key", wanted.keys),
        *_one_of(columns, "measurement", wanted.measurements),
        *_one_of(columns, "kernel", wanted.kernels),
        *_one_of(columns, "application", wanted.applications),
        *_one_of(columns, "suite", wanted.suites),
        *_one_of(columns, "driver", wanted.drivers),
        *_one_of(columns, "kernel_digest", wanted.kernel_digests),
        *_one_of(columns, "launch_key", wanted.launch_keys),
        *_one_of(columns, "device_id", wanted.device_ids),
        *_one_of(columns, "arguments_digest", wanted.arguments_digests),
        *_one_of(columns, "ndrange", wanted.ndranges),
        *_one_of(columns, "schema_id", wanted.schema_ids),
        *_one_of(columns, "origin", [one.value for one in wanted.origins]),
    ]
    if wanted.devices:
        begins = [sa.func.substr(columns.device_id, 1, len(x)) == x for x in wanted.devices]
        found.append(sa.or_(*begins))
    if "flags" in columns:
        found += [~columns.flags.contains(f",{one},") for one in sorted(wanted.without_flags)]
    if wanted.least_work_groups > 0:
        found.append(columns.work_groups >= wanted.least_work_groups)
    return [*found, *_in_ranges(wanted, columns)]


def _in_ranges(
    wanted: Selection, columns: ReadOnlyColumnCollection[str, Any]
) -> list[sa.ColumnElement[bool]]:
    """Give the conditions that only observations can hold."""
    found: list[sa.ColumnElement[bool]] = []
    if "flags" in columns and wanted.with_flags:
        has = (columns.flags.contains(f",{one},") for one in sorted(wanted.with_flags))
        found.append(sa.or_(*has))
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


def _one_of(
    columns: ReadOnlyColumnCollection[str, Any], name: str, values: Sequence[str]
) -> list[sa.ColumnElement[bool]]:
    return [columns[name].in_(values)] if values and name in columns else []
