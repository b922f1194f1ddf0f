"""Opens databases, tells them from other files, and turns their errors into ours.

A live database is never opened as a plain file: closing *any* descriptor of a file drops all POSIX
locks that the process holds on it, SQLite's too. The next process to close the database then takes
itself for the last one, deletes the write-ahead log, and what is still written into it is lost:
https://www.sqlite.org/howtocorrupt.html, section 2.2. SQLite itself keeps descriptors open while
it holds locks, so SQLite is asked.
"""

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from kernelcast.records.errors import InputError, KernelcastError

# PostgreSQL's codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
_SQLITE_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full; nothing of this step was kept: make room and repeat it",
    sqlite3.SQLITE_BUSY: "another process keeps it locked; try again when that has ended",
    sqlite3.SQLITE_READONLY: "it may only be read; give write permission on the file and its "
    "folder, or name another store",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check the path and its permissions",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database; name another file",
    sqlite3.SQLITE_CORRUPT: "it is damaged; put a copy back, or export what can be read with the "
    "sqlite3 program's .recover",
    sqlite3.SQLITE_IOERR: "the disk does not answer as it should; check it",
}
_PG_ADVICE = {
    "53100": "the server's disk is full; nothing of this step was kept: make room and repeat",
    "42501": "this user may not do that; ask for the permission",
    "3D000": "there is no such database; create it with createdb",
}


class StoreError(KernelcastError):
    """Is raised when a store of observations cannot be opened, read or written."""


@contextmanager
def speak_plainly(where: str) -> Iterator[None]:
    """Turn a database's errors into ours, by their codes and never by their texts."""
    try:
        yield
    except (sa.exc.DBAPIError, sqlite3.Error) as caught:
        error = getattr(caught, "orig", None) or caught
        code = read_sqlite_code(error)
        if code is None:
            advice = _PG_ADVICE.get(str(getattr(error, "sqlstate", None)))
        else:
            advice = _SQLITE_ADVICE.get(code)
        said = " ".join(str(error).split())
        told = f"{advice} ({said})" if advice else f"the store failed: {said}"
        raise StoreError(f"{where}: {told}") from caught
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(f"{where}: the store cannot be used: {error}") from error


