"""Packages that not every installation has, and the extras that bring them."""

from typing import Final

from kernelcast.records.errors import MissingExtraError

EXTRAS: Final = {"pyarrow": "data", "numba": "train"}
"""Extras by the module that is imported."""


def explain_missing(error: ImportError) -> MissingExtraError | None:
    """Tell which extra has the module that could not be imported; None if none has.

    Examples
    --------
    >>> str(explain_missing(ModuleNotFoundError("no", name="numba.core")))
    "numba is not installed; install it with `pip install 'kernelcast[train]'`"
    """
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    return MissingExtraError(
        f"{module} is not installed; install it with `pip install 'kernelcast[{extra}]'`"
    )
