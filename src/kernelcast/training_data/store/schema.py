"""The one definition of observations and failures, from which tables and files follow.

`OBSERVATION_COLUMNS` and `FAILURE_COLUMNS` say of each column where its value stands in the record;
the types of the records' fields say the rest: the column's type in the database, in Parquet files
(`kernelcast.training_data.parquet`) and in plain tables (`kernelcast.training_data.importers`), and
how a value is written and read.

A row of ``observations`` has columns for what is searched, split and learned by; what only people
look at is JSON text. Features are one blob per row: float64, little endian, in the order of the
schema, NaN where absent. A table of 100,000 rows and 200 features is then read by joining blobs
into one array: no number is parsed, and no column is added when a feature is.
"""

import json
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

import cattrs
import numpy as np
import sqlalchemy as sa
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from kernelcast.records.feature_vector import FeatureSchema, FeatureVector, make_vector
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.observation import (
    FailureRecord,
    MachineState,
    Observation,
    ObservationFlag,
    Origin,
    SampleSet,
)
from kernelcast.records.samples import TimedLaunch

FEATURE_TYPE: Final = np.dtype("<f8")
LAUNCH_FIELDS: Final = ("window", "start", "shape", "duration_s", "clock_s", "weight")
"""What a sampled launch is written as, in this order; the weight may be missing where it is 1."""
Row = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# `json.dumps` would make one for each text, which takes as long as a short text itself.
_WRITER = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False)


def dump(content: object) -> str:
    """Write JSON in its shortest form; equal contents give equal texts."""
    return _WRITER.encode(content)


def load_mapping(text: str) -> Mapping[str, Any]:
    return _check_mapping(json.loads(text))


def dump_time(moment: datetime | None) -> int | None:
    """Write a time as microseconds since 1970, UTC."""
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def load_time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + microseconds * _MICROSECOND


def load_flags(text: str) -> frozenset[ObservationFlag]:
    """Read flags; each stands between commas, so that a text search finds whole flags only."""
    return frozenset(ObservationFlag(one) for one in text.split(",") if one)


def load_ndrange(text: str | None) -> NDRange | None:
    return None if text is None else _make_ndrange(json.loads(text))


def _make_ndrange(sizes: Sequence[Any], _: object = None) -> NDRange:
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


def _check_mapping(content: Any) -> Mapping[str, Any]:  # noqa: ANN401 - of JSON
    if not isinstance(content, dict):
        raise ValueError(f"expected a JSON object, found {str(content)[:40]}")
    return content


_FLAGS = frozenset[ObservationFlag]
_CONVERTER: Final = cattrs.Converter(detailed_validation=False, forbid_extra_keys=True)
"""Turns values of records into plain ones, as files hold them, and back."""
_CONVERTER.register_unstructure_hook(TimedLaunch, _write_launch)
_CONVERTER.register_structure_hook(TimedLaunch, _read_launch)
_CONVERTER.register_unstructure_hook(
    NDRange, lambda one: [one.global_size, one.local_size, one.global_offset]
)
_CONVERTER.register_structure_hook(NDRange, _make_ndrange)
_CONVERTER.register_unstructure_hook(datetime, dump_time)
_CONVERTER.register_structure_hook(
    datetime, lambda value, _: value if isinstance(value, datetime) else load_time(value)
)
_CONVERTER.register_unstructure_hook_func(
    lambda kind: kind == _FLAGS, lambda flags: f",{','.join(sorted(flags))}," if flags else ""
)
_CONVERTER.register_structure_hook_func(
    lambda kind: getattr(kind, "__origin__", None) is Mapping,
    lambda value, _: dict(_check_mapping(value)),
)


def _omit_defaults(kind: Any) -> None:  # noqa: ANN401 - a record's class
    """Write no fields that are as usual, and take null in files for what is absent."""
    read = make_dict_structure_fn(kind, _CONVERTER)
    write = make_dict_unstructure_fn(kind, _CONVERTER, _cattrs_omit_if_default=True)
    _CONVERTER.register_unstructure_hook(kind, write)
    _CONVERTER.register_structure_hook(
        kind,
        lambda held, _: read({name: x for name, x in held.items() if x is not None}, kind),
    )


_omit_defaults(SampleSet)
_omit_defaults(MachineState)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    path: str
    hint: Any
    """Type of the value, without None."""
    is_nullable: bool
    label: str = ""
    """Its name in plain tables of people's own; empty where they have no such column."""
    is_derived: bool = False
    """Whether it follows from the others: it is written for searches, and not read."""
    default: str | None = None
    """Of rows that were there before the column was."""

    @property
    def type(self) -> type:
        if self.hint is datetime:
            return int
        return self.hint if self.hint in {int, float, bytes} else str

    @property
    def is_structured(self) -> bool:
        """Whether the database holds a text of what consists of several values."""
        return get_origin(self.hint) is not None or self.hint in {NDRange, MachineState}

    def write(self, record: Any) -> Any:  # noqa: ANN401 - one of two records
        """Write a record's value as the database holds it."""
        value = operator.attrgetter(self.path)(record)
        if value is None or self.hint in {str, int, float}:
            return value
        plain = _CONVERTER.unstructure(value, self.hint)
        return dump(plain) if isinstance(plain, list | tuple | dict) else plain

    def load(self, text: str) -> Any:  # noqa: ANN401 - as files hold it
        return text.split(",")[1:-1] if self.hint == _FLAGS else json.loads(text)

    def read(self, value: Any) -> Any:  # noqa: ANN401 - as the record has it
        """Read what the database holds, or a file as a plain value."""
        if value is None or (self.hint in {str, int, float} and isinstance(value, self.hint)):
            return value
        if self.is_structured and isinstance(value, str):
            value = self.load(value)
        return _CONVERTER.structure(value, self.hint)


