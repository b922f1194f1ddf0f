"""Gives all fits of a validation the same rows, sent to each worker once.

A task that held the table would be sent with it: a thousand fits, a thousand copies.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from kernelcast.records.training_table import Texts, TrainingTable


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class SharedRows:
    """Rows and what is held out of them.

    Parameters
    ----------
    table : TrainingTable
        Measured launches.
    groups : ndarray of object (str), shape (n,)
        The group of each row.

    Notes
    -----
    joblib scatters an argument to the workers of a Dask cluster once, and sends references from
    then on, if it can be referred to weakly and says that it is large.
    """

    table: TrainingTable
    groups: Texts

    def __sizeof__(self) -> int:
        """Give the bytes of the features too, at least what joblib takes for large."""
        return object.__sizeof__(self) + max(self.table.features.nbytes, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsFile:
    """Where the rows are on this machine, as pickled by joblib."""

    path: str


Shared = SharedRows | RowsFile


@contextmanager
def share(rows: SharedRows, *, jobs: int | None) -> Iterator[Shared]:
    """Give what tasks shall hold instead of the rows.

    Parameters
    ----------
    rows : SharedRows
        What is shared.
    jobs : int or None
        Own processes read a file, each once; None leaves it to the caller's backend, threads or
        a cluster, and one process needs nothing.

    Yields
    ------
    SharedRows or RowsFile
        For `open_shared`.
    """
    if jobs is None or jobs == 1:
        yield rows
        return
    import joblib

    # A process that still has the file open would keep Windows from removing it.
    with TemporaryDirectory(
        prefix="kernelcast-", ignore_cleanup_errors=sys.platform == "win32"
    ) as folder:
        path = Path(folder) / "rows.joblib"
        joblib.dump(rows, path)
        yield RowsFile(path=str(path))


def open_shared(shared: Shared) -> SharedRows:
    """Give the rows; a process reads a file once."""
    return shared if isinstance(shared, SharedRows) else _read(shared.path)


@lru_cache(maxsize=1)
def _read(path: str) -> SharedRows:
    import joblib

    return cast("SharedRows", joblib.load(path))
