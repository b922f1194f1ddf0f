"""What a store says where it cannot serve, and how databases' own errors become that."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from kernelcast.records.errors import KernelcastError
from kernelcast.training_data.store.recognising import read_sqlite_code

# PostgreSQL's codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
_PG_DISK_FULL = "53100"
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
    _PG_DISK_FULL: "the server's disk is full; nothing of this step was kept: make room and repeat",
    "42501": "this user may not do that; ask for the permission",
    "3D000": "there is no such database; create it with createdb",
}


class StoreError(KernelcastError):
    """Is raised when a store of observations cannot be opened, read or written."""


@contextmanager
def speak_plainly(where: str) -> Iterator[None]:
    """Turn a database's errors into ours while the block runs.

    Parameters
    ----------
    where : str
        What messages call the store; no password in it.
    """
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise StoreError(describe(where, error.orig or error)) from error
    except sa.exc.SQLAlchemyError as error:
        msg = f"{where}: the store cannot be used: {error}"
        raise StoreError(msg) from error
    except sqlite3.Error as error:
        raise StoreError(describe(where, error)) from error


def describe(where: str, error: BaseException) -> str:
    """Say what a driver's error means, by its code and never by its text."""
    sqlite_code = read_sqlite_code(error)
    if sqlite_code is None:
        advice = _PG_ADVICE.get(str(getattr(error, "sqlstate", None)))
    else:
        advice = _SQLITE_ADVICE.get(sqlite_code)
    said = " ".join(str(error).split())
    return f"{where}: {advice} ({said})" if advice else f"{where}: the store failed: {said}"
