"""Packages that not every installation has, and the extras that bring them."""

from typing import Final

from kernelcast.records.errors import MissingExtraError

EXTRAS: Final = {
    "pandas": "data", "pyarrow": "data", "joblib": "train", "numba": "train", "scipy": "train",
    "skops": "train", "sklearn": "train",
}  # fmt: skip
"""Extras by the module that is imported."""


def explain_missing(error: ImportError) -> MissingExtraError | None:
    """Tell which extra has the module that could not be imported; None if none has.

    Examples
    --------
    >>> str(explain_missing(ModuleNotFoundError("no", name="scipy.stats")))
    "scipy is not installed; install it with `pip install 'kernelcast[train]'`"
    """
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    name = {"sklearn": "scikit-learn"}.get(module, module)
    larger = " (learned models need 'kernelcast[train]', which holds it)" if extra == "data" else ""
    return MissingExtraError(
        f"{name} is not installed; install it with `pip install 'kernelcast[{extra}]'`{larger}"
    )
