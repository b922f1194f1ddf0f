"""What a Parquet file of observations looks like.

Its columns are those of `kernelcast.training_data.parquet.columns`, and one of float64 per feature,
so that any program can read them; null stands for what is absent. The file's metadata hold the
version of the format and the schemas of the features.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.training_data.parquet.columns import list_fields

FORMAT_VERSION = 3
"""Version 1 held sizes, runs, samples, flags, state and versions as the store's JSON texts, and no
times at which samples and runs began; version 2 was never released."""
METADATA_KEY = b"kernelcast.observations"


class ObservationFileError(InputError):
    """Is raised when a file of observations is unreadable, malformed or of another version."""


def make_arrow_schema(schemas: Iterable[FeatureSchema]) -> pa.Schema:
    """Give the columns of a file with features of these schemas, and its metadata."""
    kept = list(schemas)
    names = dict.fromkeys(name for one in kept for name in one.names)
    content = {
        "format": FORMAT_VERSION,
        "feature_schemas": {one.id: {"version": one.version, "names": one.names} for one in kept},
    }
    fields = [*list_fields(FORMAT_VERSION), *(pa.field(name, pa.float64()) for name in names)]
    return pa.schema(fields, metadata={METADATA_KEY: json.dumps(content).encode()})


def read_metadata(
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
    return version, _make_schemas(content, where)


def _make_schemas(content: Mapping[str, Any], where: str) -> dict[str, FeatureSchema]:
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
    return found
