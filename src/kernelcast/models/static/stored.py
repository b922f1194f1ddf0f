"""Static models as one JSON text, and those that come with the package."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from kernelcast.models.static.describing import NAMES
from kernelcast.models.static.model import ANY, StaticModel
from kernelcast.records.errors import InputError

VERSION = 3
"""Of the format; another is refused."""
RUNTIMES = {"Intel(R) OpenCL": "intel", "Portable Computing Language": "pocl", "rusticl": "rusticl"}
"""Names of shipped models by the name of a platform."""
_SHARED = ("centre", "scale", "points")
_DIGITS = 5


def name_runtime(platform: str) -> str:
    """Give the name of the model that serves a platform.

    Examples
    --------
    >>> name_runtime("rusticl"), name_runtime("Somebody's")
    ('rusticl', 'any')
    """
    return RUNTIMES.get(platform, ANY)


def find_shipped(platform: str) -> StaticModel:
    """Give the model that serves devices of a platform."""
    return load_shipped()[name_runtime(platform)]


@cache
def load_shipped() -> Mapping[str, StaticModel]:
    """Load the models that come with the package, by runtime (see `name_runtime`)."""
    file = files("kernelcast.models.static") / "shipped.json"
    return static_from_json(file.read_text(encoding="utf-8"))


def static_to_json(models: Mapping[str, StaticModel]) -> str:
    """Write models that share their points; numbers are rounded to five significant digits."""
    shared = models[ANY]
    return json.dumps({
        "static_models": VERSION,
        "names": list(NAMES),
        **{name: _round(getattr(shared, name)) for name in _SHARED},
        "models": {name: _dump(one) for name, one in models.items()},
    })  # fmt: skip


def _dump(model: StaticModel) -> dict[str, object]:
    return {
        "weights": _round(model.weights),
        "intercept": model.intercept,
        "gates": dict(model.gates),
        "half_width": model.half_width,
        "facts": dict(model.facts),
    }


def static_from_json(text: str) -> dict[str, StaticModel]:
    """Read models.

    Raises
    ------
    InputError
        If the text is damaged, or of another version or other columns.
    """
    try:
        found = json.loads(text)
        if found["static_models"] != VERSION or found["names"] != list(NAMES):
            msg = "static models: of another version or other columns; train them again"
            raise InputError(msg)
        shared = {name: np.asarray(found[name], dtype=np.float64) for name in _SHARED}
        return {
            name: StaticModel(
                **shared,
                gates=one["gates"],
                weights=np.asarray(one["weights"], dtype=np.float64),
                intercept=float(one["intercept"]),
                half_width=float(one["half_width"]),
                facts=one["facts"],
            )
            for name, one in found["models"].items()
        }
    except (ValueError, KeyError, TypeError) as error:
        msg = f"static models: cannot be read ({error}); train them again"
        raise InputError(msg) from error


def _round(values: object) -> object:
    array = np.asarray(values, dtype=np.float64)
    rounded = [float(f"{one:.{_DIGITS}g}") for one in array.ravel()]
    return np.reshape(rounded, array.shape).tolist()
