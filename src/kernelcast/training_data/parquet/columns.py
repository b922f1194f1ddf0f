"""Columns of a file of observations: what the store keeps as JSON texts, as lists and structs.

pandas, and any other reader, then sees sizes, times and sample sets, and no text to take apart.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from kernelcast.training_data.store import plain
from kernelcast.training_data.store.tables import OBSERVATIONS

_SIZES = pa.list_(pa.int64())
_LAUNCH = {
    "window": pa.int64(), "start": _SIZES, "shape": _SIZES, "duration_s": pa.float64(),
    "clock_s": pa.float64(), "weight": pa.float64(),
}  # fmt: skip
_SAMPLES = {
    "multiple": pa.int64(), "window_set": pa.int64(), "launches": pa.list_(pa.struct(_LAUNCH)),
    "launch_overhead_s": pa.float64(), "is_even": pa.bool_(), "linear_s": pa.float64(),
    "overhead_s": pa.float64(), "at_s": pa.float64(),
}  # fmt: skip
_STATE = pa.struct({
    "load": pa.float64(), "governor": pa.string(), "temperature_celsius": pa.float64(),
    "clock_hz": pa.float64(), "others_busy": pa.float64(), "stolen": pa.float64(),
})  # fmt: skip
_NDRANGE = ("global_size", "local_size", "global_offset")
_PLAIN_TYPES: Mapping[type[object], pa.DataType] = {
    sa.Text: pa.string(),
    sa.Double: pa.float64(),
    sa.BigInteger: pa.int64(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nested:
    """A column of another type than the store's text, and the way there and back."""

    type: pa.DataType
    load: Callable[[str], Any]
    dump: Callable[[Any], str]


def _load_samples(text: str) -> list[dict[str, Any]]:
    return [
        {
            **one,
            "launches": [
                dict(zip(_LAUNCH, [*_drop_truth(launch), 1.0][: len(_LAUNCH)], strict=True))
                for launch in one["launches"]
            ],
        }
        for one in json.loads(text)
    ]


def _drop_truth(launch: list[Any]) -> list[Any]:
    """Leave out what rows of older samplers had in the place of a time by the clock."""
    return [None if isinstance(one, bool) else one for one in launch]


def _dump_samples(samples: list[dict[str, Any]]) -> str:
    return plain.dump([
        {
            **{name: value for name, value in one.items() if value is not None},
            "launches": [
                [launch.get(name) for name in _LAUNCH] for launch in one["launches"]
            ],
        }
        for one in samples
    ])  # fmt: skip


def _dump_known(state: dict[str, Any]) -> str:
    return plain.dump({name: value for name, value in state.items() if value is not None})


def _dump_flags(flags: list[str]) -> str:
    return f",{','.join(flags)}," if flags else ""


_NESTED = {
    "durations_s": _Nested(type=pa.list_(pa.float64()), load=json.loads, dump=plain.dump),
    "started_s": _Nested(type=pa.list_(pa.float64()), load=json.loads, dump=plain.dump),
    "samples": _Nested(type=pa.list_(pa.struct(_SAMPLES)), load=_load_samples, dump=_dump_samples),
    "flags": _Nested(
        type=pa.list_(pa.string()), load=lambda text: text.split(",")[1:-1], dump=_dump_flags
    ),
    "machine_state": _Nested(type=_STATE, load=json.loads, dump=_dump_known),
    "versions": _Nested(
        type=pa.map_(pa.string(), pa.string()),
        load=lambda text: [*json.loads(text).items()],
        dump=lambda pairs: plain.dump(dict(pairs)),
    ),
}


def list_fields(version: int) -> list[pa.Field]:
    """Give the columns beside the features; older versions as `format` tells."""
    fields = []
    for one in OBSERVATIONS.columns:
        if one.name == "features" or (version == 1 and one.name == "started_s"):
            continue
        kind = next(found for wanted, found in _PLAIN_TYPES.items() if isinstance(one.type, wanted))
        if one.name == "measured_at_us":
            name = one.name if version == 1 else "measured_at"
            fields.append(pa.field(name, pa.timestamp("us", tz="UTC")))
        elif version > 1 and one.name == "ndrange":
            fields += [pa.field(name, _SIZES) for name in _NDRANGE]
        elif version > 1 and one.name in _NESTED:
            fields.append(pa.field(one.name, _NESTED[one.name].type, nullable=False))
        else:
            fields.append(pa.field(one.name, kind, nullable=bool(one.nullable)))
    return fields


def make_arrays(columns: Mapping[str, Any], fields: list[pa.Field]) -> list[pa.Array]:
    """Make a file's columns of the store's, as the newest version has them."""
    ranges = [json.loads(one) if one else (None,) * len(_NDRANGE) for one in columns["ndrange"]]
    known = {
        **columns,
        **dict(zip(_NDRANGE, zip(*ranges, strict=True), strict=True)),
        "measured_at": columns["measured_at_us"],
        **{name: map(one.load, columns[name]) for name, one in _NESTED.items()},
    }
    return [pa.array(list(known[one.name]), type=one.type) for one in fields]


def read_rows(batch: pa.RecordBatch, version: int) -> list[dict[str, Any]]:
    """Give a batch's rows as the store has them, without features."""
    moment = "measured_at_us" if version == 1 else "measured_at"
    names = [one.name for one in list_fields(version)]
    columns = [batch[name].cast(pa.int64()) if name == moment else batch[name] for name in names]
    rows = [
        dict(zip(names, values, strict=True))
        for values in zip(*(one.to_pylist() for one in columns), strict=True)
    ]
    for row in rows:
        if version == 1:
            row["started_s"] = "[]"
            continue
        sizes = [row.pop(name) for name in _NDRANGE]
        row["ndrange"] = None if sizes[0] is None else plain.dump(sizes)
        row["measured_at_us"] = row.pop("measured_at")
        row |= {name: one.dump(row[name]) for name, one in _NESTED.items()}
    return rows
