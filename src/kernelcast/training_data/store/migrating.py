"""Brings a store to the version of its tables that this release knows."""

import sqlite3
import time
from pathlib import Path

import sqlalchemy as sa

from kernelcast.records.private_files import make_private_file
from kernelcast.training_data.store.connecting import WRITER
from kernelcast.training_data.store.errors import StoreError
from kernelcast.training_data.store.tables import HEAD, VERSION_TABLE
from kernelcast.training_data.store.versions import lock_versions, read_version, run_scripts

SCRIPTS = Path(__file__).parent / "migrations"
# "kcst" as a number: any constant will do that no other program takes.
_PG_LOCK = 0x6B637374
_WAL_PATIENCE_S = 30.0
# A row with 200 features has 3 kB: one to a page of SQLite's usual 4 kB would waste a quarter.
_PAGE_BYTES = 16384


def migrate(
    engine: sa.Engine, where: str, *, scripts: Path = SCRIPTS, head: str = HEAD
) -> Path | None:
    """Make the tables, or bring older ones up to date, in one transaction.

    Returns
    -------
    Path or None
        Copy of the older SQLite file, where there was one.
    """
    with engine.connect() as connection:
        found = _read_version(connection, where)
    if found == head:
        return None
    _refuse_newer(found, head, where)
    if found is None:
        _make_concurrent(engine)
    with engine.connect().execution_options(**WRITER) as connection, connection.begin():
        lock_versions(connection, _PG_LOCK)
        found = _read_version(connection, where)  # another process may have been first
        if found == head:
            return None
        backup = None if found is None else _back_up(engine.url, found)
        run_scripts(connection, scripts, head, version_table=VERSION_TABLE)
    return backup


def _read_version(connection: sa.Connection, where: str) -> str | None:
    """Give the version of the tables; None if the database is empty."""
    tables = sa.inspect(connection).get_table_names()
    if VERSION_TABLE in tables:
        return read_version(connection, VERSION_TABLE)
    if "observations" in tables or (tables and connection.dialect.name == "sqlite"):
        msg = (
            f"{where}: is a database, but no store of observations; name another "
            f"{'file' if connection.dialect.name == 'sqlite' else 'database'}"
        )
        raise StoreError(msg)
    return None


def _refuse_newer(found: str | None, head: str, where: str) -> None:
    if found is not None and found > head:
        msg = (
            f"{where}: is of version {found}, this kernelcast knows versions up to {head}; update "
            "kernelcast, or name another store (nothing was changed)"
        )
        raise StoreError(msg)


def _make_concurrent(engine: sa.Engine) -> None:
    """Let readers go on while somebody writes: the file remembers it."""
    if engine.dialect.name != "sqlite":
        return
    deadline_s = time.monotonic() + _WAL_PATIENCE_S
    with engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        if raw is None:
            return
        while True:
            try:
                _execute(raw, f"PRAGMA page_size={_PAGE_BYTES}")
                _execute(raw, "PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                # SQLite does not wait here while another process does the same.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.01)
            else:
                return


def _execute(connection: sa.engine.interfaces.DBAPIConnection, statement: str) -> None:
    cursor = connection.cursor()
    cursor.execute(statement)
    cursor.close()


def _back_up(url: sa.URL, version: str) -> Path | None:
    """Copy a SQLite file beside itself; a server has backups of its own."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    source = Path(url.database)
    target = source.with_name(f"{source.name}.version-{version}.backup")
    make_private_file(target)
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)
    old.close()
    new.close()
    return target
