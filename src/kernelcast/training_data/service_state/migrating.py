"""Brings the service's tables to the version that this release knows."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernelcast.training_data.service_state.tables import HEAD, VERSION_TABLE
from kernelcast.training_data.store import StoreError
from kernelcast.training_data.store.connecting import WRITER

SCRIPTS = Path(__file__).parent / "migrations"
# "kcss" as a number: not the locks of the store.
_PG_LOCK = 0x6B637373


def migrate(engine: sa.Engine, where: str, *, scripts: Path = SCRIPTS, head: str = HEAD) -> None:
    """Make the tables, or bring older ones up to date, in one transaction.

    Parameters
    ----------
    engine : Engine
        Of a database that holds a store of observations already.
    where : str
        What messages call it.
    scripts : Path
        Folder of alembic's scripts.
    head : str
        The version to reach.

    Raises
    ------
    StoreError
        If the tables are of a newer version; they are untouched then.
    """
    with engine.connect() as connection:
        found = _read_version(connection)
    if found == head:
        return
    if found is not None and found > head:
        msg = (
            f"{where}: the service's tables are of version {found}, this kernelcast knows "
            f"versions up to {head}; update kernelcast (nothing was changed)"
        )
        raise StoreError(msg)
    with engine.connect().execution_options(**WRITER) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_PG_LOCK)))
        if _read_version(connection) != head:  # another process may have been first
            _run(connection, scripts, head)


def _read_version(connection: sa.Connection) -> str | None:
    if VERSION_TABLE not in sa.inspect(connection).get_table_names():
        return None
    query: sa.Select[Any] = sa.select(sa.column("version_num", sa.Text)).select_from(
        sa.table(VERSION_TABLE)
    )
    version: str | None = connection.execute(query).scalar_one_or_none()
    return version


def _run(connection: sa.Connection, scripts: Path, head: str) -> None:
    # Slow to import, and only needed where there is something to migrate.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, head)
