"""Transactions on the service's tables."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from kernelcast.service_state.tables import CHANGES
from kernelcast.training_data.store.connecting import WRITER, speak_plainly

R = TypeVar("R")


class Database:
    def __init__(self, engine: sa.Engine, where: str) -> None:
        self.engine = engine
        self.where = where

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        with speak_plainly(self.where), self.engine.connect() as connection:
            yield connection

    def fetch(self, query: sa.Select[Any], record: type[R]) -> list[R]:
        """Read what a selection of a record's fields finds."""
        with self.read() as connection:
            return fetch(connection, query, record)

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open a transaction that is kept as a whole, or not at all."""
        with (
            speak_plainly(self.where),
            self.engine.connect().execution_options(**WRITER) as connection,
            connection.begin(),
        ):
            yield connection


class Table:
    """What is asked of one of the service's tables."""

    def __init__(self, database: Database) -> None:
        self._database = database


def fetch(connection: sa.Connection, query: sa.Select[Any], record: type[R]) -> list[R]:
    return [record(**row) for row in connection.execute(query).mappings()]


def name_global_size(dialect: sa.Dialect) -> str:
    """Write, as an index has it, the part of an observation's index space that is its size."""
    find = {"sqlite": "instr", "postgresql": "strpos"}[dialect.name]
    return f"substr(observations.ndrange, 1, {find}(observations.ndrange, ']'))"


def count_change(connection: sa.Connection, name: str) -> None:
    """Note that something has changed, so that other processes look anew."""
    grow(connection, CHANGES, ("name",), ("number",), [{"name": name, "number": 1}])


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
        inserted = _insert(connection, table, row)
        grown = {table.c[name].name: table.c[name] + row[name] for name in sums}
        columns = [table.c[key].name for key in keys]
        connection.execute(inserted.on_conflict_do_update(index_elements=columns, set_=grown))


def insert_once(connection: sa.Connection, table: sa.Table, row: dict[str, Any], key: str) -> bool:
    """Insert a row unless its key is there; tell whether it was not."""
    inserted = _insert(connection, table, row).on_conflict_do_nothing(index_elements=[key])
    # Drivers do not agree on the count of rows here; what comes back they all tell.
    return connection.execute(inserted.returning(table.c[key])).first() is not None


def _insert(
    connection: sa.Connection, table: sa.Table, row: dict[str, Any]
) -> postgresql.Insert | sqlite.Insert:
    """Begin an insertion that may meet a row of its key; both dialects write it alike."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).values(row)
    return sqlite.insert(table).values(row)
