"""Opens a store and makes sure that this release can work with it."""

import contextlib
import logging
from pathlib import Path

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import (
    close_to_others,
    make_private_file,
    make_private_folder,
)
from kernelcast.training_data.store.connecting import connect, parse_url
from kernelcast.training_data.store.errors import StoreError, speak_plainly
from kernelcast.training_data.store.migrating import migrate
from kernelcast.training_data.store.store import Store

_LOGGER = logging.getLogger(__name__)


def open_store(place: str | Path, *, must_exist: bool = False) -> Store:
    """Open a store of observations; make it where there is none.

    Parameters
    ----------
    place : str or Path
        A file for SQLite, or a URL such as ``postgresql://user@host/database``.
    must_exist : bool
        Whether to refuse a file that is not there instead of making it.

    Returns
    -------
    Store
        May be used by several threads; other processes open their own.

    Raises
    ------
    InputError
        If the place is no file or URL that a store can be at, or nothing is there.
    StoreError
        If the database does not answer, holds something else, or was written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_store(Path(folder) / "rows.sqlite") as store:
    ...         store.count()
    0
    """
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
        msg = (
            f"{path}: there is no store of observations; `kernelcast data import` makes one, or "
            "name another"
        )
        raise InputError(msg)
    try:
        make_private_folder(path.parent)
    except OSError as error:
        msg = f"{path}: the folder cannot be made: {error.strerror or error}"
        raise StoreError(msg) from error
    if not path.exists():
        with contextlib.suppress(OSError):  # SQLite says what is wrong
            make_private_file(path)
    # SQLite gives its log and its index the rights of the database, when it makes them.
    for suffix in ("", "-wal", "-shm"):
        close_to_others(path.with_name(path.name + suffix))
