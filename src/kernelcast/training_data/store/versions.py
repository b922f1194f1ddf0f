"""Versions of tables: the one that a database has is read and written."""

from typing import Any

import sqlalchemy as sa


def read_version(connection: sa.Connection, version_table: str) -> str | None:
    """Give the version of the tables; None if the database has none of them."""
    if version_table not in sa.inspect(connection).get_table_names():
        return None
    query: sa.Select[Any] = sa.select(sa.column("version_num", sa.Text)).select_from(
        sa.table(version_table)
    )
    version: str | None = connection.execute(query).scalar_one_or_none()
    return version


def lock_versions(connection: sa.Connection, key: int) -> None:
    """Let one process change versions at a time, until the transaction ends.

    A writer's transaction of SQLite is a lock already.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))


def write_version(connection: sa.Connection, version_table: str, version: str) -> None:
    """Note the version of the tables."""
    column = sa.Column("version_num", sa.String(32), primary_key=True)
    table = sa.Table(version_table, sa.MetaData(), column)
    table.create(connection, checkfirst=True)
    connection.execute(sa.delete(table))
    connection.execute(sa.insert(table), {"version_num": version})
