"""What models of run time learn from and predict for: launches as rows of a checked DataFrame."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema

if TYPE_CHECKING:  # takes 0.25 s, and most answers need no table
    import pandas as pd

Texts: TypeAlias = npt.NDArray[np.object_]
"""Python's own strings: kernels of generated code have names of several hundred letters."""
Numbers: TypeAlias = npt.NDArray[np.float64]
Column: TypeAlias = Sequence[str] | Sequence[float] | Texts | Numbers | npt.NDArray[np.str_]
_Rows: TypeAlias = npt.NDArray[np.intp] | npt.NDArray[np.bool_]


class TrainingTable:
    """Launches on devices, one a row; what is not known is NaN or an empty text."""

    __slots__ = ("__weakref__", "frame", "schema")

    keys: Texts
    """Tells rows apart; models take rows in this order, whatever order they come in."""
    kernels: Texts
    """``suite/application/kernel``, as far as they are known: a group to split by."""
    applications: Texts
    devices: Texts
    problems: Texts
    """Equal for the same launch on any device: by it devices are ranked and history is found."""
    seconds: Numbers
    noise: Numbers
    """Half the 10-90 % spread of repeated runs over their median."""
    linear_s: Numbers
    """The linear model's time of the whole launch, in seconds."""
    linear_error: Numbers
    """Its standard error from the spread of the samples, as a share of `linear_s`."""
    two_point_s: Numbers
    """Time of the whole launch by the paper's formula on two sampling points, in seconds."""
    sampling_s: Numbers
    work_groups: Numbers
    samplers: Numbers
    """Revision of the sampler that the samples are of."""
    compute_units: Numbers
    cache_bytes: Numbers
    bandwidth_bytes_per_s: Numbers
    flops_per_s: Numbers

    def __init__(self, schema: FeatureSchema, frame: "pd.DataFrame") -> None:
        self.schema = schema
        self.frame = frame

    def __getattr__(self, name: str) -> Texts | Numbers:
        if name not in type(self).__annotations__:
            raise AttributeError(name)
        values: Texts | Numbers = self.frame[name].to_numpy()
        return values

    def __len__(self) -> int:
        return len(self.frame)

    def __sizeof__(self) -> int:
        """Count its bytes, at least as many as make joblib hand a table to a cluster only once."""
        return object.__sizeof__(self) + max(self.features.nbytes, 10_000)

    @property
    def features(self) -> Numbers:
        """Values of shape (n, features), NaN where one is absent."""
        return self.frame.iloc[:, len(TEXT_COLUMNS) + len(NUMBER_COLUMNS) :].to_numpy()

    def column(self, name: str) -> Numbers:
        """Read a feature's column, NaN everywhere where the schema does not have it."""
        if name not in self.schema.names:
            return np.full(len(self), np.nan)
        return self.frame[name].to_numpy()

    def take(self, rows: _Rows) -> "TrainingTable":
        return TrainingTable(self.schema, self.frame.iloc[rows])

    def assign(self, **columns: Column) -> "TrainingTable":
        known = {name: getattr(self, name) for name in (*TEXT_COLUMNS, *NUMBER_COLUMNS)}
        return make_table(self.schema, self.features, {**known, **columns})

    @property
    def digest(self) -> str:
        """Hex SHA-256 of schema, keys, times and features, whatever the order of the rows."""
        order = np.argsort(self.keys.astype(str), kind="stable")
        found = hashlib.sha256(self.schema.id.encode())
        found.update("\n".join(self.keys[order]).encode())
        for column in (self.seconds, self.linear_s, self.features):
            # All NaN alike, whatever their bits.
            found.update(np.where(np.isnan(column), np.nan, column)[order].tobytes())
        return found.hexdigest()


_COLUMNS = TrainingTable.__annotations__.items()
TEXT_COLUMNS = tuple(name for name, kind in _COLUMNS if kind is Texts)
NUMBER_COLUMNS = tuple(name for name, kind in _COLUMNS if kind is Numbers)


def make_table(
    schema: FeatureSchema, features: npt.ArrayLike, columns: Mapping[str, Column]
) -> TrainingTable:
    import pandas as pd

    matrix = np.array(features, dtype=np.float64)
    count = len(np.atleast_1d(matrix))
    unknown = sorted({*columns} - {*TEXT_COLUMNS, *NUMBER_COLUMNS})
    if unknown:
        known = ", ".join((*TEXT_COLUMNS, *NUMBER_COLUMNS))
        raise InputError(f"table: no column is called {', '.join(unknown)}; there are {known}")
    if matrix.shape != (count, len(schema.names)):
        msg = f"table: features of shape {matrix.shape}; expected {(count, len(schema.names))}"
        raise InputError(msg)
    for name, column in columns.items():
        if np.shape(column) != (count,):
            msg = f"table: column {name} of shape {np.shape(column)}; expected {(count,)}"
            raise InputError(msg)
    texts = {"keys": [f"{place:09d}" for place in range(count)], **columns}
    numbers = np.full((count, len(NUMBER_COLUMNS)), np.nan)
    for place, name in enumerate(NUMBER_COLUMNS):
        if name in columns:
            numbers[:, place] = columns[name]
            if name in {"seconds", "linear_s", "two_point_s"}:
                times = numbers[:, place]
                wrong = ~np.isnan(times) & ~((times > 0) & (times < np.inf))
                if wrong.any():
                    raise InputError(
                        f"table: {name} of row {int(np.argmax(wrong))} is {times[wrong][0]}; give "
                        "positive seconds, or NaN where they are not known"
                    )
    parts = (
        pd.DataFrame(
            {name: [str(one) for one in texts.get(name, [""] * count)] for name in TEXT_COLUMNS},
            dtype=object,
        ),
        pd.DataFrame(numbers, columns=NUMBER_COLUMNS),
        pd.DataFrame(matrix, columns=schema.names),
    )
    return TrainingTable(schema, pd.concat(parts, axis=1))
