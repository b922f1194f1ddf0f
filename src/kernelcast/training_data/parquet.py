"""Observations in Parquet files, which people exchange.

Columns are those of the store's table, what it keeps as JSON texts as lists and structs, and one of
float64 per feature, so that any program can read them; null stands for what is absent. The file's
metadata hold the version of the format and the schemas of the features.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.records.private_files import written_whole
from kernelcast.records.samples import TimedLaunch
from kernelcast.training_data.store.recognising import is_database, refuse_database
from kernelcast.training_data.store.schema import (
    FEATURE_TYPE,
    LAUNCH_FIELDS,
    OBSERVATION_COLUMNS,
    OBSERVATIONS,
    Column,
    row_to_observation,
)
from kernelcast.training_data.store.selection import EVERYTHING, Selection, list_conditions
from kernelcast.training_data.store.store import Store
from kernelcast.training_data.store.writing import AddedRows

FORMAT_VERSION = 4
"""Version 1 held sizes, runs, samples, flags, state and versions as the store's JSON texts, and no
times at which samples and runs began; version 2 was never released; version 3 had no slowdown."""
METADATA_KEY = b"kernelcast.observations"
_BATCH_ROWS = 5000
_PLAIN = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
_MOMENT = pa.timestamp("us", tz="UTC")
_NDRANGE = ("global_size", "local_size", "global_offset")
_COLUMNS = {one.name: one for one in OBSERVATION_COLUMNS if one.name != "features"}


class ObservationFileError(InputError):
    """Is raised when a file of observations is unreadable, malformed or of another version."""


def _find_type(hint: Any) -> pa.DataType:  # noqa: ANN401 - a type
    """Give Arrow's type of a record's field."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    arguments = [one for one in get_args(hint) if one not in {NoneType, Ellipsis}]
    if hint is TimedLaunch:
        hints = get_type_hints(TimedLaunch) | get_type_hints(get_type_hints(TimedLaunch)["box"])
        return pa.struct({name: _find_type(hints[name]) for name in LAUNCH_FIELDS})
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return pa.struct({one.name: _find_type(hints[one.name]) for one in fields(hint)})
    if get_origin(hint) in {tuple, frozenset}:
        inner = arguments[0]
        is_text = isinstance(inner, type) and issubclass(inner, str)
        return pa.list_(pa.string() if is_text else _find_type(inner))
    if len(arguments) == 2:  # a mapping of texts
        return pa.map_(pa.string(), pa.string())
    return _find_type(arguments[0])


def _list_fields(version: int) -> list[pa.Field]:
    """List the columns beside the features, as a version of the format has them."""
    hints = get_type_hints(Observation) | {
        f"runs.{name}": hint
        for name, hint in get_type_hints(get_type_hints(Observation)["runs"]).items()
    }
    found = []
    for one in _COLUMNS.values():
        if version == 1 and one.default is not None:
            continue
        if one.name == "measured_at_us":
            found.append(pa.field("measured_at_us" if version == 1 else "measured_at", _MOMENT))
        elif one.name == "ndrange" and version > 1:
            found += [pa.field(name, pa.list_(pa.int64())) for name in _NDRANGE]
        elif _is_nested(one) and version > 1:
            found.append(pa.field(one.name, _find_type(hints[one.path]), nullable=False))
        else:
            found.append(pa.field(one.name, _PLAIN[one.type], nullable=one.is_nullable))
    return found


def _is_nested(one: Column) -> bool:
    """Tell whether the store keeps a column as a text of lists or mappings.

    Parameters stay a text: their values are of several types.
    """
    is_text = one.codec is None or one.type is not str
    return not is_text and one.name not in {"ndrange", "parameters", "origin"}


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
    column = OBSERVATIONS.c.schema_id
    query = sa.select(column).where(*list_conditions(wanted, OBSERVATIONS)).distinct()
    used = {row[0] for row in store.select(query)}
    schemas = {key: one for key, one in sorted(store.schemas().items()) if key in used}
    arrow = _make_schema(schemas.values())
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


def _make_schema(schemas: Iterable[FeatureSchema]) -> pa.Schema:
    """Make the columns of a file with features of these schemas, and its metadata."""
    kept = list(schemas)
    names = dict.fromkeys(name for one in kept for name in one.names)
    content = {
        "format": FORMAT_VERSION,
        "feature_schemas": {one.id: {"version": one.version, "names": one.names} for one in kept},
    }
    columns = [*_list_fields(FORMAT_VERSION), *(pa.field(name, pa.float64()) for name in names)]
    return pa.schema(columns, metadata={METADATA_KEY: json.dumps(content).encode()})


def _make_batch(
    columns: Mapping[str, Sequence[Any]], schemas: Mapping[str, FeatureSchema], arrow: pa.Schema
) -> pa.RecordBatch:
    plain = _list_fields(FORMAT_VERSION)
    known = {
        **columns,
        **{
            one.name: [_write_nested(one, text) for text in columns[one.name]]
            for one in _COLUMNS.values()
            if _is_nested(one)
        },
        "measured_at": columns["measured_at_us"],
        **dict(
            zip(
                _NDRANGE,
                zip(*(json.loads(one) if one else (None,) * 3 for one in columns["ndrange"]),
                    strict=True),
                strict=True,
            )
        ),
    }  # fmt: skip
    arrays = [pa.array(list(known[one.name]), type=one.type) for one in plain]
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


