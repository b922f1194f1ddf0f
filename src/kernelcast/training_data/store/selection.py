"""Which rows of a store are meant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from kernelcast.records.observation import ObservationFlag, Origin

_CARE = frozenset({ObservationFlag.CONTAMINATED, ObservationFlag.OUTLIER,
                   ObservationFlag.FIRST_LAUNCH, ObservationFlag.DOUBTED})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions on observations; an empty one holds for all, several hold together.

    Parameters
    ----------
    kernels, applications, suites, drivers, kernel_digests, launch_keys, device_ids,
    arguments_digests, ndranges : tuple of str
        One of these, exactly.
    devices : tuple of str
        Ids of devices or their beginnings.
    schema_ids : tuple of str
        Features of one of these schemas.
    origins : tuple of Origin
        How they came about.
    without_flags : frozenset of ObservationFlag
        None of these flags.
    least_seconds : float
        Kernels that take at least so long.
    least_work_groups : int
        Launches with at least so many work-groups; rows without a known number are left out.

    Examples
    --------
    >>> Selection(kernels=("triad",), least_seconds=0.1).kernels
    ('triad',)
    """

    kernels: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    kernel_digests: tuple[str, ...] = ()
    launch_keys: tuple[str, ...] = ()
    device_ids: tuple[str, ...] = ()
    arguments_digests: tuple[str, ...] = ()
    ndranges: tuple[str, ...] = ()
    schema_ids: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    without_flags: frozenset[ObservationFlag] = frozenset()
    least_seconds: float = 0.0
    least_work_groups: int = 0


EVERYTHING = Selection()
"""All rows."""
SOUND = Selection(without_flags=_CARE)
"""Rows without any flag: what models learn from."""


def list_conditions(wanted: Selection, table: sa.Table) -> list[sa.ColumnElement[bool]]:
    """Give what a query must hold; conditions on columns that a table lacks are left out."""
    columns = table.c
    found = [
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
    if wanted.least_seconds > 0 and "seconds" in columns:
        found.append(columns.seconds >= wanted.least_seconds)
    if wanted.least_work_groups > 0:
        found.append(columns.work_groups >= wanted.least_work_groups)
    return found


def _one_of(
    columns: sa.ColumnCollection[str, sa.Column[Any]], name: str, values: Sequence[str]
) -> list[sa.ColumnElement[bool]]:
    return [columns[name].in_(values)] if values and name in columns else []
