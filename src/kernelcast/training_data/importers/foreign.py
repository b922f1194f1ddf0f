"""What importers share: rows of other people's measurements as observations of ours."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema, make_vector
from kernelcast.records.launch_identity import (
    DeviceIdentity,
    KernelIdentity,
    LaunchIdentity,
    digest_text,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, Origin
from kernelcast.records.observed_times import RunTimes
from kernelcast.training_data.store.recognising import refuse_database

_BATCH_ROWS = 5000
Value = int | float | str


class ImportFileError(InputError):
    """Is raised when a file of other people's measurements cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A public set of measurements."""

    name: str
    """Short name; becomes the suite of its kernels."""
    title: str
    """What it is, in a sentence."""
    licence: str
    """Under which it may be used, with the names to give."""
    columns: frozenset[str]
    """Columns by which its file is recognised."""
    read: Callable[[Path], Iterator[Observation]]
    """Takes the file and gives observations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRow:
    """A measurement in the words of its source."""

    data_set: str
    licence: str
    """Where it is from."""
    application: str
    kernel: str
    device: str
    """Names."""
    runs: RunTimes
    """Times of the whole kernel."""
    schema: FeatureSchema
    """All features that the source can have."""
    features: Mapping[str, float | None]
    """By our names; what is missing, not finite or None counts as absent."""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """Sizes and choices; with the index space they tell launches of a kernel apart."""
    ndrange: NDRange | None = None
    """Index space, where the source tells it."""
    driver: str = ""
    """Driver or compiler, where the source tells it."""

    def as_observation(self) -> Observation:
        """Give the row as an observation; there is no source text to hash, so names are hashed."""
        parameters = dict(sorted(self.parameters.items()))
        return Observation(
            launch=LaunchIdentity(
                kernel=KernelIdentity(
                    name=self.kernel,
                    digest=digest_text(self.data_set, self.application, self.kernel),
                    application=self.application,
                    suite=self.data_set,
                ),
                device=DeviceIdentity(
                    id=f"imported-{make_slug(self.device)}", name=self.device, driver=self.driver
                ),
                ndrange=self.ndrange,
                arguments_digest=digest_text(*(f"{k}={v}" for k, v in parameters.items())),
                parameters=parameters,
            ),
            runs=self.runs,
            features=make_vector(keep_finite(self.features), self.schema),
            origin=Origin.IMPORTED,
            source=f"{self.data_set} ({self.licence})",
        )


def number_repeats(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Tell repeated measurements of one launch apart, by their order in the source."""
    seen: Counter[str] = Counter()
    for one in observations:
        repeat = seen[one.launch.key]
        seen[one.launch.key] += 1
        yield replace(one, measurement=f"repeat {repeat}") if repeat else one


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Give a Parquet file's rows as dictionaries, None where a value is null.

    Parameters
    ----------
    columns : sequence of str, optional
        Those wanted, all when left out.
    """
    import pyarrow as pa  # an extra
    import pyarrow.parquet as pq

    refuse_database(path, ImportFileError)
    try:
        with pq.ParquetFile(path) as file:
            missing = sorted({*(columns or ())} - {*file.schema_arrow.names})
            if missing:
                msg = f"{path}: has no column {', '.join(missing)}; is it the right data set?"
                raise ImportFileError(msg)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        said = " ".join(str(error).split())
        msg = f"{path}: cannot be read as Parquet ({said}); is it complete?"
        raise ImportFileError(msg) from error


def read_column_names(path: Path) -> frozenset[str]:
    """Give the names of a Parquet file's columns; none if it is no such file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    refuse_database(path, ImportFileError)
    try:
        return frozenset(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, ValueError):
        return frozenset()


def make_grid(groups: Sequence[int], local: Sequence[int]) -> NDRange:
    """Make an index space of a CUDA grid and block; trailing dimensions of one are left out.

    Examples
    --------
    >>> make_grid((4, 2, 1), (32, 1, 1)).global_size
    (128, 2)
    """
    dimensions = max([1, *(i + 1 for i in range(len(groups)) if max(groups[i], local[i]) > 1)])
    sizes = [int(g) * int(n) for g, n in zip(groups, local, strict=True)]
    return NDRange(
        global_size=tuple(sizes[:dimensions]), local_size=tuple(map(int, local[:dimensions]))
    )


def describe_grid(ndrange: NDRange) -> dict[str, float]:
    """Give the features that every index space has."""
    return {
        "static.work_items_count": ndrange.work_item_count,
        "static.work_groups_count": ndrange.work_group_count,
        "static.work_items_per_work_group": ndrange.work_group_size,
        "static.dimensions_count": ndrange.dimensions,
    }


GRID_FEATURES = (
    "static.work_items_count", "static.work_groups_count", "static.work_items_per_work_group",
    "static.dimensions_count",
)  # fmt: skip
"""Names that `describe_grid` gives."""


def keep_finite(values: Mapping[str, float | None]) -> dict[str, float]:
    """Leave out what is None or not finite."""
    return {
        name: float(one) for name, one in values.items() if one is not None and math.isfinite(one)
    }


def make_slug(text: str) -> str:
    """Make a name of small letters, digits and dashes.

    Examples
    --------
    >>> make_slug("NVIDIA V100-SXM2-16GB (LLNL Lassen)")
    'nvidia-v100-sxm2-16gb-llnl-lassen'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
