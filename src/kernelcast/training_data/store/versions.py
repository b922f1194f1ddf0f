"""Versions of tables: reading the one a database has, running the scripts that lead to another."""

import threading
from pathlib import Path
from typing import Any

import sqlalchemy as sa

# What alembic's scripts work on is one for the process: of two threads, one would write through the
# connection of the other, which SQLite answers with a crash.
_one_at_a_time = threading.Lock()


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


def run_scripts(connection: sa.Connection, scripts: Path, head: str, *, version_table: str) -> None:
    """Run alembic's scripts up to a version, in the connection's transaction."""
    # Slow to import, and only needed where there is something to migrate.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version_table
    with _one_at_a_time:
        command.upgrade(config, head)
