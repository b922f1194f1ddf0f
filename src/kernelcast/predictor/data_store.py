"""Where this user's observations are, and how they are opened."""

import os
from pathlib import Path

from kernelcast.predictor.data_folder import default_store
from kernelcast.training_data.store import Store, open_store

STORE_VARIABLE = "KERNELCAST_STORE"
"""Environment variable that names another store, for instance one that several machines share."""


def choose_store() -> str | Path:
    """Give the place of the store in use: what `STORE_VARIABLE` names, else the user's own file.

    Raises
    ------
    InputError
        If the user has no home to keep data in.
    """
    return os.environ.get(STORE_VARIABLE) or default_store()


def open_data_store(place: str | Path | None = None, *, must_exist: bool = False) -> Store:
    """Open a store of observations, by default the user's own.

    Parameters
    ----------
    place : str or Path, optional
        A file, or a URL such as ``postgresql://user@host/database``.
    must_exist : bool
        Whether to refuse a file that is not there instead of making it.

    Raises
    ------
    InputError
        If the place cannot be a store, or nothing is there.
    StoreError
        If the store does not answer or is of a newer version.
    """
    return open_store(place or choose_store(), must_exist=must_exist)
