"""Tables of records: how each field is stored, and transactions on them."""

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from enum import StrEnum
from typing import Any, get_args, get_origin, get_type_hints

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql  # SQLite writes its insertions alike

from kernelcast.records.service_state import Scope
from kernelcast.training_data.store.connecting import Database
from kernelcast.training_data.store.schema import WHOLE, dump, dump_time, load_time

METADATA = sa.MetaData()


class _Stored(sa.types.TypeDecorator[Any]):
    """Values that are stored as a text or a number; nothing stays nothing."""

    impl: Any = sa.Text
    cache_ok = True

    def __init__(
        self,
        kind: sa.types.TypeEngine[Any],
        write: Callable[[Any], Any],
        read: Callable[[Any], Any],
    ) -> None:
        super().__init__()
        self.impl, self.write, self.read = kind, write, read

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:  # noqa: ANN401
        del dialect
        return None if value is None else self.write(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:  # noqa: ANN401
        del dialect
        return None if value is None else self.read(value)


_TYPES: dict[Any, sa.types.TypeEngine[Any]] = {
    str: sa.Text(), bytes: sa.LargeBinary(), bool: sa.Boolean(), int: WHOLE, float: sa.Double(),
    datetime: _Stored(WHOLE, dump_time, load_time),
    tuple: _Stored(sa.Text(), dump, lambda text: tuple(json.loads(text))),
    frozenset: _Stored(
        sa.Text(),
        lambda scopes: " ".join(sorted(scopes)),
        lambda text: frozenset(map(Scope, text.split())),
    ),
    Mapping: _Stored(
        sa.Text(), lambda one: dump(dict(one) if isinstance(one, Mapping) else one), json.loads
    ),
}  # fmt: skip
_RENAMED = {"is_cancel_wanted": "cancel_wanted"}


def make_table(name: str, record: type | dict[str, Any], *keys: str) -> sa.Table:
    """Make a table of a record's fields, or of names and types.

    The key of each column is the field's name; times have their unit in theirs.
    """
    if isinstance(record, dict):
        hints = record
    else:
        found = get_type_hints(record)
        hints = {one.name: found[one.name] for one in fields(record)}
    columns = []
    for one, hint in hints.items():
        kinds = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        kind = get_origin(kinds[0]) or kinds[0]
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            stored: sa.types.TypeEngine[Any] = _Stored(sa.Text(), str, kind)
        else:
            stored = _TYPES[Mapping if kind is Any else kind]
        columns.append(sa.Column(
            f"{one}_us" if kind is datetime else _RENAMED.get(one, one), stored, key=one,
            nullable=hint is Any or types.NoneType in kinds,
            primary_key=one in keys, autoincrement=False,
        ))  # fmt: skip
    return sa.Table(name, METADATA, *columns)


def select_record(table: sa.Table, record: type) -> sa.Select[Any]:
    """Select the fields of a record under their names."""
    return sa.select(*(table.c[one.name].label(one.name) for one in fields(record)))


def write_row(record: Any) -> dict[str, Any]:  # noqa: ANN401 - a record
    return {one.name: getattr(record, one.name) for one in fields(record)}


class Table:
    """What is asked of one of the service's tables."""

    def __init__(self, database: Database) -> None:
        self._database = database


def name_global_size(dialect: sa.Dialect) -> str:
    """Write, as an index has it, the part of an observation's index space that is its size."""
    find = {"sqlite": "instr", "postgresql": "strpos"}[dialect.name]
    return f"substr(observations.ndrange, 1, {find}(observations.ndrange, ']'))"


def grow(
    connection: sa.Connection,
    table: sa.Table,
    keys: Sequence[str],
    sums: Sequence[str],
    rows: Sequence[dict[str, Any]],
) -> None:
    """Add numbers to the rows of their keys, or make these."""
    for row in sorted(rows, key=lambda one: [str(one[key]) for key in keys]):
        # Always in this order: writers never wait in a circle.
        inserted = postgresql.insert(table).values(row)
        grown = {table.c[name].name: table.c[name] + row[name] for name in sums}
        columns = [table.c[key].name for key in keys]
        connection.execute(inserted.on_conflict_do_update(index_elements=columns, set_=grown))


def insert_once(connection: sa.Connection, table: sa.Table, row: dict[str, Any], key: str) -> bool:
    """Insert a row unless its key is there; tell whether it was not."""
    inserted = postgresql.insert(table).values(row).on_conflict_do_nothing(index_elements=[key])
    # Drivers do not agree on the count of rows here; what comes back they all tell.
    return connection.execute(inserted.returning(table.c[key])).first() is not None