def read_sqlite_code(error: BaseException | None) -> int | None:
    """Read SQLite's primary result code, the last byte of an extended one; None if it has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_database(path: Path) -> bool:
    """Tell whether a file is a SQLite database, or may become one, as an empty file may."""
    if not (path.is_file() and os.access(path, os.R_OK)):
        return False
    # Immutable: its first page is all that is wanted, without locks or a write-ahead log.
    place = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(place, uri=True)
    except sqlite3.Error:
        return True  # it may be one; whoever opens it as one is told what is wrong
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        return read_sqlite_code(error) != sqlite3.SQLITE_NOTADB
    finally:
        connection.close()
    return True


def refuse_database(path: Path, error: type[InputError] = InputError) -> None:
    """Refuse to read a database as a plain file; call it before any other opening of a file."""
    if not is_database(path):
        return
    if path.stat().st_size == 0:
        msg = f"{path}: the file is empty; is it complete?"
    else:
        msg = (
            f"{path}: is a database; `kernelcast data merge` adds the observations of another "
            "store, --store names the store itself"
        )
    raise error(msg)


_IS_WRITER = "kernelcast_is_writer"
_ENGINES: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


def locate(place: str | Path) -> tuple[sa.URL, str]:
    """Return the URL of a database, and its name for messages."""
    if "://" in str(place):
        try:
            url = sa.make_url(str(place))
        except (sa.exc.ArgumentError, ValueError) as error:
            msg = (
                f"store {str(place)!r}: {error}; expected a file or postgresql://user@host/database"
            )
            raise InputError(msg) from error
    else:
        url = sa.URL.create("sqlite", database=str(place))
    if url.get_backend_name() in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
        return url, url.render_as_string(hide_password=True)
    if url.get_backend_name() != "sqlite" or not url.database:
        shown = url.render_as_string(hide_password=True)
        msg = f"store {shown}: expected a file, sqlite:///file or postgresql://user@host/database"
        raise InputError(msg)
    # A program may change its folder; two names of one file are one store.
    return url.set(database=str(Path(url.database).resolve())), url.database


def connect(url: sa.URL) -> sa.Engine:
    """Make the engine of a store; nothing is opened yet."""
    if url.get_backend_name() == "sqlite":
        # How long a writer waits for another: an import of a whole data set is one transaction.
        engine = sa.create_engine(url, connect_args={"timeout": 120})

        @sa.event.listens_for(engine, "connect")
        def set_up(connection: sqlite3.Connection, _: object) -> None:
            # Python's module would end transactions by itself before DDL; we begin and end them.
            connection.isolation_level = None
            # Safe with WAL unless the power fails, and then only the last commits are lost.
            connection.execute("PRAGMA synchronous=NORMAL")

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            # A transaction that reads first and then writes would fail where another wrote in
            # between; IMMEDIATE waits for its turn instead.
            options: Any = connection.get_execution_options()
            connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(_IS_WRITER) else "BEGIN")

    else:
        try:
            engine = sa.create_engine(url, pool_pre_ping=True)
        except ModuleNotFoundError as error:
            msg = "PostgreSQL needs psycopg; install it with `pip install 'kernelcast[postgresql]'`"
            raise InputError(msg) from error
    _ENGINES.add(engine)
    return engine


def _close_before_fork() -> None:
    # A child must not use its parent's connections. SQLite remembers in the process which locks it
    # holds, and a child does not inherit locks: it would believe in its parent's, and lose what it
    # writes after the parent has closed the file.
    for one in list(_ENGINES):
        one.dispose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_before_fork)


R = TypeVar("R")


class Database:
    """A database that threads share, also after a fork; each writing call is a transaction."""

    def __init__(self, url: sa.URL, where: str, *, writer_lock: int | None = None) -> None:
        self.url = url
        self.where = where
        self.engine = connect(url)
        self._writer_lock = writer_lock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; a later call opens them again."""
        self.engine.dispose()

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
            self.engine.connect().execution_options(**{_IS_WRITER: True}) as connection,
            connection.begin(),
        ):
            if self._writer_lock is not None:
                # One writer works at a time, so that they never wait for each other in a circle.
                lock(connection, self._writer_lock)
            yield connection


def fetch(connection: sa.Connection, query: sa.Select[Any], record: type[R]) -> list[R]:
    return [record(**row) for row in connection.execute(query).mappings()]


def lock(connection: sa.Connection, key: int) -> None:
    """Keep others out that ask for the same key until the transaction ends; SQLite's always do."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))


def bring_up_to_date(
    database: Database, version_table: str, head: str, key: int,
    update: Callable[[sa.Connection, str | None], None], what: str,
) -> None:  # fmt: skip
    """Update tables whose version is not the newest, one process at a time; None: there are none.

    Parameters
    ----------
    key : int
        Of the lock that processes share; of no other.
    what : str
        What an error says is of another version, with its verb.
    """
    with database.read() as connection:
        found = read_version(connection, version_table)
    if found == head:
        return
    if found is not None and found > head:
        raise StoreError(
            f"{database.where}: {what} of version {found}, this kernelcast knows versions up to "
            f"{head}; update kernelcast, or name another store (nothing was changed)"
        )
    with database.write() as connection:
        lock(connection, key)
        found = read_version(connection, version_table)  # another process may have been first
        if found == head:
            return
        update(connection, found)
        column = sa.Column("version_num", sa.String(32), primary_key=True)
        table = sa.Table(version_table, sa.MetaData(), column)
        table.create(connection, checkfirst=True)
        connection.execute(sa.delete(table))
        connection.execute(sa.insert(table), {"version_num": head})


def read_version(connection: sa.Connection, version_table: str) -> str | None:
    """Return the version of the tables; None if the database has none of them."""
    if version_table not in sa.inspect(connection).get_table_names():
        return None
    query: sa.Select[Any] = sa.select(sa.column("version_num", sa.Text)).select_from(
        sa.table(version_table)
    )
    version: str | None = connection.execute(query).scalar_one_or_none()
    return version
