"""Observations in Parquet files, which people exchange.

Columns are those of the store's table, what it keeps as JSON texts as lists and structs, and one of
float64 per feature, so that any program can read them; null stands for what is absent. The file's
metadata hold the version of the format and the schemas of the features.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation
from kernelcast.records.private_files import written_whole
from kernelcast.records.samples import TimedLaunch
from kernelcast.training_data.store.connecting import is_database, refuse_database
from kernelcast.training_data.store.schema import (
    EVERYTHING,
    FEATURE_TYPE,
    LAUNCH_FIELDS,
    OBSERVATION_COLUMNS,
    OBSERVATIONS,
    Column,
    Selection,
    find_hint,
    list_conditions,
    row_to_observation,
    strip_none,
)
from kernelcast.training_data.store.store import Store

FORMAT_VERSION = 4
"""Version 1 held sizes, runs, samples, flags, state and versions as the store's JSON texts, and no
times at which samples and runs began; version 2 was never released; version 3 had no slowdown."""
METADATA_KEY = b"kernelcast.observations"
_BATCH_ROWS = 5000
_PLAIN = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
_MOMENT = pa.timestamp("us", tz="UTC")
_NDRANGE = ("global_size", "local_size", "global_offset")
_COLUMNS = tuple(one for one in OBSERVATION_COLUMNS if one.name != "features")


class ObservationFileError(InputError):
    """Is raised when a file of observations is unreadable, malformed or of another version."""


def _find_type(hint: Any) -> pa.DataType:  # noqa: ANN401 - a type
    hint = strip_none(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint is TimedLaunch:
        hints = get_type_hints(TimedLaunch) | get_type_hints(find_hint(TimedLaunch, "box"))
        return pa.struct({name: _find_type(hints[name]) for name in LAUNCH_FIELDS})
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return pa.struct({one.name: _find_type(hints[one.name]) for one in fields(hint)})
    inner = get_args(hint)
    if len(inner) == 2 and get_origin(hint) is Mapping:
        # Parameters stay a text: their values are of several types.
        return pa.map_(pa.string(), pa.string()) if inner[1] is str else pa.string()
    return pa.list_(_find_type(inner[0])) if inner else pa.string()


def _list_fields(column: Column, *, is_first_version: bool = False) -> list[pa.Field]:
    """List the fields of a file that a column of the store becomes."""
    if column.hint is datetime:
        name = column.name if is_first_version else column.name.removesuffix("_us")
        return [pa.field(name, _MOMENT)]
    if is_first_version or not column.is_structured:
        return [pa.field(column.name, _PLAIN[column.type], nullable=column.is_nullable)]
    if column.hint is NDRange:
        return [pa.field(name, pa.list_(pa.int64())) for name in _NDRANGE]
    return [pa.field(column.name, _find_type(column.hint), nullable=False)]


def export_parquet(
    store: Store,
    path: Path,
    wanted: Selection = EVERYTHING,
    *,
    report: Callable[[int], None] = lambda _: None,
) -> int:
    """Write observations into a file; an older one stays until the new one is whole."""
    if is_database(path) and path.stat().st_size:
        raise ObservationFileError(f"{path}: is a database, which would be lost; name another file")
    column = OBSERVATIONS.c.schema_id
    query = sa.select(column).where(*list_conditions(wanted, OBSERVATIONS)).distinct()
    used = {row[0] for row in store.select(query)}
    schemas = {key: one for key, one in sorted(store.schemas().items()) if key in used}
    # Make the columns of a file with features of these schemas, and its metadata.
    names = dict.fromkeys(name for one in schemas.values() for name in one.names)
    content = {
        "format": FORMAT_VERSION,
        "feature_schemas": {
            key: {"version": one.version, "names": one.names} for key, one in schemas.items()
        },
    }
    fields = [field for one in _COLUMNS for field in _list_fields(one)]
    fields += [pa.field(name, pa.float64()) for name in names]
    arrow = pa.schema(fields, metadata={METADATA_KEY: json.dumps(content).encode()})
    options = {"compression": "zstd", "write_page_checksum": True}
    count = 0
    try:
        with written_whole(path) as partial, pq.ParquetWriter(partial, arrow, **options) as writer:
            for rows in store.read_rows(wanted, ordered=True, batch_rows=_BATCH_ROWS):
                written = [_write_row(dict(one._mapping), schemas) for one in rows]
                writer.write_batch(pa.RecordBatch.from_pylist(written, schema=arrow))
                count += len(rows)
                report(count)
    except OSError as error:
        msg = f"{path}: the file cannot be written: {error.strerror or error}"
        raise ObservationFileError(msg) from error
    return count


def _write_row(row: dict[str, Any], schemas: Mapping[str, FeatureSchema]) -> dict[str, Any]:
    """Put values in the place of a row's texts, and features into columns of their own."""
    found = row.copy()
    for column in _COLUMNS:
        value = row[column.name]
        if column.hint is datetime:
            found[column.name.removesuffix("_us")] = value
        elif column.hint is NDRange:
            found |= zip(_NDRANGE, json.loads(value) if value else (None,) * 3, strict=True)
        elif column.is_structured and column.name != "parameters":
            found[column.name] = column.load(value)
    found["versions"] = [*found["versions"].items()]
    for one in found["samples"]:
        one["launches"] = [
            {
                name: None if isinstance(value, bool) else value
                for name, value in zip(LAUNCH_FIELDS, (*launch, 1.0), strict=False)
            }
            for launch in one["launches"]
        ]
    if row["features"] is not None:
        names, values = schemas[row["schema_id"]].names, np.frombuffer(row["features"])
        found |= {one: x for one, x in zip(names, values.tolist(), strict=True) if x == x}
    return found


