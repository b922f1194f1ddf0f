"""Tables of other people's measurements as observations: public data sets, and one's own.

``data_sets.yaml`` says of each public set which column is what. A table of one's own is CSV or
Parquet with a row per launch and at least the columns ``kernel``, ``device`` and ``seconds``; what
else is there:

- ``application``, ``suite``, ``driver``: texts; an application is a family of kernels.
- ``noise``: half the 10-90 % spread of repeated runs over their median; ``runs``: how many.
- ``global_size``, ``local_size``: such as ``1024 x 512``.
- ``problem``: a problem file, relative to the table, of which the other columns are parameters;
  training then reads features out of its kernel's source.
- Columns that are called as features are, such as ``counters.flops_per_work_item``: features.
- All others: parameters of the launch; numbers among them are features too, sizes that a model
  may learn from.
"""

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema, check_name, make_vector
from kernelcast.records.launch_identity import digest_text
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, Origin
from kernelcast.records.observed_times import summarise_runs
from kernelcast.training_data.store.connecting import refuse_database
from kernelcast.training_data.store.schema import OBSERVATION_COLUMNS, make_observation

CSV_ENDING = ".csv"
REQUIRED = ("kernel", "device", "seconds")
GRID_FEATURES = (
    "static.work_items_count", "static.work_groups_count", "static.work_items_per_work_group",
    "static.dimensions_count",
)  # fmt: skip
_GRID = tuple(f"{kind}_{axis}" for kind in ("grid", "block") for axis in "xyz")
_OF_RUNS = ("driver", "durations_s", "noise", "run_count")
# What nvprof gives as a share, a mean or a percentage; everything else counts events.
_RATIOS = ("efficiency", "utilization", "hit_rate", "overhead", "ipc", "per_request", "per_warp",
           "occupancy", "activity", "per_active_cycle")  # fmt: skip
_SIZES = ("global_size", "local_size")
_COLUMNS = {one.name: one for one in OBSERVATION_COLUMNS}
_EMPTY = (None, "")
# How pandas writes the numbers of rows, which tell nothing of a launch.
_UNNAMED = re.compile(r"|__index_level_\d+__|Unnamed: \d+")
Row = dict[str, Any]


class ImportFileError(InputError):
    """Is raised when a file of other people's measurements cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A public set of measurements, as ``data_sets.yaml`` describes it."""

    name: str
    licence: str
    """Under which it may be used, with the names to give."""
    suite: str = ""
    """Of its kernels, where that is not its name."""
    marks: frozenset[str] = frozenset()
    columns: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    has_grid: bool = False
    counter_prefix: str = ""
    sums: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only: Mapping[str, int] = field(default_factory=dict)
    machines: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    def read(self, path: Path) -> Iterator[Observation]:
        """Read one observation per launch; repeated measurements of a launch are numbered."""
        counters = {}
        for column in sorted(read_column_names(path)) if self.counter_prefix else ():
            if column.startswith(self.counter_prefix):
                counter = column.removeprefix(self.counter_prefix)
                unit = "ratio" if any(word in counter for word in _RATIOS) else "count"
                counters[column] = f"counters.nvprof_{counter}_{unit}"
        known = replace(self, features={**self.features, **counters})
        wanted = dict.fromkeys((
            *self.columns.values(), *self.parameters.values(), *known.features, *self.only,
            *self.repeated, *(part for parts in self.sums.values() for part in parts),
            *(_GRID if self.has_grid else ()),
        ))  # fmt: skip
        made = {*self.sums, *self.machines, *(_OF_RUNS if self.repeated else ())}
        rows = self._prepare(read_rows(path, [one for one in wanted if one not in made]), path)
        suite = self.suite or self.name
        names = {"suite": suite, "source": f"{suite} ({self.licence})"}
        grid = GRID_FEATURES if self.has_grid else ()
        schema = FeatureSchema(names=(*grid, *known.features.values()), version=1)
        return number_repeats(known._make(row, names, schema) for row in rows)

    def _prepare(self, rows: Iterator[Row], path: Path) -> Iterator[Row]:
        """Leave rows out, and make what follows from columns or from the table of devices."""
        machines = _read_machines(path.with_name("devices.csv"), self.machines)
        groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
        for row in rows:
            if any(row[name] != value for name, value in self.only.items()):
                continue
            row |= machines.get(row["device"], {})
            row |= {name: sum(row[one] for one in parts) for name, parts in self.sums.items()}
            if self.repeated:
                groups[tuple(row[one] for one in self.repeated)].append(row)
            else:
                yield row
        for some in groups.values():
            times = summarise_runs([row["time_s"] for row in some])
            known = {one: [row[one] for row in some if row[one] is not None]
                     for one in self.features}  # fmt: skip
            yield some[0] | {
                **{one: fmean(told) if told else None for one, told in known.items()},
                "driver": f"{some[0]['compiler']} {some[0]['opt_level']}",
                "time_s": times.median_s, "durations_s": times.durations_s, "noise": times.noise,
                "run_count": times.run_count,
            }  # fmt: skip

    def _make(self, row: Row, names: Row, schema: FeatureSchema) -> Observation:
        values = dict(names)
        for name, column in self.columns.items():
            if row[column] not in _EMPTY:
                try:
                    values[name] = _COLUMNS[name].read(row[column])
                except (ValueError, TypeError) as error:
                    raise InputError(f"column {column}: {error}") from error
        told = {
            name: float(row[column]) * self.factors.get(column, 1.0)
            for column, name in self.features.items()
            if row.get(column) not in _EMPTY
        }
        if self.has_grid:
            sizes = [row[one] for one in _GRID]
            values["ndrange"] = make_grid(sizes[:3], sizes[3:])
        elif global_size := _read_size(row.get("global_size")):
            local_size = _read_size(row.get("local_size")) or None
            values["ndrange"] = NDRange(global_size=global_size, local_size=local_size)
        if "ndrange" in values:
            told = describe_grid(values["ndrange"]) | told
        parameters = {}
        for name, column in sorted(self.parameters.items()):
            if row[column] not in _EMPTY:
                number = float(row[column]) if _is_number(row[column]) else math.nan
                whole = int(number) if number.is_integer() else number
                parameters[name] = str(row[column]) if math.isnan(number) else whole
        values["parameters"] = parameters
        return make_foreign(values, told, schema, is_own=not self.licence)


