"""Observations as a DataFrame."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.training_data.store.plain import FEATURE_TYPE
from kernelcast.training_data.store.selection import SOUND, Selection
from kernelcast.training_data.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = ("work_groups", "seconds", "noise", "linear_s", "sampling_s")
_COLUMNS = ("key", "kernel", "application", "suite", "kernel_digest", "device_id", "driver",
            "origin", *_NUMBERS, "schema_id", "features")  # fmt: skip
_BATCH_ROWS = 5000


def load_table(
    store: Store, wanted: Selection = SOUND, *, schema: FeatureSchema | None = None
) -> "pd.DataFrame":
    """Load observations with their features.

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
    DataFrame
        A row per observation, by key, whatever the order in which they were added. Columns:
        ``key``, ``kernel`` (``suite/application/kernel``), ``application``
        (``suite/application``), ``suite``, ``kernel_digest``, ``device_id``, ``driver``,
        ``origin``; ``work_groups``, ``seconds`` (median time of the whole kernel), ``noise``
        (a share), ``linear_s`` and ``sampling_s`` (the linear model's time and the device time of
        the first sample set); then one per feature. NaN where a number is absent.

    Raises
    ------
    InputError
        If rows have different schemas and none is given, or one of another version.
    StoreError
        If the store cannot be read.
    """
    import pandas as pd

    batches = store.read_rows(wanted, columns=_COLUMNS, batch_rows=_BATCH_ROWS)
    rows = [tuple(row) for batch in batches for row in batch]
    table = pd.DataFrame(rows, columns=_COLUMNS).sort_values("key", ignore_index=True)
    features = _read_features(table[["schema_id", "features"]], store.schemas(), schema)
    table = table.drop(columns=["schema_id", "features"]).astype(dict.fromkeys(_NUMBERS, float))
    for above, below in (("suite", "application"), ("application", "kernel")):
        joined = table[above].astype(object) + "/" + table[below].astype(object)
        table[below] = joined.str.strip("/")
    return pd.concat([table, features], axis=1)


def _read_features(
    rows: "pd.DataFrame", schemas: dict[str, FeatureSchema], wanted: FeatureSchema | None
) -> "pd.DataFrame":
    """Give every row's features, in the order of one schema."""
    import pandas as pd

    rows_of = Counter(rows["schema_id"].dropna())
    chosen = wanted or _choose(rows_of, schemas)
    parts = []
    for schema_id, own in rows.dropna().groupby("schema_id"):
        found = schemas[str(schema_id)]
        if found.version != chosen.version:
            msg = (
                f"{len(own)} rows have features of schema {schema_id}, {chosen.id} was asked for: "
                "the same names mean something else; collect them anew, or leave them out"
            )
            raise InputError(msg)
        values = np.frombuffer(b"".join(own["features"]), dtype=FEATURE_TYPE)
        matrix = values.reshape(len(own), len(found.names))
        part = pd.DataFrame(matrix, index=own.index, columns=[*found.names])
        parts.append(part.reindex(columns=[*chosen.names]))
    if not parts:
        return pd.DataFrame(np.nan, index=rows.index, columns=[*chosen.names])
    return pd.concat(parts).reindex(rows.index)


def _choose(rows_of: Counter[str], schemas: dict[str, FeatureSchema]) -> FeatureSchema:
    if not rows_of:
        return FeatureSchema(names=(), version=1)
    if len(rows_of) > 1:
        found = ", ".join(f"{one} ({rows_of[one]} rows)" for one in sorted(rows_of))
        msg = f"the rows have features of several schemas: {found}; choose one"
        raise InputError(msg)
    return schemas[next(iter(rows_of))]
