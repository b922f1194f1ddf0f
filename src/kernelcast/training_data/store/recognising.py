"""Tells databases from other files, so that a live database is never opened as a plain file.

Closing *any* descriptor of a file drops all POSIX locks that the process holds on it, SQLite's
too. The next process to close the database then takes itself for the last one, deletes the
write-ahead log, and what is still written into it is lost:
https://www.sqlite.org/howtocorrupt.html, section 2.2. SQLite itself keeps descriptors open while
it holds locks, so SQLite is asked.
"""

import os
import sqlite3
from pathlib import Path

from kernelcast.records.errors import InputError

_PRIMARY_CODE = 0xFF


def read_sqlite_code(error: BaseException | None) -> int | None:
    """Give SQLite's primary result code, the last byte of an extended one; None if it has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY_CODE


def is_database(path: Path) -> bool:
    """Tell whether a file is a SQLite database, or may become one: an empty file is empty tables.

    Parameters
    ----------
    path : Path
        The file; what is no file is no database.
    """
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
