"""What models of run time learn from and predict for: launches as rows, one array per column."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema

Texts: TypeAlias = npt.NDArray[np.object_]
"""Python's own strings: kernels of generated code have names of several hundred letters."""
Numbers: TypeAlias = npt.NDArray[np.float64]
Column: TypeAlias = Sequence[str] | Sequence[float] | Texts | Numbers | npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingTable:
    """Launches by column; row i of every column is the same launch on the same device.

    What is not known is NaN, or an empty text.

    Parameters
    ----------
    schema : FeatureSchema
        Names of the features' columns.
    features : ndarray of float64, shape (n, features)
        NaN where one is absent.
    keys : ndarray of object (str), shape (n,)
        Tells rows apart; models take rows in this order, whatever order they come in.
    kernels, applications, suites, devices : ndarray of object (str), shape (n,)
        Groups to split by.
    problems : ndarray of object (str), shape (n,)
        Equal for the same launch on any device: by it devices are ranked and history is found.
    seconds : ndarray of float64, shape (n,)
        Measured time of the whole launch, in seconds.
    noise : ndarray of float64, shape (n,)
        Half the 10-90 % spread of repeated runs over their median.
    linear_s : ndarray of float64, shape (n,)
        The linear model's time of the whole launch, in seconds.
    linear_error : ndarray of float64, shape (n,)
        Its standard error from the spread of the samples, as a share of `linear_s`.
    two_point_s : ndarray of float64, shape (n,)
        Time of the whole launch by the paper's formula on two sampling points, in seconds.
    sampling_s : ndarray of float64, shape (n,)
        Device time of the samples, in seconds.
    work_groups : ndarray of float64, shape (n,)
        Of the whole launch.
    samplers : ndarray of float64, shape (n,)
        Revision of the sampler that the samples are of.
    compute_units, cache_bytes, bandwidth_bytes_per_s, flops_per_s : ndarray of float64, shape (n,)
        The device's compute units, last cache, and calibrated peaks.

    Raises
    ------
    InputError
        If columns differ in length, or a time is not positive.
    """

    schema: FeatureSchema
    features: Numbers
    keys: Texts
    kernels: Texts
    applications: Texts
    suites: Texts
    devices: Texts
    problems: Texts
    seconds: Numbers
    noise: Numbers
    linear_s: Numbers
    linear_error: Numbers
    two_point_s: Numbers
    sampling_s: Numbers
    work_groups: Numbers
    samplers: Numbers
    compute_units: Numbers
    cache_bytes: Numbers
    bandwidth_bytes_per_s: Numbers
    flops_per_s: Numbers

    def __post_init__(self) -> None:
        expected = (len(self.keys), len(self.schema.names))
        if self.features.shape != expected:
            msg = f"table: features of shape {self.features.shape}; expected {expected}"
            raise InputError(msg)
        for name in (*TEXT_COLUMNS, *NUMBER_COLUMNS):
            shape = getattr(self, name).shape
            if shape != expected[:1]:
                msg = f"table: column {name} of shape {shape}; expected {expected[:1]}"
                raise InputError(msg)
        for name in ("seconds", "linear_s", "two_point_s"):
            _check_times(name, getattr(self, name))

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> "TrainingTable":
        """Give some rows, by their places or by a mask."""
        names = ("features", *TEXT_COLUMNS, *NUMBER_COLUMNS)
        return TrainingTable(
            schema=self.schema, **{name: getattr(self, name)[rows] for name in names}
        )

    def column(self, name: str) -> Numbers:
        """Give a feature's column, NaN everywhere where the schema does not have it."""
        if name not in self.schema.names:
            return np.full(len(self), np.nan)
        column: Numbers = self.features[:, self.schema.names.index(name)]
        return column

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


TEXT_COLUMNS = ("keys", "kernels", "applications", "suites", "devices", "problems")
NUMBER_COLUMNS = tuple(
    one.name
    for one in fields(TrainingTable)
    if one.name not in {"schema", "features", *TEXT_COLUMNS}
)


def make_table(
    schema: FeatureSchema, features: npt.ArrayLike, columns: Mapping[str, Column]
) -> TrainingTable:
    """Make a table of the columns there are.

    Parameters
    ----------
    schema : FeatureSchema
        Names of the features' columns.
    features : array-like of float, shape (n, features)
        NaN where one is absent.
    columns : mapping of str to sequence
        Columns of `TrainingTable` by name; those left out are NaN or empty, keys are numbered.

    Raises
    ------
    InputError
        If a column is unknown, or columns differ in length.

    Examples
    --------
    >>> schema = FeatureSchema(names=("static.buffers_count",), version=1)
    >>> table = make_table(schema, [[1], [2]], {"seconds": [0.1, 0.2], "kernels": ["a", "b"]})
    >>> len(table), table.take(table.kernels == "b").seconds.tolist()
    (2, [0.2])
    """
    matrix = np.asarray(features, dtype=np.float64)
    count = len(np.atleast_1d(matrix))
    unknown = sorted({*columns} - {*TEXT_COLUMNS, *NUMBER_COLUMNS})
    if unknown:
        known = ", ".join((*TEXT_COLUMNS, *NUMBER_COLUMNS))
        msg = f"table: no column is called {', '.join(unknown)}; there are {known}"
        raise InputError(msg)
    texts: dict[str, Column] = {name: [""] * count for name in TEXT_COLUMNS}
    texts["keys"] = [f"{place:09d}" for place in range(count)]
    numbers: dict[str, Column] = {name: np.full(count, np.nan) for name in NUMBER_COLUMNS}
    for name, column in columns.items():
        (texts if name in texts else numbers)[name] = column
    arrays: dict[str, Any] = {name: _make_texts(column) for name, column in texts.items()}
    arrays |= {name: np.asarray(column, dtype=np.float64) for name, column in numbers.items()}
    return TrainingTable(schema=schema, features=matrix, **arrays)


def _make_texts(column: Column) -> Texts:
    texts = np.empty(len(column), dtype=np.object_)
    texts[:] = [str(one) for one in column]
    return texts


def _check_times(name: str, times: Numbers) -> None:
    wrong = ~np.isnan(times) & ~((times > 0) & (times < np.inf))
    if wrong.any():
        msg = (
            f"table: {name} of row {int(np.argmax(wrong))} is {times[wrong][0]}; give positive "
            "seconds, or NaN where they are not known"
        )
        raise InputError(msg)
