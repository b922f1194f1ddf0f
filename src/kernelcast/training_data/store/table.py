"""Observations as columns, which models learn from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.training_data.store.plain import FEATURE_TYPE
from kernelcast.training_data.store.selection import SOUND, Selection
from kernelcast.training_data.store.store import Store

Texts = npt.NDArray[np.object_]
"""Python's own strings: kernels of generated code have names of several hundred letters."""
Numbers = npt.NDArray[np.float64]

_TEXTS = ("kernel", "application", "suite", "kernel_digest", "device_id", "driver", "origin")
_NUMBERS = ("work_groups", "seconds", "noise", "linear_s", "sampling_s")
_COLUMNS = ("key", *_TEXTS, *_NUMBERS, "schema_id", "features")
_BATCH_ROWS = 5000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservationTable:
    """Observations by column; row i of every column is the same observation.

    Parameters
    ----------
    keys : ndarray of str, shape (n,)
        In ascending order.
    kernels, applications : ndarray of object (str), shape (n,)
        Groups to split by: ``suite/application/kernel`` and ``suite/application``.
    kernel_digests, device_ids, drivers, origins : ndarray of object (str), shape (n,)
        As in the store.
    work_groups : ndarray of float, shape (n,)
        NaN where they are not known.
    seconds, noise, linear_s, sampling_s : ndarray of float, shape (n,)
        Median time of the whole kernel in seconds, its noise as a share, the linear model's time
        and the device time of the first sample set in seconds; NaN where one is absent.
    schema : FeatureSchema
        Names of the features' columns.
    features : ndarray of float, shape (n, features)
        NaN where one is absent.
    """

    keys: npt.NDArray[np.str_]
    kernels: Texts
    applications: Texts
    kernel_digests: Texts
    device_ids: Texts
    drivers: Texts
    origins: Texts
    work_groups: Numbers
    seconds: Numbers
    noise: Numbers
    linear_s: Numbers
    sampling_s: Numbers
    schema: FeatureSchema
    features: Numbers

    def __len__(self) -> int:
        return len(self.keys)


def load_table(
    store: Store, wanted: Selection = SOUND, *, schema: FeatureSchema | None = None
) -> ObservationTable:
    """Load observations for training.

    Parameters
    ----------
    store : Store
        Where they are.
    wanted : Selection
        Which; by default those without any flag.
    schema : FeatureSchema, optional
        Features wanted, by name: rows of other schemas of the same version serve too. When left
        out, all rows must have one schema.

    Returns
    -------
    ObservationTable
        Sorted by key, whatever the order in which rows were added.

    Raises
    ------
    InputError
        If rows have different schemas and none is given, or one of another version.
    StoreError
        If the store cannot be read.
    """
    batches = store.read_rows(wanted, columns=_COLUMNS, batch_rows=_BATCH_ROWS)
    rows = sorted((tuple(row) for batch in batches for row in batch), key=itemgetter(0))
    columns: dict[str, Sequence[Any]] = dict.fromkeys(_COLUMNS, ())
    if rows:
        columns = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True))
    chosen, features = _align(columns["schema_id"], columns["features"], store.schemas(), schema)
    texts = {name: np.array(columns[name], dtype=np.object_) for name in _TEXTS}
    numbers = {name: np.array(columns[name], dtype=np.float64) for name in _NUMBERS}
    applications = _join(texts["suite"], texts["application"])
    return ObservationTable(
        keys=np.array(columns["key"], dtype=np.str_),
        kernels=_join(applications, texts["kernel"]),
        applications=applications,
        kernel_digests=texts["kernel_digest"],
        device_ids=texts["device_id"],
        drivers=texts["driver"],
        origins=texts["origin"],
        **numbers,
        schema=chosen,
        features=features,
    )


def _join(left: Texts, right: Texts) -> Texts:
    """Join texts by a slash, or leave it out where one of them is empty; equal ones once."""
    joined: dict[tuple[str, str], str] = {}
    found = np.empty(len(left), dtype=np.object_)
    for place, pair in enumerate(zip(left, right, strict=True)):
        text = joined.get(pair)
        if text is None:
            text = joined[pair] = "/".join(filter(None, pair))
        found[place] = text
    return found


def _align(
    ids: Sequence[str | None],
    blobs: Sequence[bytes | None],
    schemas: dict[str, FeatureSchema],
    wanted: FeatureSchema | None,
) -> tuple[FeatureSchema, Numbers]:
    """Put every row's features into the order of one schema."""
    rows_of = Counter(one for one in ids if one is not None)
    chosen = wanted or _choose(rows_of, schemas)
    if [*rows_of.values()] == [len(ids)] and schemas[next(iter(rows_of))] == chosen:
        return chosen, _join_blobs(blobs, chosen)  # the usual case, without a copy
    features = np.full((len(ids), len(chosen.names)), np.nan)
    for one in sorted(rows_of):
        found = schemas[one]
        if found.version != chosen.version:
            msg = (
                f"{rows_of[one]} rows have features of schema {one}, {chosen.id} was asked for: "
                "the same names mean something else; collect them anew, or leave them out"
            )
            raise InputError(msg)
        places = np.array([i for i, row_id in enumerate(ids) if row_id == one])
        _fill(features, places, blobs, (found, chosen))
    return chosen, features


def _fill(
    features: Numbers,
    places: npt.NDArray[np.intp],
    blobs: Sequence[bytes | None],
    schemas: tuple[FeatureSchema, FeatureSchema],
) -> None:
    """Write the rows of one schema at their places in the other's columns."""
    found, chosen = schemas
    values = _join_blobs([blobs[place] for place in places], found)
    if found.names == chosen.names:
        features[places] = values
        return
    column_of = {name: column for column, name in enumerate(found.names)}
    shared = [place for place, name in enumerate(chosen.names) if name in column_of]
    columns = [column_of[chosen.names[place]] for place in shared]
    features[np.ix_(places, np.array(shared, dtype=np.intp))] = values[:, columns]


def _join_blobs(blobs: Sequence[bytes | None], schema: FeatureSchema) -> Numbers:
    """Make one array of the features of rows that all have them."""
    joined = bytearray().join(one for one in blobs if one is not None)  # can be written to
    values: Numbers = np.frombuffer(joined, dtype=FEATURE_TYPE)
    return values.reshape(len(blobs), len(schema.names))


def _choose(rows_of: Counter[str], schemas: dict[str, FeatureSchema]) -> FeatureSchema:
    if not rows_of:
        return FeatureSchema(names=(), version=1)
    if len(rows_of) > 1:
        found = ", ".join(f"{one} ({rows_of[one]} rows)" for one in sorted(rows_of))
        msg = f"the rows have features of several schemas: {found}; choose one"
        raise InputError(msg)
    return schemas[next(iter(rows_of))]