class _OwnTable(DataSet):
    def read(self, path: Path) -> Iterator[Observation]:
        """Read observations out of a table, see the module; an error names row and column."""
        rows, columns = _read_own_rows(path)
        missing = [one for one in REQUIRED if one not in columns]
        if missing:
            raise ImportFileError(
                f"{path}: has the columns {', '.join(columns) or '(none)'}; your own table (CSV "
                f"with commas, or Parquet) needs {', '.join(REQUIRED)}: add {', '.join(missing)}"
            )
        if not rows:
            raise ImportFileError(f"{path}: has no rows; give one per measured launch")
        labels = {one.label: one.name for one in OBSERVATION_COLUMNS if one.label}
        features, parameters = {}, {}
        for name in (one for one in columns if one not in {*labels, *_SIZES}):
            if _UNNAMED.fullmatch(name):
                continue
            try:
                check_name(name)
                features[name] = name
            except InputError:
                parameters[name] = name
        for name in parameters:
            if all(_is_number(row[name]) for row in rows):
                features[name] = f"static.size_{make_slug(name).replace('-', '_')}_count"
        known = replace(
            self, features=features, parameters=parameters,
            columns={labels[one]: one for one in columns if one in labels},
        )  # fmt: skip
        names = tuple(dict.fromkeys((*GRID_FEATURES, *features.values())))
        schema = FeatureSchema(names=names, version=1)

        def make() -> Iterator[Observation]:
            for number, row in enumerate(rows, start=1):
                try:
                    if None in row:
                        raise InputError("has more cells than the header has columns")
                    if empty := [one for one in REQUIRED if row[one] in _EMPTY]:
                        msg = f"{', '.join(empty)}: no value; fill the cell, or remove the row"
                        raise InputError(msg)
                    yield known._make(row, {"source": str(path)}, schema)
                except (InputError, ValueError, TypeError) as error:
                    raise ImportFileError(f"{path}: row {number}: {error}") from error

        return number_repeats(make())


def find_data_set(path: Path) -> DataSet:
    is_csv = path.suffix == CSV_ENDING
    columns = frozenset() if is_csv else read_column_names(path)
    found = next((one for one in list_data_sets() if one.marks <= columns), None)
    if found is not None:
        return found
    if is_csv or columns.issuperset(REQUIRED):
        return _OwnTable(name="table", licence="")
    known = ", ".join(one.name for one in list_data_sets())
    kind = "a Parquet file of another kind" if columns else "no Parquet file"
    raise ImportFileError(
        f"{path}: is {kind}; expected a file of `kernelcast data export`, a data set with an "
        f"importer ({known}), a table with the columns {', '.join(REQUIRED)}, or JSON of an "
        "auto-tuner in the T4 format"
    )


@cache
def list_data_sets() -> tuple[DataSet, ...]:
    text = Path(__file__).with_name("data_sets.yaml").read_text(encoding="utf-8")
    found = []
    for one in yaml.safe_load(text):
        del one["title"]  # is for readers of the file
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in one.items()
        }
        found.append(DataSet(**values | {"marks": frozenset(one["marks"])}))
    return tuple(found)


