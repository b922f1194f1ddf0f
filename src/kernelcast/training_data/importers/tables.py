"""Measurements of one's own in a plain table: CSV or Parquet, a row per launch.

Required columns: ``kernel``, ``device`` and ``seconds``. What else is there:

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema, check_name
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation
from kernelcast.training_data.importers.data_sets import (
    DATA_SETS,
    GRID_FEATURES,
    DataSet,
    ImportFileError,
    describe_grid,
    make_foreign,
    make_slug,
    number_repeats,
    read_column_names,
    read_rows,
)
from kernelcast.training_data.store.schema import OBSERVATION_COLUMNS

CSV_ENDING = ".csv"
REQUIRED = ("kernel", "device", "seconds")
_SIZES = ("global_size", "local_size")
_COLUMNS = {one.label: one for one in OBSERVATION_COLUMNS if one.label}
_EMPTY = (None, "")


class _OwnTable(DataSet):
    """A table of one's own."""

    def read(self, path: Path) -> Iterator[Observation]:
        """Read observations out of a table, see the module; an error names row and column."""
        rows = list(_read_csv(path) if path.suffix == CSV_ENDING else read_rows(path))
        columns = [*rows[0]] if rows else []
        missing = [one for one in REQUIRED if one not in columns]
        if missing:
            msg = (
                f"{path}: a table of measurements needs the columns {', '.join(REQUIRED)}; "
                f"{', '.join(missing) if columns else 'all'} is missing"
            )
            raise ImportFileError(msg)
        own = [name for name in columns if name not in {*_COLUMNS, *_SIZES}]
        features = {name: name for name in own if _is_feature(name)}
        others = [name for name in own if name not in features]
        features |= {
            name: f"static.size_{make_slug(name).replace('-', '_')}_count"
            for name in others
            if all(_is_number(row[name]) for row in rows)
        }
        names = tuple(dict.fromkeys((*GRID_FEATURES, *features.values())))
        schema = FeatureSchema(names=names, version=1)

        def make() -> Iterator[Observation]:
            for number, row in enumerate(rows, start=1):
                try:
                    yield _make_row(row, features, others, schema, str(path))
                except (InputError, ValueError, TypeError) as error:
                    msg = f"{path}: row {number}: {error}"
                    raise ImportFileError(msg) from error

        return number_repeats(make())


_TABLE = _OwnTable(
    name="table", title="measurements of one's own", licence="", marks=frozenset(REQUIRED),
    columns={}, parameters={}, features={},
)  # fmt: skip


def find_data_set(path: Path) -> DataSet:
    """Find by its columns which data set a file is, or whether it is a table of one's own."""
    is_csv = path.suffix == CSV_ENDING
    columns = frozenset() if is_csv else read_column_names(path)
    found = next((one for one in DATA_SETS if one.marks <= columns), None)
    if found is not None or is_csv or _TABLE.marks <= columns:
        return found or _TABLE
    known = ", ".join(one.name for one in DATA_SETS)
    kind = "a Parquet file of another kind" if columns else "no Parquet file"
    msg = (
        f"{path}: is {kind}; expected a file of `kernelcast data export`, a data set with an "
        f"importer ({known}), a table with the columns {', '.join(REQUIRED)}, or JSON of an "
        "auto-tuner in the T4 format"
    )
    raise ImportFileError(msg)


def _make_row(
    row: Mapping[str, Any], features: Mapping[str, str], others: Sequence[str],
    schema: FeatureSchema, where: str,
) -> Observation:  # fmt: skip
    values: dict[str, Any] = {
        column.name: column.read(row[label])
        for label, column in _COLUMNS.items()
        if row.get(label) not in _EMPTY
    }
    told = {name: float(row[one]) for one, name in features.items() if row[one] not in _EMPTY}
    sizes = [_read_size(row.get(name)) for name in _SIZES]
    if sizes[0]:
        values["ndrange"] = NDRange(global_size=sizes[0], local_size=sizes[1] or None)
        told = describe_grid(values["ndrange"]) | told
    values["parameters"] = {name: _plain(row[name]) for name in others if row[name] not in _EMPTY}
    names = [str(values.get(one, "")) for one in ("suite", "application", "kernel")]
    return make_foreign(
        {**values, "source": where}, told, schema, identity=("table", *names),
        device_id=make_slug(values["device"]),
    )  # fmt: skip


def _read_size(value: object) -> tuple[int, ...]:
    if value in _EMPTY:
        return ()
    if isinstance(value, list | tuple):
        return tuple(int(one) for one in value)
    return tuple(int(one) for one in str(value).lower().replace(",", "x").split("x"))


def _read_csv(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path}: cannot be read as CSV ({error})"
        raise ImportFileError(msg) from error


def _is_feature(name: str) -> bool:
    try:
        check_name(name)
    except InputError:
        return False
    return True


def _is_number(value: Any) -> bool:  # noqa: ANN401 - a cell
    try:
        return value in _EMPTY or math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _plain(value: Any) -> int | float | str:  # noqa: ANN401 - a cell
    if not _is_number(value):
        return str(value)
    number = float(value)
    return int(number) if number.is_integer() else number
