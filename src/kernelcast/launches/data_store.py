"""Where this user's observations are, and how they are opened."""

import contextlib
from pathlib import Path

from kernelcast.launches.data_folder import STORE_VARIABLE, choose_store, protect_data_folder
from kernelcast.records.errors import InputError
from kernelcast.training_data.store import Selection, Store, open_store

__all__ = ["STORE_VARIABLE", "Selection", "choose_store", "open_data_store"]


def open_data_store(place: str | Path | None = None, *, must_exist: bool = False) -> Store:
    """Open a store of observations, by default the user's own."""
    with contextlib.suppress(InputError):  # a user without a home has no such folder
        protect_data_folder()
    return open_store(place or choose_store(), must_exist=must_exist)
