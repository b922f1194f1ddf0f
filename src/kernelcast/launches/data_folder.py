"""Where kernelcast keeps what it has found out for this user."""

import os
import sys
from pathlib import Path

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import close_to_others

_VARIABLE = "KERNELCAST_DATA"
STORE_VARIABLE = "KERNELCAST_STORE"
"""Environment variable that names another store, for instance one that several machines share."""


def data_folder() -> Path:
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        return Path(chosen)
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_DATA_HOME"
    named = os.environ.get(variable)
    if named and Path(named).is_absolute():  # relative ones are invalid by the specification
        return Path(named) / "kernelcast"
    try:
        home = Path.home()
    except RuntimeError as error:
        msg = f"there is no home folder to keep data in; name a folder by {_VARIABLE}"
        raise InputError(msg) from error
    beside = {"win32": "AppData/Local", "darwin": "Library/Application Support"}
    return home / beside.get(sys.platform, ".local/share") / "kernelcast"


def kept_folder() -> Path | None:
    """Give the data folder; None for a user without a home, for whom nothing is kept."""
    try:
        return data_folder()
    except InputError:
        return None


def protect_data_folder() -> bool:
    """Close the data folder to other users; tell whether they can still reach it."""
    return close_to_others(data_folder())


def choose_store() -> str | Path:
    """Give the place of the store in use: what `STORE_VARIABLE` names, else the user's own file."""
    return os.environ.get(STORE_VARIABLE) or data_folder() / "observations.sqlite"
