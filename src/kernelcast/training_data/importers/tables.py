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
from kernelcast.records.feature_vector import FeatureSchema, check_name, make_vector
from kernelcast.records.launch_identity import (
    DeviceIdentity,
    KernelIdentity,
    LaunchIdentity,
    digest_text,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, Origin
from kernelcast.records.observed_times import RunTimes
from kernelcast.training_data.importers.foreign import (
    GRID_FEATURES,
    ImportFileError,
    describe_grid,
    make_slug,
    number_repeats,
    read_rows,
)

CSV_ENDING = ".csv"
REQUIRED = ("kernel", "device", "seconds")
_TEXTS = ("application", "suite", "driver")
_NUMBERS = ("noise", "runs")
_SIZES = ("global_size", "local_size")
_KNOWN = frozenset({*REQUIRED, *_TEXTS, *_NUMBERS, *_SIZES})


def read_table(path: Path) -> Iterator[Observation]:
    """Read observations out of a table, see the module.

    Raises
    ------
    ImportFileError
        If it is no such table; names the row and the column.
    """
    rows = list(_read_csv(path) if path.suffix == CSV_ENDING else read_rows(path))
    columns = [*rows[0]] if rows else []
    missing = [one for one in REQUIRED if one not in columns]
    if missing:
        msg = (
            f"{path}: a table of measurements needs the columns {', '.join(REQUIRED)}; "
            f"{', '.join(missing) if columns else 'all'} is missing"
        )
        raise ImportFileError(msg)
    own = [name for name in columns if name not in _KNOWN]
    features = {name: name for name in own if _is_feature(name)}
    sizes = {
        name: f"static.size_{make_slug(name).replace('-', '_')}_count"
        for name in own
        if name not in features and all(_is_number(row[name]) for row in rows)
    }
    schema = FeatureSchema(
        names=tuple(dict.fromkeys((*GRID_FEATURES, *features.values(), *sizes.values()))), version=1
    )
    others = [name for name in own if name not in features]

    def make() -> Iterator[Observation]:
        for number, row in enumerate(rows, start=1):
            try:
                yield _make(row, features | sizes, others, schema, str(path))
            except (InputError, ValueError, TypeError) as error:
                msg = f"{path}: row {number}: {error}"
                raise ImportFileError(msg) from error

    return number_repeats(make())


def _make(
    row: Mapping[str, Any], features: Mapping[str, str], others: Sequence[str],
    schema: FeatureSchema, where: str,
) -> Observation:  # fmt: skip
    ndrange = _read_ndrange(row)
    values = {} if ndrange is None else describe_grid(ndrange)
    values |= {
        name: float(row[column])
        for column, name in features.items()
        if row[column] not in {None, ""} and math.isfinite(float(row[column]))
    }
    texts = {name: str(row.get(name) or "") for name in _TEXTS}
    parameters = {name: _plain(row[name]) for name in others if row[name] not in {None, ""}}
    kernel, device = str(row["kernel"]), str(row["device"])
    noise, runs = row.get("noise"), row.get("runs")
    return Observation(
        launch=LaunchIdentity(
            kernel=KernelIdentity(
                name=kernel,
                digest=digest_text("table", texts["suite"], texts["application"], kernel),
                application=texts["application"],
                suite=texts["suite"],
            ),
            device=DeviceIdentity(id=make_slug(device), name=device, driver=texts["driver"]),
            ndrange=ndrange,
            arguments_digest=digest_text(*(f"{k}={v}" for k, v in sorted(parameters.items()))),
            parameters=parameters,
        ),
        runs=RunTimes(
            median_s=float(row["seconds"]),
            noise=None if noise in {None, ""} else float(noise),
            run_count=1 if runs in {None, ""} else int(runs),
        ),
        features=make_vector(values, schema),
        origin=Origin.IMPORTED,
        source=where,
    )


def _read_ndrange(row: Mapping[str, Any]) -> NDRange | None:
    sizes = [_read_size(row.get(name)) for name in _SIZES]
    return None if not sizes[0] else NDRange(global_size=sizes[0], local_size=sizes[1] or None)


def _read_size(value: object) -> tuple[int, ...]:
    if value in {None, ""}:
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


def _is_number(value: object) -> bool:
    try:
        return value in {None, ""} or math.isfinite(float(value))  # type: ignore[arg-type]  # refused below
    except (TypeError, ValueError):
        return False


def _plain(value: Any) -> int | float | str:  # noqa: ANN401 - a cell
    if not _is_number(value):
        return str(value)
    number = float(value)
    return int(number) if number.is_integer() else number
