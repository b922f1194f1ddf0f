"""Adds rows to tables inside a writer's transaction."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import sqlalchemy as sa

from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.training_data.store.schema import (
    FEATURE_SCHEMAS,
    OBSERVATIONS,
    dump,
    observation_to_row,
    schema_id,
)

T = TypeVar("T")

# "kcsw" as a number: not the lock of migrations.
PG_WRITER_LOCK = 0x6B637377
_BATCH_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRows:
    """What became of rows that were to be added."""

    added: int = 0
    replaced: int = 0
    known: int = 0
    changed: tuple[str, ...] = field(default=(), compare=False)

    def __add__(self, other: "AddedRows") -> "AddedRows":
        return AddedRows(
            added=self.added + other.added,
            replaced=self.replaced + other.replaced,
            known=self.known + other.known,
            changed=self.changed + other.changed,
        )


def wait_for_turn(connection: sa.Connection) -> None:
    """Let one writer work at a time, so that writers never wait for each other in a circle."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(PG_WRITER_LOCK)))


def add_observations(
    connection: sa.Connection, observations: Iterable[Observation], *, replace: bool
) -> AddedRows:
    """Add observations whose keys are not there; see `Store.add_many`."""
    total = AddedRows()
    for batch in split(observations, _BATCH_ROWS):
        add_schemas(connection, {one.features.schema for one in batch if one.features})
        rows = [observation_to_row(one) for one in batch]
        total += add_rows(connection, OBSERVATIONS, rows, replace=replace)
    return total


def add_rows(
    connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]], *, replace: bool
) -> AddedRows:
    """Add rows whose keys are not there; replace the others if asked for."""
    by_key = {row["key"]: row for row in rows}  # of equal keys the last one counts
    known = _find_seconds(connection, table, list(by_key))
    if known and replace:
        connection.execute(sa.delete(table).where(table.c.key.in_(list(known))))
    new = [row for key, row in by_key.items() if replace or key not in known]
    if new:
        # A table with triggers: SQLite would copy what each row changes, to take that row back
        # alone, and write half as fast. The transaction takes all of them back.
        connection.execute(sa.insert(table).prefix_with("OR FAIL", dialect="sqlite"), new)
    repeats = len(rows) - len(by_key)
    if replace:
        return AddedRows(added=len(new) - len(known), replaced=len(known) + repeats)
    told = {key: row.get("seconds") for key, row in by_key.items()} | known
    changed = tuple(row["key"] for row in rows if row.get("seconds") != told[row["key"]])
    return AddedRows(added=len(new), known=len(known) + repeats, changed=changed)


def add_schemas(connection: sa.Connection, schemas: Iterable[FeatureSchema]) -> None:
    """Add schemas of features that are not there."""
    by_id = {schema_id(one): one for one in schemas}
    if not by_id:
        return
    column = FEATURE_SCHEMAS.c.id
    known = set(connection.scalars(sa.select(column).where(column.in_(by_id))))
    new = [
        {"id": key, "version": one.version, "names": dump(one.names)}
        for key, one in by_id.items()
        if key not in known
    ]
    if new:
        connection.execute(sa.insert(FEATURE_SCHEMAS), new)


def split(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split into lists of at most `size`."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _find_seconds(
    connection: sa.Connection, table: sa.Table, keys: list[str]
) -> dict[str, float | None]:
    """Give the seconds of those keys that are there; failures have none."""
    columns = (table.c.key, table.c.get("seconds", sa.null()))
    found = connection.execute(sa.select(*columns).where(table.c.key.in_(keys)))
    return {row[0]: row[1] for row in found}
