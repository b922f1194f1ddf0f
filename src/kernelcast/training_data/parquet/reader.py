"""Reads observations out of a Parquet file."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernelcast.records.errors import KernelcastError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.training_data.parquet.columns import list_fields, read_rows
from kernelcast.training_data.parquet.format import (
    METADATA_KEY,
    ObservationFileError,
    read_metadata,
)
from kernelcast.training_data.store.plain import FEATURE_TYPE
from kernelcast.training_data.store.recognising import is_database, refuse_database
from kernelcast.training_data.store.rows import row_to_observation
from kernelcast.training_data.store.store import Store
from kernelcast.training_data.store.writing import AddedRows

_BATCH_ROWS = 5000


def import_parquet(
    store: Store,
    path: Path,
    *,
    replace: bool = False,
    report: Callable[[int], None] = lambda _: None,
) -> AddedRows:
    """Add the observations of a file to a store, all or none.

    Parameters
    ----------
    path : Path
        A file that `export_parquet` wrote.
    replace : bool
        Whether rows of the file replace those of the same key.
    report : callable, optional
        Is told how many rows are read.

    Returns
    -------
    AddedRows
        How many were new.

    Raises
    ------
    ObservationFileError
        If the file is damaged, none of observations or of a newer format; names the row.
    StoreError
        If the store cannot be written.
    """
    return store.add_many(read_parquet(path, report=report), replace=replace)


def read_parquet(
    path: Path, *, report: Callable[[int], None] = lambda _: None
) -> Iterator[Observation]:
    """Give the observations of a file one by one; parameters and errors as `import_parquet`."""
    where = str(path)
    refuse_database(path, ObservationFileError)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            version, schemas = read_metadata(file.schema_arrow.metadata, where)
            _check_columns(file.schema_arrow, version, schemas, where)
            first = 1
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                yield from _read_batch(batch, version, schemas, f"{where}: row", first)
                first += batch.num_rows
                report(first - 1)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        said = " ".join(str(error).split())
        msg = f"{where}: cannot be read as Parquet ({said}); is it complete?"
        raise ObservationFileError(msg) from error


def is_observation_file(path: Path) -> bool:
    """Tell whether a file is Parquet with our mark, of whatever version."""
    if is_database(path):
        return False
    try:
        return METADATA_KEY in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError, ValueError):
        return False


def _check_columns(
    found: pa.Schema, version: int, schemas: Mapping[str, FeatureSchema], where: str
) -> None:
    wanted = [*list_fields(version), *(
        pa.field(name, pa.float64()) for one in schemas.values() for name in one.names
    )]  # fmt: skip
    for one in wanted:
        place = found.get_field_index(one.name)
        kind = found.field(place).type if place >= 0 else "not there"
        if kind != one.type:
            msg = f"{where}: column {one.name} is {kind}, expected {one.type}; export it again"
            raise ObservationFileError(msg)


def _read_batch(
    batch: pa.RecordBatch, version: int, schemas: Mapping[str, FeatureSchema], where: str,
    first: int,
) -> Iterator[Observation]:  # fmt: skip
    blobs = {key: _make_blobs(batch, one) for key, one in schemas.items()}
    for place, row in enumerate(read_rows(batch, version)):
        own = blobs.get(row["schema_id"])
        row["features"] = None if own is None else own[place]
        yield _read_row(row, schemas, f"{where} {first + place}")


def _make_blobs(batch: pa.RecordBatch, schema: FeatureSchema) -> list[bytes]:
    columns = [batch[name].to_numpy(zero_copy_only=False) for name in schema.names]
    matrix = np.column_stack(columns) if columns else np.empty((batch.num_rows, 0))
    return [row.tobytes() for row in matrix.astype(FEATURE_TYPE)]


def _read_row(
    row: Mapping[str, Any], schemas: Mapping[str, FeatureSchema], where: str
) -> Observation:
    try:
        found = row_to_observation(row, schemas)
        if row["schema_id"] not in {None, *schemas}:
            msg = f"its feature schema {row['schema_id']} is not in the file"
            raise ValueError(msg)
        if found.key != row["key"]:
            msg = f"its key is {row['key']}, its content makes {found.key}"
            raise ValueError(msg)
    except (KernelcastError, ValueError, TypeError, KeyError, RecursionError) as error:
        msg = f"{where}: {error}; export it again, or leave the row out"
        raise ObservationFileError(msg) from error
    return found
