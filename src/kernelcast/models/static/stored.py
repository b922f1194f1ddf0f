"""Static models as JSON, and those that come with the package."""

import json
from functools import cache
from importlib.resources import files

import numpy as np

from kernelcast.models.conformal import restore_calibration
from kernelcast.models.static.describing import NAMES
from kernelcast.models.static.model import StaticModel
from kernelcast.records.errors import InputError

VERSION = 1
"""Of the format; another is refused."""
ANY = "any"
"""Serves devices of runtimes that nothing was measured on."""
RUNTIMES = {"Intel(R) OpenCL": "intel", "Portable Computing Language": "pocl", "rusticl": "rusticl"}
"""Names of shipped models by the name of a platform."""
_ARRAYS = ("centre", "scale", "points", "weights")
_DIGITS = 5


def name_runtime(platform: str) -> str:
    """Give the name of the model that serves a platform.

    Examples
    --------
    >>> name_runtime("rusticl"), name_runtime("Somebody's")
    ('rusticl', 'any')
    """
    return RUNTIMES.get(platform, ANY)


@cache
def load_shipped(name: str) -> StaticModel:
    """Load a model that comes with the package; see `name_runtime`."""
    folder = files("kernelcast.models.static") / "shipped"
    return static_from_json((folder / f"{name}.json").read_text(encoding="utf-8"))


def static_to_json(model: StaticModel) -> str:
    """Write a model; numbers are rounded to five significant digits."""
    state = model.calibration.state()
    return json.dumps({
        "static_model": VERSION,
        "names": list(NAMES),
        **{name: _round(getattr(model, name)) for name in _ARRAYS},
        "intercept": model.intercept,
        "calibration": {name: _round(np.asarray(one)) for name, one in state.items()},
        "facts": dict(model.facts),
    })  # fmt: skip


def static_from_json(text: str) -> StaticModel:
    """Read a model.

    Raises
    ------
    InputError
        If the text is damaged, or of another version or other columns.
    """
    try:
        found = json.loads(text)
        if found["static_model"] != VERSION or found["names"] != list(NAMES):
            msg = "static model: of another version or other columns; train it again"
            raise InputError(msg)
        return StaticModel(
            **{name: np.asarray(found[name], dtype=np.float64) for name in _ARRAYS},
            intercept=float(found["intercept"]),
            calibration=restore_calibration(found["calibration"]),
            facts=found["facts"],
        )
    except (ValueError, KeyError, TypeError) as error:
        msg = f"static model: cannot be read ({error}); train it again"
        raise InputError(msg) from error


def _round(values: object) -> object:
    array = np.asarray(values, dtype=np.float64)
    rounded = [float(f"{one:.{_DIGITS}g}") for one in array.ravel()]
    return np.reshape(rounded, array.shape).tolist()
