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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema, check_name, make_vector
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, Origin, summarise_runs
from kernelcast.records.plain import CONVERTER
from kernelcast.records.problem import digest_text
from kernelcast.training_data.store.connecting import refuse_database
from kernelcast.training_data.store.schema import OBSERVATION_COLUMNS, make_observation

if TYPE_CHECKING:  # slow to load, and one of them an extra
    import pandas as pd
    import pyarrow as pa

CSV_ENDING = ".csv"
REQUIRED = ("kernel", "device", "seconds")
GRID_FEATURES = (
    "static.work_items_count", "static.work_groups_count", "static.work_items_per_work_group",
    "static.dimensions_count",
)  # fmt: skip
_GRID = tuple(f"{kind}_{axis}" for kind in ("grid", "block") for axis in "xyz")
# What nvprof gives as a share, a mean or a percentage; everything else counts events.
_RATIOS = ("efficiency", "utilization", "hit_rate", "overhead", "ipc", "per_request", "per_warp",
           "occupancy", "activity", "per_active_cycle")  # fmt: skip
_SIZES = ("global_size", "local_size")
_COLUMNS = {one.name: one for one in OBSERVATION_COLUMNS}
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
    where: str = ""
    """What rows must meet, as `pandas.DataFrame.query` reads it."""
    derived: Mapping[str, str] = field(default_factory=dict)
    """Columns that follow from others, as `pandas.DataFrame.eval` computes them."""
    has_grid: bool = False
    counter_prefix: str = ""
    machines: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    def read(self, path: Path) -> Iterator[Observation]:
        """Read one observation per launch; repeated measurements of a launch are numbered."""
        frame = read_table(path).to_pandas()
        features = dict(self.features)
        for column in sorted(map(str, frame)):
            if self.counter_prefix and column.startswith(self.counter_prefix):
                counter = column.removeprefix(self.counter_prefix)
                unit = "ratio" if any(word in counter for word in _RATIOS) else "count"
                features[column] = f"counters.nvprof_{counter}_{unit}"
        grid = GRID_FEATURES if self.has_grid else ()
        texts = (one for one in self.columns.values() if "{" not in one)
        wanted = {
            *texts, *self.parameters.values(), *features, *self.repeated, *(_GRID if grid else ())
        }  # fmt: skip
        try:
            if self.where:
                frame = frame.query(self.where)
            if self.machines:
                machines = _read_machines(path.with_name("devices.csv"), self.machines)
                frame = frame.merge(machines, how="left", left_on="device", right_index=True)
            frame = frame.assign(**{name: frame.eval(one) for name, one in self.derived.items()})
            if self.repeated:
                # Make one row of all runs of a launch: their times, and means of their features.
                runs = frame.groupby([*self.repeated], sort=False, dropna=False)
                times = [summarise_runs(one.tolist()) for _, one in runs["time_s"]]
                first = frame.assign(**runs[[*self.features]].transform("mean"))
                frame = first.drop_duplicates([*self.repeated]).assign(
                    time_s=[one.median_s for one in times], noise=[one.noise for one in times],
                    run_count=[one.run_count for one in times],
                    durations_s=[one.durations_s for one in times],
                )  # fmt: skip
            frame = frame[sorted(wanted)]
        except (KeyError, NameError) as error:
            msg = f"{path}: lacks a column: {error}; is it the right data set?"
            raise ImportFileError(msg) from error
        suite = self.suite or self.name
        names = {"suite": suite, "source": f"{suite} ({self.licence})"}
        schema = FeatureSchema(names=(*grid, *features.values()), version=1)
        known = replace(self, features=features)
        rows = (dict(zip(frame, row, strict=True)) for row in frame.itertuples(False, None))
        return number_repeats(known._make(row, names, schema) for row in rows)

    def _make(self, row: Row, names: Row, schema: FeatureSchema) -> Observation:
        values = dict(names)
        for name, column in self.columns.items():
            value = column.format_map(row) if "{" in column else row[column]
            if not _is_empty(value):
                try:
                    values[name] = _COLUMNS[name].read(value)
                except (ValueError, TypeError) as error:
                    raise InputError(f"column {column}: {error}") from error
        told = {
            name: float(row[column])
            for column, name in self.features.items()
            if not _is_empty(row[column])
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
            if not _is_empty(row[column]):
                number = _read_number(row[column])
                parameters[name] = str(row[column]) if number is None else number
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
        for name in columns:
            if name in {*labels, *_SIZES} or _UNNAMED.fullmatch(name):
                continue
            try:
                check_name(name)
                features[name] = name
            except InputError:
                parameters[name] = name
        for name in parameters:
            if all(_is_empty(one[name]) or _read_number(one[name]) is not None for one in rows):
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
                    if empty := [one for one in REQUIRED if _is_empty(row[one])]:
                        msg = f"{', '.join(empty)}: no value; fill the cell, or remove the row"
                        raise InputError(msg)
                    yield known._make(row, {"source": str(path)}, schema)
                except (InputError, ValueError, TypeError) as error:
                    raise ImportFileError(f"{path}: row {number}: {error}") from error

        return number_repeats(make())


def find_data_set(path: Path) -> DataSet:
    columns: frozenset[str] = frozenset()
    if not (is_csv := path.suffix == CSV_ENDING):
        import pyarrow as pa
        import pyarrow.parquet as pq

        refuse_database(path, ImportFileError)
        with suppress(pa.ArrowException, OSError, ValueError):  # it is no Parquet file
            columns = frozenset(pq.read_schema(path).names)
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
    return CONVERTER.structure(yaml.safe_load(text), tuple[DataSet, ...])


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


def read_table(path: Path) -> "pa.Table":
    import pyarrow as pa  # an extra
    import pyarrow.parquet as pq

    refuse_database(path, ImportFileError)
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        said = " ".join(str(error).split())
        msg = f"{path}: cannot be read as Parquet ({said}); is it complete?"
        raise ImportFileError(msg) from error


def make_grid(groups: Sequence[int], local: Sequence[int]) -> NDRange:
    """Make an index space of a CUDA grid and block; trailing dimensions of one are left out."""
    dimensions = max([1, *(i + 1 for i in range(len(groups)) if max(groups[i], local[i]) > 1)])
    sizes = [int(g) * int(n) for g, n in zip(groups, local, strict=True)]
    return NDRange(
        global_size=tuple(sizes[:dimensions]), local_size=tuple(map(int, local[:dimensions]))
    )


def describe_grid(ndrange: NDRange) -> dict[str, float]:
    sizes = (
        ndrange.work_item_count, ndrange.work_group_count, ndrange.work_group_size,
        ndrange.dimensions,
    )  # fmt: skip
    return dict(zip(GRID_FEATURES, sizes, strict=True))


def make_slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _read_own_rows(path: Path) -> tuple[list[Row], list[str]]:
    if path.suffix != CSV_ENDING:
        table = read_table(path)
        return table.to_pylist(), table.column_names
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


def _read_machines(table: Path, columns: Sequence[str]) -> "pd.DataFrame":
    """Read figures of devices from the table beside a data set, by their names."""
    import pandas as pd  # slow to import

    if not table.is_file():
        return pd.DataFrame(columns=[*columns], dtype=float)
    try:
        return pd.read_csv(table, index_col="Device")[[*columns]].astype(float)
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{table}: is no table of devices ({error!r}); put the original back, or remove it"
        raise ImportFileError(msg) from error


def _is_empty(cell: Any) -> bool:  # noqa: ANN401 - a cell
    return cell in (None, "") or cell != cell  # NaN, as pandas has it


def _read_size(value: object) -> tuple[int, ...]:
    if _is_empty(value):
        return ()
    parts = value if isinstance(value, list | tuple) else re.split("[x,]", str(value).lower())
    # As pandas writes whole numbers where another cell of the column is empty: 1024.0.
    sizes = [*map(float, parts)]
    if not all(one.is_integer() for one in sizes):
        raise InputError(f"size {value}: give whole numbers, such as 1024 x 512")
    return tuple(map(int, sizes))


def _read_number(cell: Any) -> int | float | None:  # noqa: ANN401 - a cell
    """Read a finite number, whole ones as such; None where a cell holds none."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
