"""Opens a store: makes its tables, and brings those of older versions up to date."""

import contextlib
import logging
import sqlite3
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import close_to_others, make_private_file, make_private_folder
from kernelcast.training_data.store.connecting import (
    WRITER,
    StoreError,
    connect,
    parse_url,
    speak_plainly,
)
from kernelcast.training_data.store.schema import HEAD, METADATA, VERSION_TABLE
from kernelcast.training_data.store.store import Store

_LOGGER = logging.getLogger(__name__)


def open_store(place: str | Path, *, must_exist: bool = False) -> Store:
    """Open a store of observations; make it where there is none."""
    url = parse_url(place)
    where = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        where = str(url.database)
        _prepare_file(Path(where), must_exist=must_exist)
        # A program may change its folder; two names of one file are one store.
        url = url.set(database=str(Path(where).resolve()))
    engine = connect(url)
    try:
        with speak_plainly(where):
            backup = migrate(engine, where)
    except BaseException:
        engine.dispose()
        raise
    if backup is not None:
        _LOGGER.warning("%s: brought up to date; the older store is kept as %s", where, backup)
    return Store(url=url, where=where, engine=engine)


def _prepare_file(path: Path, *, must_exist: bool) -> None:
    if must_exist and not path.is_file():
        raise InputError(
            f"{path}: there is no store of observations; `kernelcast collect` or `kernelcast data "
            "import` makes one, or name another"
        )
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise StoreError(f"{path}: the folder cannot be made: {error.strerror or error}") from error
    if not path.exists():
        with contextlib.suppress(OSError):  # SQLite says what is wrong
            make_private_file(path)
    # SQLite gives its log and its index the rights of the database, when it makes them.
    for suffix in ("", "-wal", "-shm"):
        close_to_others(path.with_name(path.name + suffix))


# What was observed 100,000 times is asked for by its newest rows: an index has them in this order.
# SQLite takes rows without a time as the oldest by itself, PostgreSQL as the newest.
_INDEXES = """
DROP INDEX IF EXISTS ix_observations_kernel_digest;
DROP INDEX IF EXISTS ix_observations_launch_key;
DROP INDEX IF EXISTS ix_observations_launch_times;
DROP INDEX IF EXISTS ix_observations_launch_samples;
CREATE INDEX IF NOT EXISTS ix_observations_newest
    ON observations (kernel_digest, device_id, {moment});
CREATE INDEX IF NOT EXISTS ix_observations_newest_of_launch
    ON observations (launch_key, {moment})
"""
# Until version 0004 triggers kept a table of launches.
_OBSOLETE = {
    "sqlite": "".join(
        f"DROP TRIGGER IF EXISTS observations_{one};"
        for one in ("insert_new", "update_old", "update_new", "delete_old")
    ),
    "postgresql": "DROP FUNCTION IF EXISTS mark_launches CASCADE;",
}


def migrate(engine: sa.Engine, where: str) -> Path | None:
    """Make the tables, or bring older ones up to date, in one transaction."""
    with engine.connect() as connection:
        found = _read_version(connection, where)
    if found == HEAD:
        return None
    if found is not None and found > HEAD:
        raise StoreError(
            f"{where}: is of version {found}, this kernelcast knows versions up to {HEAD}; update "
            "kernelcast, or name another store (nothing was changed)"
        )
    if found is None:
        _make_concurrent(engine)
    with engine.connect().execution_options(**WRITER) as connection, connection.begin():
        # "kcst" as a number: any constant will do that no other program takes.
        lock_versions(connection, 0x6B637374)
        found = _read_version(connection, where)  # another process may have been first
        if found == HEAD:
            return None
        backup = None if found is None else _back_up(engine.url, found)
        is_sqlite = connection.dialect.name == "sqlite"
        METADATA.create_all(connection)
        for table in METADATA.sorted_tables:
            have = {one["name"] for one in sa.inspect(connection).get_columns(table.name)}
            for column in table.columns:
                if column.name not in have:
                    made = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
                    connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {made}")
        moment = "measured_at_us" if is_sqlite else "measured_at_us DESC NULLS LAST"
        obsolete = f"{_OBSOLETE[connection.dialect.name]} DROP TABLE IF EXISTS launches"
        for statement in f"{obsolete};{_INDEXES.format(moment=moment)}".split(";"):
            connection.exec_driver_sql(statement)
        write_version(connection, VERSION_TABLE, HEAD)
    return backup


def _read_version(connection: sa.Connection, where: str) -> str | None:
    """Return the version of the tables; None if the database is empty."""
    tables = sa.inspect(connection).get_table_names()
    if VERSION_TABLE in tables:
        return read_version(connection, VERSION_TABLE)
    if "observations" in tables or (tables and connection.dialect.name == "sqlite"):
        raise StoreError(
            f"{where}: is a database, but no store of observations; name another "
            f"{'file' if connection.dialect.name == 'sqlite' else 'database'}"
        )
    return None


def _make_concurrent(engine: sa.Engine) -> None:
    """Let readers go on while another connection writes: the file remembers it."""
    if engine.dialect.name != "sqlite":
        return
    deadline_s = time.monotonic() + 30.0
    with engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        if raw is None:
            return
        while True:
            try:
                # A row with 200 features has 3 kB: one to a page of SQLite's usual 4 kB would waste
                # a quarter.
                cursor = raw.cursor()
                cursor.execute("PRAGMA page_size=16384")
                cursor.execute("PRAGMA journal_mode=WAL")
                cursor.close()
            except sqlite3.OperationalError as error:
                # SQLite does not wait here while another process does the same.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.01)
            else:
                return


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


def read_version(connection: sa.Connection, version_table: str) -> str | None:
    """Return the version of the tables; None if the database has none of them."""
    if version_table not in sa.inspect(connection).get_table_names():
        return None
    query: sa.Select[Any] = sa.select(sa.column("version_num", sa.Text)).select_from(
        sa.table(version_table)
    )
    version: str | None = connection.execute(query).scalar_one_or_none()
    return version


def lock_versions(connection: sa.Connection, key: int) -> None:
    """Let one process change versions at a time, until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))


def write_version(connection: sa.Connection, version_table: str, version: str) -> None:
    column = sa.Column("version_num", sa.String(32), primary_key=True)
    table = sa.Table(version_table, sa.MetaData(), column)
    table.create(connection, checkfirst=True)
    connection.execute(sa.delete(table))
    connection.execute(sa.insert(table), {"version_num": version})