def dump_ndrange(ndrange: NDRange) -> str:
    return dump(_CONVERTER.unstructure(ndrange))


def strip_none(hint: Any) -> Any:  # noqa: ANN401 - a type
    """Return a type without None, and itself where it does not hold None."""
    kinds = get_args(hint)
    return next(one for one in kinds if one is not NoneType) if NoneType in kinds else hint


@cache
def find_hint(record: Any, path: str) -> Any:  # noqa: ANN401 - a type
    outer, _, name = path.rpartition(".")
    return get_type_hints(strip_none(find_hint(record, outer)) if outer else record)[name]


def _column(record: Any, name: str, path: str = "", hint: Any = None, **more: Any) -> Column:  # noqa: ANN401
    """Describe a column; one whose type is given is derived, the others' are of the record."""
    is_derived = hint is not None
    path = path or name
    hint = hint if is_derived else find_hint(record, path)
    return Column(
        name=name, path=path, hint=strip_none(hint), is_nullable=NoneType in get_args(hint),
        is_derived=is_derived, **more,
    )  # fmt: skip


def _describe_launch(record: Any) -> tuple[Column, ...]:  # noqa: ANN401 - a record's class
    return (
        _column(record, "key", hint=str),
        _column(record, "launch_key", "launch.key", str),
        _column(record, "measurement"),
        _column(record, "kernel_digest", "launch.kernel.digest"),
        _column(record, "kernel", "launch.kernel.name", label="kernel"),
        _column(record, "application", "launch.kernel.application", label="application"),
        _column(record, "suite", "launch.kernel.suite", label="suite"),
        _column(record, "device_id", "launch.device.id"),
        _column(record, "device", "launch.device.name", label="device"),
        _column(record, "platform", "launch.device.platform"),
        _column(record, "driver", "launch.device.driver", label="driver"),
        _column(record, "ndrange", "launch.ndrange"),
        _column(record, "work_groups", "launch.work_group_count", int | None),
        _column(record, "arguments_digest", "launch.arguments_digest"),
        _column(record, "parameters", "launch.parameters"),
    )


OBSERVATION_COLUMNS: Final = (
    *_describe_launch(Observation),
    _column(Observation, "seconds", "runs.median_s", label="seconds"),
    _column(Observation, "durations_s", "runs.durations_s"),
    _column(Observation, "started_s", "runs.started_s", default="[]"),
    _column(Observation, "noise", "runs.noise", label="noise"),
    _column(Observation, "run_count", "runs.run_count", label="runs"),
    _column(Observation, "schema_id", hint=str | None),
    _column(Observation, "features", hint=bytes | None),
    _column(Observation, "linear_s", hint=float | None),
    _column(Observation, "sampling_s", hint=float | None),
    _column(Observation, "samples"),
    _column(Observation, "origin"),
    _column(Observation, "source"),
    _column(Observation, "flags"),
    _column(Observation, "machine_state"),
    _column(Observation, "versions"),
    _column(Observation, "measured_at_us", "measured_at"),
)
"""Of an observation. Features, their schema, and what is searched of the first samples are written
and read beside the others."""
FAILURE_COLUMNS: Final = (
    *_describe_launch(FailureRecord),
    _column(FailureRecord, "kind"),
    _column(FailureRecord, "message"),
    _column(FailureRecord, "failed_at_us", "failed_at"),
)
_BESIDE = frozenset({"schema_id", "features", "linear_s", "sampling_s"})


def record_to_row(one: Observation | FailureRecord, columns: Sequence[Column]) -> dict[str, Any]:
    return {column.name: column.write(one) for column in columns if column.name not in _BESIDE}


def observation_to_row(one: Observation) -> dict[str, Any]:
    first = one.samples[0] if one.samples else None
    vector = one.features
    return record_to_row(one, OBSERVATION_COLUMNS) | {
        "schema_id": None if vector is None else vector.schema.id,
        # In the order of the schema, NaN where one is absent.
        "features": None if vector is None else vector.align().astype(FEATURE_TYPE).tobytes(),
        "linear_s": None if first is None else first.linear_s,
        "sampling_s": None if first is None else first.sampling_s,
    }


