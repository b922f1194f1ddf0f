"""What models see of a launch: named numbers, the groups they come in, and their schema."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError

UNITS = ("count", "bytes", "s", "ratio", "flag")
"""What a feature's name may end in; a ratio has no unit, a flag is 0 or 1."""
REFERENCES = (
    "work_item", "work_group", "warp", "compute_unit", "request", "operation", "byte", "s",
)  # fmt: skip
"""What a feature may be counted per, as in `bytes_per_work_item`."""


class FeatureGroup(StrEnum):
    """Where a feature comes from; the part of its name before the dot."""

    STATIC = "static"
    COMPILER = "compiler"
    """What compiler and driver say of the kernel on one device."""
    SAMPLED = "sampled"
    """Timed launches of a few work-groups on one device."""
    COUNTERS = "counters"
    """Software counters: measured by an instrumented run, or derived from the source."""
    ANALYTIC = "analytic"


_NAME = re.compile(
    rf"(?P<group>{'|'.join(FeatureGroup)})\.[a-z][a-z0-9_]*?"
    rf"(_({'|'.join(UNITS)})|_per_({'|'.join(REFERENCES)}))"
)


def check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"feature {name!r}: expected group.name_unit in small letters; groups are "
            f"{', '.join(FeatureGroup)}; units are {', '.join(UNITS)}, or per_X with X one of "
            f"{', '.join(REFERENCES)}"
        )


def group_of(name: str) -> FeatureGroup:
    return FeatureGroup(name.partition(".")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSchema:
    """Every feature that a vector could have, in order, and the version of their meaning."""

    names: tuple[str, ...]
    version: int
    """Grows when a feature keeps its name and changes its meaning."""

    def __post_init__(self) -> None:
        for name in self.names:
            check_name(name)
        twice = sorted(name for name, times in Counter(self.names).items() if times > 1)
        if twice:
            raise InputError(f"schema: {', '.join(twice)} given twice; name each feature once")
        if self.version < 1:
            raise InputError(f"schema: version {self.version}; give a number of at least 1")

    @property
    def id(self) -> str:
        """Version and hash of the names: equal for equal schemas, and for no others."""
        text = "\n".join((str(self.version), *self.names))
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"v{self.version}-{digest}"

    def select(self, groups: Collection[str]) -> "FeatureSchema":
        if unknown := sorted({*groups}.difference(FeatureGroup)):
            names = ", ".join(FeatureGroup)
            raise InputError(f"feature groups {', '.join(unknown)} unknown; choose of {names}")
        kept = tuple(name for name in self.names if group_of(name) in groups)
        return FeatureSchema(names=kept, version=self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureVector:
    """Numbers of one launch; a feature that is not known is not in the vector."""

    values: Mapping[str, float]
    """By their names, in the order of the schema."""
    schema: FeatureSchema

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            if not math.isfinite(value):
                msg = f"vector: {name} is {value}; leave a feature out that has no finite value"
                raise InputError(msg)
        if strange := sorted({*self.values}.difference(self.schema.names)):
            raise InputError(
                f"vector: {strange[0]} is not in schema {self.schema.id}; take names of one schema"
            )

    @property
    def absent(self) -> tuple[str, ...]:
        return tuple(name for name in self.schema.names if name not in self.values)

    def as_dict(self) -> dict[str, float]:
        return dict(self.values)

    def select(self, groups: Collection[str]) -> "FeatureVector":
        return make_vector(self.values, self.schema.select(groups))

    def align(self) -> npt.NDArray[np.float64]:
        """Put values in the order of the schema, NaN where one is absent."""
        values = [self.values.get(name, math.nan) for name in self.schema.names]
        return np.array(values, dtype=np.float64)


def make_vector(values: Mapping[str, float], schema: FeatureSchema) -> FeatureVector:
    """Make a vector of those values that the schema names."""
    kept = {name: float(values[name]) for name in schema.names if name in values}
    return FeatureVector(values=kept, schema=schema)
