"""The one description of observations and failures: columns, and how records become rows.

`OBSERVATION_COLUMNS` and `FAILURE_COLUMNS` say of each column where its value stands in the record.
The tables of the database, the columns of Parquet files, and the ways there and back follow.

A row of ``observations`` has columns for what is searched, split and learned by; what only people
look at is JSON text. Features are one blob per row: float64, little endian, in the order of the
schema, NaN where absent. A table of 100,000 rows and 200 features is then read by joining blobs
into one array: no number is parsed, and no column is added when a feature is.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import cattrs
import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from cattrs.gen import make_dict_unstructure_fn

from kernelcast.records.feature_vector import FeatureSchema, FeatureVector, make_vector
from kernelcast.records.launch_identity import DeviceIdentity, KernelIdentity, LaunchIdentity
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.observation import FailureRecord, Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import MachineState, RunTimes, SampleSet
from kernelcast.records.samples import TimedLaunch

FEATURE_TYPE: Final = np.dtype("<f8")
"""Type of stored features, on every machine."""
LAUNCH_FIELDS: Final = ("window", "start", "shape", "duration_s", "clock_s", "weight")
"""What a sampled launch is written as, in this order; the weight may be missing where it is 1."""
Row = Mapping[str, Any]
"""Values by the names of a table's columns."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# `json.dumps` would make one for each text, which takes as long as a short text itself.
_WRITER = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False)
_CONVERTER = cattrs.Converter(detailed_validation=False, forbid_extra_keys=True)


def dump(content: object) -> str:
    """Write JSON in its shortest form; equal contents give equal texts."""
    return _WRITER.encode(content)


def load_mapping(text: str) -> Mapping[str, Any]:
    """Read a JSON object."""
    content = json.loads(text)
    if not isinstance(content, dict):
        msg = f"expected a JSON object, found {text[:40]!r}"
        raise ValueError(msg)
    return content


def dump_time(moment: datetime | None) -> int | None:
    """Write a time as microseconds since 1970, UTC."""
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def load_time(microseconds: int | None) -> datetime | None:
    """Read what `dump_time` wrote."""
    return None if microseconds is None else _EPOCH + microseconds * _MICROSECOND


def load_flags(text: str) -> frozenset[ObservationFlag]:
    """Read flags; each stands between commas, so that a text search finds whole flags only."""
    return frozenset(ObservationFlag(one) for one in text.split(",") if one)


@lru_cache(maxsize=4096)  # programs repeat their launches
def dump_ndrange(ndrange: NDRange | None) -> str | None:
    """Write global size, local size and offset."""
    return None if ndrange is None else dump(_list_sizes(ndrange))


def load_ndrange(text: str | None) -> NDRange | None:
    """Read what `dump_ndrange` wrote."""
    return None if text is None else _make_ndrange(json.loads(text))


def _list_sizes(ndrange: NDRange) -> list[Any]:
    return [ndrange.global_size, ndrange.local_size, ndrange.global_offset]


def _make_ndrange(sizes: Sequence[Any]) -> NDRange:
    global_size, local_size, offset = sizes
    return NDRange(
        global_size=tuple(global_size),
        local_size=None if local_size is None else tuple(local_size),
        global_offset=tuple(offset),
    )


def _write_launch(one: TimedLaunch) -> list[Any]:
    fields = [one.window, one.box.start, one.box.shape, one.duration_s, one.clock_s]
    return fields if one.weight == 1 else [*fields, one.weight]


def _read_launch(content: Any, _: object) -> TimedLaunch:  # noqa: ANN401 - a list, or a file's struct
    if isinstance(content, dict):
        content = [content.get(name) for name in LAUNCH_FIELDS]
    window, start, shape, duration_s, clock_s, *weight = content
    return TimedLaunch(
        box=GroupBox(start=tuple(start), shape=tuple(shape)),
        window=window,
        duration_s=duration_s,
        # Before sampler 4 a truth value stood here.
        clock_s=None if isinstance(clock_s, bool) else clock_s,
        weight=weight[0] if weight and weight[0] is not None else 1.0,
    )


_CONVERTER.register_unstructure_hook(TimedLaunch, _write_launch)
_CONVERTER.register_structure_hook(TimedLaunch, _read_launch)
for _kind in (SampleSet, MachineState):
    _CONVERTER.register_unstructure_hook(
        _kind,
        make_dict_unstructure_fn(_kind, _CONVERTER, _cattrs_omit_if_default=True),
    )


@lru_cache(maxsize=256)  # most observations of a batch have the same, often an empty one
def _write_state(state: MachineState) -> Mapping[str, Any]:
    content: Mapping[str, Any] = _CONVERTER.unstructure(state)
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """How a value of a record becomes plain values, as files hold them, and those a text."""

    to_plain: Callable[[Any], Any] = lambda value: value
    from_plain: Callable[[Any], Any] = lambda value: value
    to_text: Callable[[Any], Any] = dump
    from_text: Callable[[Any], Any] = json.loads