def row_to_observation(row: Row, schemas: Mapping[str, FeatureSchema]) -> Observation:
    """Read an observation of what the database holds, or of a file's plain values."""
    vector = None
    if row["features"] is not None:
        if (schema := schemas.get(row["schema_id"])) is None:
            raise ValueError(f"its feature schema {row['schema_id']} is not in the store")
        values = np.frombuffer(row["features"], FEATURE_TYPE)
        if len(values) != len(schema.names):
            raise ValueError(f"it has {len(values)} features, its schema {len(schema.names)}")
        present = zip(schema.names, values.tolist(), strict=True)
        vector = make_vector({name: one for name, one in present if not math.isnan(one)}, schema)
    return make_observation(_read(row, OBSERVATION_COLUMNS), vector)


def make_observation(values: Row, features: FeatureVector | None) -> Observation:
    """Make an observation of values by columns; those left out are as the records have them."""
    made: Observation = _build(Observation, OBSERVATION_COLUMNS, values, features=features)
    return made


def row_to_failure(row: Row) -> FailureRecord:
    made: FailureRecord = _build(FailureRecord, FAILURE_COLUMNS, _read(row, FAILURE_COLUMNS))
    return made


def _read(row: Row, columns: Sequence[Column]) -> dict[str, Any]:
    return {one.name: one.read(row[one.name]) for one in columns if not one.is_derived}


def _build(record: Any, columns: Sequence[Column], values: Row, **more: Any) -> Any:  # noqa: ANN401
    """Make a record and those that it holds, the inner ones first."""
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for column in columns:
        if column.name in values:
            outer, _, field = column.path.rpartition(".")
            parts[outer][field] = values[column.name]
    for inner in sorted(filter(None, parts), key=lambda path: -path.count(".")):
        outer, _, field = inner.rpartition(".")
        parts[outer][field] = find_hint(record, inner)(**parts[inner])
    return record(**parts[""], **more)


HEAD: Final = "0005"
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
FAILURES = _make_table(
    "failures", FAILURE_COLUMNS, ("launch_key", "kernel_digest", "kernel", "device_id")
)
FEATURE_SCHEMAS = _make_table(
    "feature_schemas",
    (
        _column(None, "id", hint=str), _column(None, "version", hint=int),
        _column(None, "names", hint=str),
    ),
    (),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions on observations; an empty one holds for all, several hold together."""

    keys: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    kernel_digests: tuple[str, ...] = ()
    launch_keys: tuple[str, ...] = ()
    device_ids: tuple[str, ...] = ()
    arguments_digests: tuple[str, ...] = ()
    ndranges: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Ids of devices or their beginnings."""
    origins: tuple[Origin, ...] = ()
    with_flags: frozenset[ObservationFlag] = frozenset()
    without_flags: frozenset[ObservationFlag] = frozenset()
    least_seconds: float = 0.0
    most_seconds: float = math.inf
    """Kernels that take at least so long, and at most."""
    measured_from: datetime | None = None
    measured_before: datetime | None = None
    """Measured then or later, and before; rows without a time are left out."""
    least_work_groups: int = 0
    """Launches with at least so many work-groups; rows without a known number are left out."""


EVERYTHING = Selection()
SOUND = Selection(without_flags=frozenset({
    ObservationFlag.CONTAMINATED, ObservationFlag.OUTLIER, ObservationFlag.FIRST_LAUNCH,
    ObservationFlag.DOUBTED,
}))  # fmt: skip
"""Rows without any flag: what models learn from."""


# Conditions of several values, each on the column of its name.
_ONE_OF = tuple(
    one.name for one in fields(Selection) if one.default == () and one.name != "devices"
)


def list_conditions(wanted: Selection, table: sa.FromClause) -> list[sa.ColumnElement[bool]]:
    """Return what a query must hold; conditions on columns that a table lacks are left out."""
    columns = table.c
    found: list[sa.ColumnElement[bool]] = [
        columns[name].in_([*map(str, getattr(wanted, f"{name}s"))])
        for name in (one.removesuffix("s") for one in _ONE_OF)
        if getattr(wanted, f"{name}s") and name in columns
    ]
    if wanted.devices:
        begins = [sa.func.substr(columns.device_id, 1, len(x)) == x for x in wanted.devices]
        found.append(sa.or_(*begins))
    if "flags" in columns:
        found += [~columns.flags.contains(f",{one},") for one in sorted(wanted.without_flags)]
        if wanted.with_flags:
            has = (columns.flags.contains(f",{one},") for one in sorted(wanted.with_flags))
            found.append(sa.or_(*has))
    limits: tuple[tuple[str, Callable[[Any, Any], Any], float | None], ...] = (
        ("work_groups", operator.ge, wanted.least_work_groups or None),
        ("seconds", operator.ge, wanted.least_seconds or None),
        ("seconds", operator.le, wanted.most_seconds if wanted.most_seconds < math.inf else None),
        ("measured_at_us", operator.ge, dump_time(wanted.measured_from)),
        ("measured_at_us", operator.lt, dump_time(wanted.measured_before)),
    )
    for name, compare, limit in limits:
        if limit is not None and name in columns:
            found.append(compare(columns[name], limit))
    return found
