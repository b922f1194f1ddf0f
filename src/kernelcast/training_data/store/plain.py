"""Parts of observations as JSON texts and blobs, and back."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.feature_vector import FeatureSchema, FeatureVector, make_vector
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.observed_times import MachineState, SampleSet
from kernelcast.records.samples import TimedLaunch

FEATURE_TYPE = np.dtype("<f8")
"""Type of stored features, on every machine."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# `json.dumps` would make one for each text, which takes as long as a short text itself.
_WRITER = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False)


_UNKNOWN_STATE = MachineState()


def dump(content: object) -> str:
    """Write JSON in its shortest form; equal contents give equal texts."""
    return _WRITER.encode(content)


def dump_texts(texts: Mapping[str, str]) -> str:
    """Write a mapping of texts; the same ones come with every row."""
    return _dump_pairs(tuple(texts.items()))


@lru_cache(maxsize=256)
def _dump_pairs(pairs: tuple[tuple[str, str], ...]) -> str:
    return dump(dict(pairs))


def dump_times(seconds: tuple[float, ...]) -> str:
    """Write times; most rows have one, which needs no encoder."""
    return f"[{float(seconds[0])!r}]" if len(seconds) == 1 else dump(seconds)


@lru_cache(maxsize=4096)  # programs repeat their launches
def dump_ndrange(ndrange: NDRange | None) -> str | None:
    """Write global size, local size and offset."""
    if ndrange is None:
        return None
    return dump([ndrange.global_size, ndrange.local_size, ndrange.global_offset])


def load_ndrange(text: str | None) -> NDRange | None:
    """Read what `dump_ndrange` wrote."""
    if text is None:
        return None
    global_size, local_size, offset = json.loads(text)
    return NDRange(
        global_size=tuple(global_size),
        local_size=None if local_size is None else tuple(local_size),
        global_offset=tuple(offset),
    )


def dump_samples(samples: tuple[SampleSet, ...]) -> str:
    """Write sample sets.

    A launch is window, start, shape, seconds, seconds by the clock or null (before sampler 4 a
    truth value), and its weight if that is not 1.
    """
    if not samples:
        return "[]"
    return dump([
        {
            "multiple": one.multiple,
            "window_set": one.window_set,
            "launches": [
                [
                    x.window, x.box.start, x.box.shape, x.duration_s, x.clock_s,
                    *([] if x.weight == 1 else [x.weight]),
                ]
                for x in one.launches
            ],
            "launch_overhead_s": one.launch_overhead_s,
            "is_even": one.is_even,
            "linear_s": one.linear_s,
            "overhead_s": one.overhead_s,
            **({} if one.at_s is None else {"at_s": one.at_s}),
        }
        for one in samples
    ])  # fmt: skip


def load_samples(text: str) -> tuple[SampleSet, ...]:
    """Read what `dump_samples` wrote."""
    return tuple(
        SampleSet(**{**one, "launches": tuple(_load_launch(x) for x in one["launches"])})
        for one in json.loads(text)
    )


@lru_cache(maxsize=256)  # most observations of a batch have the same, often an empty one
def dump_state(state: MachineState) -> str:
    """Write what is known of the machine's state."""
    if state == _UNKNOWN_STATE:
        return "{}"
    return dump({name: value for name, value in asdict(state).items() if value is not None})


def load_state(text: str) -> MachineState:
    """Read what `dump_state` wrote."""
    return MachineState(**json.loads(text))


def dump_flags(flags: frozenset[ObservationFlag]) -> str:
    """Write flags in order, each between commas, so that a text search finds whole flags only."""
    return f",{','.join(sorted(flags))}," if flags else ""


def load_flags(text: str) -> frozenset[ObservationFlag]:
    """Read what `dump_flags` wrote."""
    return frozenset(ObservationFlag(one) for one in text.split(",") if one)


def dump_features(vector: FeatureVector) -> bytes:
    """Write a vector's values in the order of its schema, NaN where one is absent."""
    return vector.align().astype(FEATURE_TYPE).tobytes()


def load_features(blob: bytes, schema: FeatureSchema) -> FeatureVector:
    """Read what `dump_features` wrote."""
    values: npt.NDArray[np.float64] = np.frombuffer(blob, dtype=FEATURE_TYPE)
    present = zip(schema.names, values.tolist(), strict=True)
    return make_vector({name: one for name, one in present if not math.isnan(one)}, schema)


def dump_time(moment: datetime | None) -> int | None:
    """Write a time as microseconds since 1970, UTC."""
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def load_time(microseconds: int | None) -> datetime | None:
    """Read what `dump_time` wrote."""
    return None if microseconds is None else _EPOCH + microseconds * _MICROSECOND


def load_mapping(text: str) -> Mapping[str, Any]:
    """Read a JSON object."""
    content = json.loads(text)
    if not isinstance(content, dict):
        msg = f"expected a JSON object, found {text[:40]!r}"
        raise ValueError(msg)
    return content


def _load_launch(content: list[Any]) -> TimedLaunch:
    window, start, shape, duration_s, clock_s, *weight = content
    return TimedLaunch(
        box=GroupBox(start=tuple(start), shape=tuple(shape)),
        window=window,
        duration_s=duration_s,
        clock_s=None if isinstance(clock_s, bool) else clock_s,
        weight=weight[0] if weight else 1.0,
    )