def _keep(value: Any) -> Any:  # noqa: ANN401 - whatever it is
    return value


def _drop_absent(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value is not None}


def _read_samples(content: Sequence[Mapping[str, Any]]) -> tuple[SampleSet, ...]:
    return _CONVERTER.structure([_drop_absent(one) for one in content], tuple[SampleSet, ...])


_TIMES = Codec(to_plain=list, from_plain=tuple)
_MAPPING = Codec(to_plain=dict, from_plain=dict, from_text=load_mapping)
_SIZES = Codec(to_plain=_list_sizes, from_plain=_make_ndrange)
_SAMPLES = Codec(to_plain=_CONVERTER.unstructure, from_plain=_read_samples)
_STATE = Codec(
    to_plain=_write_state,
    from_plain=lambda content: _CONVERTER.structure(_drop_absent(content), MachineState),
)
_FLAGS = Codec(
    to_plain=sorted,
    from_plain=lambda flags: frozenset(map(ObservationFlag, flags)),
    to_text=lambda flags: f",{','.join(flags)}," if flags else "",
    from_text=lambda text: text.split(",")[1:-1],
)
_ORIGIN = Codec(to_plain=str, from_plain=Origin, to_text=_keep, from_text=_keep)
_TIME = Codec(to_plain=dump_time, from_plain=load_time, to_text=_keep, from_text=_keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    name: str
    path: str
    """Where its value stands in the record; of a derived one, what it is read by."""
    type: type = str
    is_nullable: bool = False
    codec: Codec | None = None
    """None where the value is stored as it is."""
    is_derived: bool = False
    """Whether it follows from the others: it is written for searches, and not read."""
    default: str | None = None
    """Of rows that were there before the column was."""

    def write(self, record: Any) -> Any:  # noqa: ANN401 - one of two records
        """Give a record's value as the database holds it."""
        value = attrgetter(self.path)(record)
        if value is None or self.codec is None:
            return value
        return self.codec.to_text(self.codec.to_plain(value))

    def read(self, value: Any, *, is_plain: bool) -> Any:  # noqa: ANN401 - as the record has it
        """Give the record's value of what the database holds, or a file as plain values."""
        if value is None or self.codec is None:
            return value
        return self.codec.from_plain(value if is_plain else self.codec.from_text(value))


def _column(name: str, path: str = "", kind: type = str, **more: Any) -> Column:  # noqa: ANN401 - as `Column`
    return Column(name=name, path=path or name, type=kind, **more)


_LAUNCH = (
    _column("launch_key", "launch.key", is_derived=True),
    _column("measurement"),
    _column("kernel_digest", "launch.kernel.digest"),
    _column("kernel", "launch.kernel.name"),
    _column("application", "launch.kernel.application"),
    _column("suite", "launch.kernel.suite"),
    _column("device_id", "launch.device.id"),
    _column("device", "launch.device.name"),
    _column("platform", "launch.device.platform"),
    _column("driver", "launch.device.driver"),
    _column("ndrange", "launch.ndrange", is_nullable=True, codec=_SIZES),
    _column("work_groups", "launch.work_group_count", int, is_nullable=True, is_derived=True),
    _column("arguments_digest", "launch.arguments_digest"),
    _column("parameters", "launch.parameters", codec=_MAPPING),
)
_KEY = _column("key", is_derived=True)
_FEATURES = frozenset({"schema_id", "features"})
_FIRST_SAMPLES = frozenset({"linear_s", "sampling_s"})
OBSERVATION_COLUMNS: Final = (
    _KEY,
    *_LAUNCH,
    _column("seconds", "runs.median_s", float),
    _column("durations_s", "runs.durations_s", codec=_TIMES),
    _column("started_s", "runs.started_s", codec=_TIMES, default="[]"),
    _column("noise", "runs.noise", float, is_nullable=True),
    _column("run_count", "runs.run_count", int),
    _column("schema_id", kind=str, is_nullable=True, is_derived=True),
    _column("features", kind=bytes, is_nullable=True, is_derived=True),
    _column("linear_s", kind=float, is_nullable=True, is_derived=True),
    _column("sampling_s", kind=float, is_nullable=True, is_derived=True),
    _column("samples", codec=_SAMPLES),
    _column("origin", codec=_ORIGIN),
    _column("source"),
    _column("flags", codec=_FLAGS),
    _column("machine_state", codec=_STATE),
    _column("versions", codec=_MAPPING),
    _column("measured_at_us", "measured_at", int, is_nullable=True, codec=_TIME),
)
"""Of an observation. Features, their schema, and what is searched of the first samples have no
path: they are written and read beside the others."""
FAILURE_COLUMNS: Final = (
    _KEY,
    *_LAUNCH,
    _column("kind"),
    _column("message"),
    _column("failed_at_us", "failed_at", int, is_nullable=True, codec=_TIME),
)
"""Of a failure."""
# Inner records before those that hold them.
_RECORDS: Mapping[str, Callable[..., Any]] = {
    "launch.kernel": KernelIdentity, "launch.device": DeviceIdentity, "launch": LaunchIdentity,
    "runs": RunTimes,
}  # fmt: skip


def observation_to_row(one: Observation) -> dict[str, Any]:
    """Write an observation."""
    others = _FEATURES | _FIRST_SAMPLES
    row = {
        column.name: column.write(one)
        for column in OBSERVATION_COLUMNS
        if column.name not in others
    }
    first = one.samples[0] if one.samples else None
    return row | {
        "schema_id": None if one.features is None else schema_id(one.features.schema),
        "features": None if one.features is None else dump_features(one.features),
        "linear_s": None if first is None else first.linear_s,
        "sampling_s": None if first is None else first.sampling_s,
    }


def row_to_observation(
    row: Row, schemas: Mapping[str, FeatureSchema], *, is_plain: bool = False
) -> Observation:
    """Read an observation of what the database holds, or of a file's plain values."""
    features = row["features"]
    made: Observation = _make_record(
        Observation, OBSERVATION_COLUMNS, row, is_plain=is_plain,
        features=None if features is None else load_features(features, schemas[row["schema_id"]]),
    )  # fmt: skip
    return made


def failure_to_row(one: FailureRecord) -> dict[str, Any]:
    """Write a failure."""
    return {column.name: column.write(one) for column in FAILURE_COLUMNS}


def row_to_failure(row: Row) -> FailureRecord:
    """Read a failure."""
    made: FailureRecord = _make_record(FailureRecord, FAILURE_COLUMNS, row, is_plain=False)
    return made


def _make_record(
    kind: Callable[..., Any],
    columns: Sequence[Column],
    row: Row,
    *,
    is_plain: bool,
    **more: FeatureVector | None,
) -> Any:  # noqa: ANN401 - of `kind`
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for column in columns:
        if not column.is_derived:
            where, _, field = column.path.rpartition(".")
            parts[where][field] = column.read(row[column.name], is_plain=is_plain)
    for where, record in _RECORDS.items():
        if where in parts or where == "launch":
            outer, _, field = where.rpartition(".")
            parts[outer][field] = record(**parts[where])
    return kind(**parts[""], **more)


@lru_cache(maxsize=64)
def schema_id(schema: FeatureSchema) -> str:
    """Give a schema's id; the hash behind it takes longer than writing a row."""
    return schema.id


def dump_features(vector: FeatureVector) -> bytes:
    """Write a vector's values in the order of its schema, NaN where one is absent."""
    return vector.align().astype(FEATURE_TYPE).tobytes()


def load_features(blob: bytes, schema: FeatureSchema) -> FeatureVector:
    """Read what `dump_features` wrote."""
    values: npt.NDArray[np.float64] = np.frombuffer(blob, dtype=FEATURE_TYPE)
    present = zip(schema.names, values.tolist(), strict=True)
    return make_vector({name: one for name, one in present if not math.isnan(one)}, schema)


HEAD: Final = "0004"
"""Newest version of the tables."""
VERSION_TABLE: Final = "kernelcast_store_version"
METADATA = sa.MetaData()
# SQLite has one integer type, PostgreSQL's default has 32 bits.
WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TYPES: Mapping[type, Any] = {str: sa.Text, float: sa.Double, int: WHOLE, bytes: sa.LargeBinary}


def _make_table(name: str, columns: Sequence[Column], indexed: Sequence[str]) -> sa.Table:
    made = [
        sa.Column(
            one.name, _TYPES[one.type], primary_key=one is columns[0],
            nullable=one.is_nullable, index=one.name in indexed, server_default=one.default,
        )
        for one in columns
    ]  # fmt: skip
    return sa.Table(name, METADATA, *made)


OBSERVATIONS = _make_table(
    "observations", OBSERVATION_COLUMNS, ("kernel", "device_id", "schema_id")
)
LAUNCHES = _make_table(
    "launches",
    (
        *(
            one
            for name in ("launch_key", "kernel", "application", "suite", "device_id")
            for one in _LAUNCH
            if one.name == name
        ),
        _column("changed", kind=int),
    ),
    ("changed",),
)
"""What was collected or observed, once; triggers of `observations` keep it. `changed` grows.

A launch whose observations were removed stays here, so that those who knew it see that they were.
"""
FAILURES = _make_table(
    "failures", FAILURE_COLUMNS, ("launch_key", "kernel_digest", "kernel", "device_id")
)
FEATURE_SCHEMAS = _make_table(
    "feature_schemas",
    (_column("id"), _column("version", kind=int), _column("names")),
    (),
)
