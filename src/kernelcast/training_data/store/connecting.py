"""Opens databases: what a path or URL means, and how connections behave."""

import os
import sqlite3
import weakref
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernelcast.records.errors import InputError

_BUSY_TIMEOUT_S = 120
"""How long a writer waits for another: an import of a whole data set is one transaction."""
_IS_WRITER = "kernelcast_is_writer"
WRITER = {_IS_WRITER: True}
_SQLITE_ENGINES: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


def parse_url(place: str | Path) -> sa.URL:
    """Turn a path or URL into SQLAlchemy's."""
    if "://" not in str(place):
        return sa.URL.create("sqlite", database=str(place))
    try:
        url = sa.make_url(str(place))
    except (sa.exc.ArgumentError, ValueError) as error:
        msg = f"store {str(place)!r}: {error}; expected a file or postgresql://user@host/database"
        raise InputError(msg) from error
    backend = url.get_backend_name()
    if backend in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or not url.database:
        shown = url.render_as_string(hide_password=True)
        msg = f"store {shown}: expected a file, sqlite:///file or postgresql://user@host/database"
        raise InputError(msg)
    return url


def connect(url: sa.URL) -> sa.Engine:
    """Make the engine of a store; nothing is opened yet."""
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": _BUSY_TIMEOUT_S})
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        _SQLITE_ENGINES.add(engine)
        return engine
    try:
        return sa.create_engine(url, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        msg = "PostgreSQL needs psycopg; install it with `pip install 'kernelcast[postgresql]'`"
        raise InputError(msg) from error


def _close_before_fork() -> None:
    # SQLite remembers in the process which locks it holds, and a child does not inherit locks: it
    # would believe in its parent's, and lose what it writes after the parent has closed the file.
    for one in list(_SQLITE_ENGINES):
        one.dispose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_before_fork)


def _set_up_sqlite(connection: sqlite3.Connection, _: object) -> None:
    # Python's module would end transactions by itself before DDL; we begin and end them.
    connection.isolation_level = None
    # Safe with WAL unless the power fails, and then only the last commits are lost.
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that reads first and then writes would fail where another wrote in between;
    # IMMEDIATE waits for its turn instead.
    options: Any = connection.get_execution_options()
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(_IS_WRITER) else "BEGIN")