def _write_nested(column: Column, text: str) -> Any:  # noqa: ANN401 - as Arrow takes it
    assert column.codec is not None
    content = column.codec.from_text(text)
    if column.name == "samples":
        for one in content:
            launches = [[*launch, 1.0][: len(LAUNCH_FIELDS)] for launch in one["launches"]]
            one["launches"] = [
                {
                    name: None if isinstance(value, bool) else value
                    for name, value in zip(LAUNCH_FIELDS, launch, strict=True)
                }
                for launch in launches
            ]
    return [*content.items()] if column.name == "versions" else content


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
    """Read the observations of a file one by one; parameters and errors as `import_parquet`."""
    where = str(path)
    refuse_database(path, ObservationFileError)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            version, schemas = _read_metadata(file.schema_arrow.metadata, where)
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


def _read_metadata(
    metadata: Mapping[bytes, bytes] | None, where: str
) -> tuple[int, dict[str, FeatureSchema]]:
    """Read the version of the format and the schemas of features out of a file's metadata."""
    raw = (metadata or {}).get(METADATA_KEY)
    if raw is None:
        msg = (
            f"{where}: is a Parquet file, but none of observations; `kernelcast data export` "
            "writes such, other data sets have importers of their own"
        )
        raise ObservationFileError(msg)
    try:
        content: dict[str, Any] = json.loads(raw)
        version = int(content["format"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        msg = f"{where}: its metadata are damaged ({error!r}); export it again"
        raise ObservationFileError(msg) from error
    if version > FORMAT_VERSION:
        msg = (
            f"{where}: is of format {version}, this kernelcast reads up to {FORMAT_VERSION}; "
            "update kernelcast"
        )
        raise ObservationFileError(msg)
    found = {}
    try:
        for key, one in content["feature_schemas"].items():
            schema = FeatureSchema(names=tuple(one["names"]), version=int(one["version"]))
            if schema.id != key:
                msg = f"schema {key} expected, its names make {schema.id}"
                raise ValueError(msg)
            found[key] = schema
    except (AttributeError, KeyError, TypeError, ValueError, InputError) as error:
        msg = f"{where}: its feature schemas are damaged ({error}); export it again"
        raise ObservationFileError(msg) from error
    return version, found


def _check_columns(
    found: pa.Schema, version: int, schemas: Mapping[str, FeatureSchema], where: str
) -> None:
    features = (
        pa.field(name, pa.float64()) for one in schemas.values() for name in one.names
    )  # fmt: skip
    for one in (*_list_fields(version), *features):
        place = found.get_field_index(one.name)
        kind = found.field(place).type if place >= 0 else "not there"
        if place < 0 or not _fits(found.field(place).type, one.type):
            msg = f"{where}: column {one.name} is {kind}, expected {one.type}; export it again"
            raise ObservationFileError(msg)


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether a type is that wanted; structs of older versions may lack fields."""
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _fits(found.value_type, wanted.value_type)
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        kinds = {one.name: one.type for one in wanted}
        return all(one.name in kinds and _fits(one.type, kinds[one.name]) for one in found)
    return bool(found == wanted)


def _read_batch(
    batch: pa.RecordBatch, version: int, schemas: Mapping[str, FeatureSchema], where: str,
    first: int,
) -> Iterator[Observation]:  # fmt: skip
    blobs = {key: _make_blobs(batch, one) for key, one in schemas.items()}
    texts = [
        one
        for one in OBSERVATION_COLUMNS
        if one.codec is not None and one.type is str and (version == 1 or not _is_nested(one))
        and (version == 1 or one.name != "ndrange")
    ]  # fmt: skip
    for place, row in enumerate(_list_rows(batch, version)):
        own = blobs.get(row["schema_id"])
        row["features"] = None if own is None else own[place]
        try:
            for one in texts:
                if row[one.name] is not None and one.codec is not None:
                    row[one.name] = one.codec.from_text(row[one.name])
            made = row_to_observation(row, schemas, is_plain=True)
            if row["schema_id"] not in {None, *schemas}:
                msg = f"its feature schema {row['schema_id']} is not in the file"
                raise ValueError(msg)
            if made.key != row["key"]:
                msg = f"its key is {row['key']}, its content makes {made.key}"
                raise ValueError(msg)
        except (KernelcastError, ValueError, TypeError, KeyError, RecursionError) as error:
            msg = f"{where} {first + place}: {error}; export it again, or leave the row out"
            raise ObservationFileError(msg) from error
        yield made


def _list_rows(batch: pa.RecordBatch, version: int) -> Iterator[dict[str, Any]]:
    """List a batch's rows as plain values by the store's names, without features."""
    names = [one.name for one in _list_fields(version)]
    moments = {"measured_at", "measured_at_us"}
    columns = [batch[name].cast(pa.int64()) if name in moments else batch[name] for name in names]
    for values in zip(*(one.to_pylist() for one in columns), strict=True):
        row = dict(zip(names, values, strict=True))
        if version == 1:
            row["started_s"] = "[]"
        else:
            sizes = [row.pop(name) for name in _NDRANGE]
            row["ndrange"] = None if sizes[0] is None else sizes
            row["measured_at_us"] = row.pop("measured_at")
        yield row


def _make_blobs(batch: pa.RecordBatch, schema: FeatureSchema) -> list[bytes]:
    columns = [batch[name].to_numpy(zero_copy_only=False) for name in schema.names]
    matrix = np.column_stack(columns) if columns else np.empty((batch.num_rows, 0))
    return [row.tobytes() for row in matrix.astype(FEATURE_TYPE)]