def make_foreign(
    values: Mapping[str, Any], features: Mapping[str, float], schema: FeatureSchema,
    *, is_own: bool = False,
) -> Observation:  # fmt: skip
    """Make an observation of a foreign row: names are hashed, for there is no source text."""
    names = [values.get("suite", ""), values.get("application", ""), values["kernel"]]
    parameters = sorted(values["parameters"].items())
    finite = {name: one for name, one in features.items() if math.isfinite(one)}
    device_id = make_slug(values["device"])
    derived = {
        "kernel_digest": digest_text(*(["table"] if is_own else []), *names),
        "device_id": device_id if is_own else f"imported-{device_id}",
        "arguments_digest": digest_text(*(f"{name}={one}" for name, one in parameters)),
        "ndrange": None,
        "origin": Origin.IMPORTED,
    }
    return make_observation(derived | dict(values), make_vector(finite, schema))


def number_repeats(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Tell repeated measurements of one launch apart, by their order in the source."""
    seen: Counter[str] = Counter()
    for one in observations:
        repeat = seen[one.launch.key]
        seen[one.launch.key] += 1
        yield replace(one, measurement=f"repeat {repeat}") if repeat else one


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Read a Parquet file's rows, None where a value is null; all columns unless some are named."""
    import pyarrow as pa  # an extra
    import pyarrow.parquet as pq

    refuse_database(path, ImportFileError)
    try:
        with pq.ParquetFile(path) as file:
            missing = sorted({*(columns or ())} - {*file.schema_arrow.names})
            if missing:
                msg = f"{path}: has no column {', '.join(missing)}; is it the right data set?"
                raise ImportFileError(msg)
            for batch in file.iter_batches(batch_size=5000, columns=columns):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        said = " ".join(str(error).split())
        msg = f"{path}: cannot be read as Parquet ({said}); is it complete?"
        raise ImportFileError(msg) from error


def read_column_names(path: Path) -> frozenset[str]:
    """Read the names of a Parquet file's columns; none if it is no such file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    refuse_database(path, ImportFileError)
    try:
        return frozenset(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, ValueError):
        return frozenset()


def make_grid(groups: Sequence[int], local: Sequence[int]) -> NDRange:
    """Make an index space of a CUDA grid and block; trailing dimensions of one are left out."""
    dimensions = max([1, *(i + 1 for i in range(len(groups)) if max(groups[i], local[i]) > 1)])
    sizes = [int(g) * int(n) for g, n in zip(groups, local, strict=True)]
    return NDRange(
        global_size=tuple(sizes[:dimensions]), local_size=tuple(map(int, local[:dimensions]))
    )


def describe_grid(ndrange: NDRange) -> dict[str, float]:
    """Compute the features that every index space has."""
    sizes = (
        ndrange.work_item_count, ndrange.work_group_count, ndrange.work_group_size,
        ndrange.dimensions,
    )  # fmt: skip
    return dict(zip(GRID_FEATURES, sizes, strict=True))


def make_slug(text: str) -> str:
    """Make a name of small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _read_own_rows(path: Path) -> tuple[list[Row], list[str]]:
    """Read all rows of a table of one's own, and the names of its columns."""
    if path.suffix != CSV_ENDING:
        # NaN is how pandas writes an empty cell.
        rows = [
            {name: None if cell != cell else cell for name, cell in row.items()}
            for row in read_rows(path)
        ]
        return rows, [*rows[0]] if rows else sorted(read_column_names(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:  # Excel marks UTF-8
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path}: cannot be read as CSV ({error}); save it as CSV in UTF-8"
        raise ImportFileError(msg) from error
    columns = [*(reader.fieldnames or ())]
    if twice := [name for name, times in Counter(columns).items() if times > 1]:
        raise ImportFileError(f"{path}: has several columns {twice[0]!r}; name each once")
    return rows, columns


def _read_machines(table: Path, columns: Sequence[str]) -> dict[str, Row]:
    """Read figures of devices from the table beside a data set, by their names."""
    if not columns or not table.is_file():
        return {}
    try:
        with table.open(encoding="utf-8", newline="") as file:
            return {
                row["Device"]: {name: float(row[name]) for name in columns if row[name]}
                for row in csv.DictReader(file)
            }
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        msg = f"{table}: is no table of devices ({error!r}); put the original back, or remove it"
        raise ImportFileError(msg) from error


def _read_size(value: object) -> tuple[int, ...]:
    if value in _EMPTY:
        return ()
    parts = value if isinstance(value, list | tuple) else re.split("[x,]", str(value).lower())
    # As pandas writes whole numbers where another cell of the column is empty: 1024.0.
    sizes = [*map(float, parts)]
    if not all(one.is_integer() for one in sizes):
        raise InputError(f"size {value}: give whole numbers, such as 1024 x 512")
    return tuple(map(int, sizes))


def _is_number(value: Any) -> bool:  # noqa: ANN401 - a cell
    try:
        return value in _EMPTY or math.isfinite(float(value))
    except (TypeError, ValueError):
        return False