def read_parquet(path: Path) -> Iterator[Observation]:
    where = str(path)
    refuse_database(path, ObservationFileError)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            version, schemas = _read_metadata(file.schema_arrow.metadata, where)
            # Check a file's columns, and name those that its version has.
            wanted = [
                field
                for one in _COLUMNS
                # What came with a later version is as the store's older rows have it.
                if version > 1 or one.default is None
                for field in _list_fields(one, is_first_version=version == 1)
            ]
            names = dict.fromkeys(name for one in schemas.values() for name in one.names)
            wanted += [pa.field(name, pa.float64()) for name in names]
            arrow = file.schema_arrow
            for one in wanted:
                place = arrow.get_field_index(one.name)
                kind = arrow.field(place).type if place >= 0 else None
                # Structs of older versions may lack fields.
                if kind is None or kind.id != one.type.id:
                    raise ObservationFileError(
                        f"{where}: column {one.name} is {kind or 'not there'}, expected "
                        f"{one.type}; export it again"
                    )
            found = [one.name for one in wanted]
            batches = file.iter_batches(batch_size=_BATCH_ROWS)
            rows = (row for batch in batches for row in batch.select(found).to_pylist())
            for number, row in enumerate(rows, start=1):
                try:
                    yield _read_row(row, schemas)
                except (KernelcastError, ValueError, TypeError, KeyError, RecursionError) as error:
                    raise ObservationFileError(
                        f"{where}: row {number}: {error}; export it again, or leave the row out"
                    ) from error
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


def _read_metadata(
    metadata: Mapping[bytes, bytes] | None, where: str
) -> tuple[int, dict[str, FeatureSchema]]:
    raw = (metadata or {}).get(METADATA_KEY)
    if raw is None:
        raise ObservationFileError(
            f"{where}: is a Parquet file, but none of observations; `kernelcast data export` "
            "writes such, other data sets have importers of their own"
        )
    try:
        content: dict[str, Any] = json.loads(raw)
        version = int(content["format"])
        held = content["feature_schemas"] if version <= FORMAT_VERSION else {}
        found = {
            key: FeatureSchema(names=tuple(one["names"]), version=int(one["version"]))
            for key, one in held.items()
        }
        if wrong := [
            f"{key}, its names make {one.id}" for key, one in found.items() if one.id != key
        ]:
            raise ValueError(f"feature schema {wrong[0]}")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, InputError) as error:
        msg = f"{where}: its metadata are damaged ({error!r}); export it again"
        raise ObservationFileError(msg) from error
    if version > FORMAT_VERSION:
        raise ObservationFileError(
            f"{where}: is of format {version}, this kernelcast reads up to {FORMAT_VERSION}; "
            "update kernelcast"
        )
    return version, found


def _read_row(row: dict[str, Any], schemas: Mapping[str, FeatureSchema]) -> Observation:
    schema = schemas.get(row["schema_id"])
    if schema is None and row["schema_id"] is not None:
        raise ValueError(f"its feature schema {row['schema_id']} is not in the file")
    values = None if schema is None else np.array([row[one] for one in schema.names], FEATURE_TYPE)
    found = {one.name: one.default for one in _COLUMNS if one.default is not None} | row
    found["features"] = None if values is None else values.tobytes()
    if "ndrange" not in row:
        sizes = [row[name] for name in _NDRANGE]
        found["ndrange"] = None if sizes[0] is None else sizes
        found["measured_at_us"] = row["measured_at"]
        found["versions"] = dict(row["versions"])
    made = row_to_observation(found, schemas)
    if made.key != row["key"]:
        raise ValueError(f"its key is {row['key']}, its content makes {made.key}")
    return made
