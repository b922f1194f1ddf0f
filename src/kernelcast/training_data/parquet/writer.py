"""Writes observations into a Parquet file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.private_files import written_whole
from kernelcast.training_data.parquet.columns import list_fields, make_arrays
from kernelcast.training_data.parquet.format import (
    FORMAT_VERSION,
    ObservationFileError,
    make_arrow_schema,
)
from kernelcast.training_data.store.plain import FEATURE_TYPE
from kernelcast.training_data.store.recognising import is_database
from kernelcast.training_data.store.selection import EVERYTHING, Selection, list_conditions
from kernelcast.training_data.store.store import Store
from kernelcast.training_data.store.tables import OBSERVATIONS

_BATCH_ROWS = 5000


def export_parquet(
    store: Store,
    path: Path,
    wanted: Selection = EVERYTHING,
    *,
    report: Callable[[int], None] = lambda _: None,
) -> int:
    """Write observations into a file; an older file of that name stays until the new one is whole.

    Parameters
    ----------
    report : callable, optional
        Is told how many rows are written.

    Raises
    ------
    ObservationFileError
        If the file cannot be written, or is a database now.
    StoreError
        If the store cannot be read.
    """
    if is_database(path) and path.stat().st_size:
        msg = f"{path}: is a database, which would be lost; name another file"
        raise ObservationFileError(msg)
    try:
        with written_whole(path) as partial:
            return _write(store, partial, wanted, report)
    except OSError as error:
        msg = f"{path}: the file cannot be written: {error.strerror or error}"
        raise ObservationFileError(msg) from error


def _write(store: Store, path: Path, wanted: Selection, report: Callable[[int], None]) -> int:
    schemas = _find_schemas(store, wanted)
    arrow = make_arrow_schema(schemas.values())
    count = 0
    with pq.ParquetWriter(path, arrow, compression="zstd", write_page_checksum=True) as writer:
        for rows in store.read_rows(wanted, ordered=True, batch_rows=_BATCH_ROWS):
            columns = {
                name: list(values)
                for name, values in zip(OBSERVATIONS.c.keys(), zip(*rows, strict=True), strict=True)
            }
            writer.write_batch(_make_batch(columns, schemas, arrow))
            count += len(rows)
            report(count)
    return count


def _find_schemas(store: Store, wanted: Selection) -> dict[str, FeatureSchema]:
    """Give the schemas that the rows really have, by id."""
    column = OBSERVATIONS.c.schema_id
    query = sa.select(column).where(*list_conditions(wanted, OBSERVATIONS)).distinct()
    used = {row[0] for row in store.select(query)}
    return {key: one for key, one in sorted(store.schemas().items()) if key in used}


def _make_batch(
    columns: Mapping[str, Sequence[Any]], schemas: Mapping[str, FeatureSchema], arrow: pa.Schema
) -> pa.RecordBatch:
    plain = list_fields(FORMAT_VERSION)
    arrays = make_arrays(columns, plain)
    names = [one.name for one in arrow][len(plain) :]
    matrix = np.full((len(columns["key"]), len(names)), np.nan)
    column_of = {name: place for place, name in enumerate(names)}
    places = {key: [column_of[name] for name in one.names] for key, one in schemas.items()}
    for row, (schema_id, blob) in enumerate(
        zip(columns["schema_id"], columns["features"], strict=True)
    ):
        if blob is not None:
            matrix[row, places[schema_id]] = np.frombuffer(blob, dtype=FEATURE_TYPE)
    arrays += [pa.array(one, mask=np.isnan(one)) for one in matrix.T]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)
