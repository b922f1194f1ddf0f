"""The commands of ``kernelcast data``."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, present, progress, show, wants_json
from kernelcast.cli.training import STORE
from kernelcast.collection.data_rows import (
    find_observations,
    import_file,
    merge_stores,
    remove_by_hand,
)
from kernelcast.launches.data_store import open_data_store
from kernelcast.launches.settings import prefix
from kernelcast.records.errors import InputError
from kernelcast.records.plain import pick
from kernelcast.reports.numbers import NOTHING
from kernelcast.reports.presenter import Part, Table
from kernelcast.training_data.importers.tuning import UNITS, find_tuning_files
from kernelcast.training_data.store import AddedRows, Selection
from kernelcast.training_data.summary import (
    GROUPS,
    FindingKind,
    check_store,
    failure_to_json,
    observation_to_json,
    summarise_store,
)

_REPLACE: Any = option.given("--replace", "Replace observations that have the same key.")
_SELECTION: Final = {
    "kernels": option.given("--kernel NAME", "Only this kernel; may be repeated."),
    "applications": option.given("--application NAME", "Only this application; may be repeated."),
    "suites": option.given("--suite NAME", "Only this suite or data set; may be repeated."),
    "devices": option.device,
    "origins": option.given("--origin", "Only observations of this origin; may be repeated."),
}
_COUNTS: Final = ("added", "replaced", "known")
_WANTED: Any = option.settings(**_SELECTION)


@click.group(short_help="Look at, check, remove and exchange observations.")
def data() -> None:
    """Look at, check and exchange observations: what models learn from.

    The store is a SQLite file in the data folder (KERNELCAST_DATA), or what --store or
    KERNELCAST_STORE name: another file, or a PostgreSQL database by URL that several machines
    share.
    """


@option.command("ls", of=data, short="List what is in the store.")
def list_rows(
    place: str | None = STORE,
    wanted: Selection = _WANTED,
    by: str = option.given(
        "--by", "Group observations by this.", type=click.Choice(GROUPS), default=GROUPS[0]
    ),
    wants_rows: bool = option.given("--rows", "List every observation with its key."),
    wants_failures: bool = option.given(
        "--failures", "List launches that could not be observed, with the reason."
    ),
) -> None:
    """List what is in the store: a line per group, per observation or per failure."""
    with open_data_store(place, must_exist=True) as store:
        if wants_failures:
            rows = [failure_to_json(one) for one in store.failures(wanted)]
            columns = ["kernel", "device_id", "global_size", "kind", "message: what went wrong"]
        elif wants_rows:
            rows = [observation_to_json(one, is_full=False) for one in store.find(wanted)]
            columns = [*_ROW_COLUMNS]
        else:
            rows = summarise_store(store, wanted, by=by)
            columns = [
                f"group: {by}", "rows", "kernels", "devices", "flagged", "shortest_s", "longest_s",
                "median_noise", "newest",
            ]  # fmt: skip
    present(rows, _tabulate(rows, columns) if rows else "nothing there that fits")


_UNITS: Final = {
    **dict.fromkeys(("rows", "kernels", "devices", "flagged", "multiple", "window_set"), "whole"),
    **dict.fromkeys(("shortest_s", "longest_s", "seconds", "linear_s", "sampling_s"), "s"),
    **dict.fromkeys(("median_noise", "noise"), "share"),
}
"""Units of the numbers in rows of JSON, by their keys."""
_ROW_COLUMNS: Final = (
    "key", "kernel", "device_id", "global_size", "local_size", "seconds: time", "noise", "origin",
    "flags",
)  # fmt: skip


def _tabulate(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """Make a table of rows as JSON has them: keys, and titles where keys do not serve."""
    pairs = [(name, title) for name, _, title in (one.partition(": ") for one in columns)]
    return Table.of(rows, {
        title or name.removesuffix("_s").removesuffix("_id").replace("_", " "): (
            _UNITS.get(name, "text"), partial(_show, name)
        )
        for name, title in pairs
    })  # fmt: skip


def _show(name: str, row: Mapping[str, Any]) -> Any:  # noqa: ANN401 - plain values
    value = row[name]
    if name in _UNITS:
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={v}" for k, v in value.items() if v is not None) or NOTHING
    if isinstance(value, list | tuple):
        return (", " if name == "flags" else " x ").join(map(str, value)) or NOTHING
    if name == "newest" and value:
        return str(value)[:16].replace("T", " ")
    text = NOTHING if value in {None, ""} else str(value)
    return text[:12] if name == "key" else text


@option.command("show", of=data, short="Show observations in full.")
def show_rows(
    place: str | None = STORE,
    keys: tuple[str, ...] = option.argument("KEY..."),
) -> None:
    """Show observations in full, by their keys or the beginnings of them."""
    with open_data_store(place, must_exist=True) as store:
        found: list[Any] = [observation_to_json(store.get(key)) for key in keys]
    samples = ("multiple", "window_set", "work_groups", "linear_s: linear model", "sampling_s")
    parts: list[Part] = []
    for one in found:
        parts.append({
            name: str(value) if name in {"key", *_UNITS} else _show(name, one)
            for name, value in one.items()
            if name not in {"samples", "features"}
        })  # fmt: skip
        if one["samples"]:
            parts.append(_tabulate(one["samples"], samples))
        if one["features"]:
            values = list(one["features"].items())
            parts.append(Table(columns={"feature": "text", "value": "value"}, rows=values))
        parts.append("")
    present(found, *parts)


@option.command("export", of=data, short="Write observations into a Parquet file.")
def export_rows(
    place: str | None = STORE,
    wanted: Selection = _WANTED,
    file: Path = option.argument("FILE.parquet"),
) -> None:
    """Write observations into a Parquet file that others can read and import."""
    if file.suffix.lower() in {".csv", ".json"}:
        raise InputError(
            f"{file}: observations are written as Parquet; call it {file.stem}.parquet"
        )
    from kernelcast.training_data.parquet import export_parquet  # slow to import

    with open_data_store(place, must_exist=True) as store, progress() as report:
        count = export_parquet(store, file, wanted, report=lambda n: report(f"{n:,} rows"))
    present({"file": str(file), "rows": count}, f"{count:,} observations written to {file}")


@option.command("import", of=data, short="Add observations from files.")
def import_files(
    place: str | None = STORE,
    files: tuple[Path, ...] = option.argument("FILE..."),
    replaces: bool = _REPLACE,
    problem: Path | None = option.given(
        "--problem T1.json",
        "For a tuner's results: its T1 file; else NAME.t1.json beside NAME.json is read.",
    ),
    device: str | None = option.given(
        "--measured-on NAME",
        "For a tuner's results: the device, if its files do not name it.",
    ),
    time_unit: str | None = option.given(
        "--time-unit",
        "For a tuner's results: unit of run times, if its files do not name it.",
        type=click.Choice(sorted(UNITS)),
    ),
) -> None:
    """Add observations from files; what is in the store already stays as it is.

    Parquet files of `kernelcast data export`, public data sets (AIWC OpenDwarfs, amaris_nca,
    NeuSight, RAJAPerf), tables of your own (CSV or Parquet with the columns kernel, device and
    seconds) and results of auto-tuners in the T4 format are recognised by their content. A file
    that cannot be used leaves the store as it was.
    """
    content, lines = [], []
    with open_data_store(place) as store, progress() as report:
        for path in files:
            tuning = replace(find_tuning_files(path), device=device, time_unit=time_unit)
            if problem is not None:
                tuning = replace(tuning, problem=problem)
            tell = prefix(report, f"{path.name}: ")
            found, rows, lacking = import_file(
                store, path, replace=replaces, tuning=tuning, report=tell
            )
            failures = len(found.failures)
            content.append({
                "file": str(path), **pick(found, "kind", "licence"), **pick(rows, *_COUNTS),
                "failures": failures,
            })  # fmt: skip
            lines.append(
                f"{path}: {found.kind}, {_describe_rows(rows)}, {failures:,} failures"
                + (f"; licence: {found.licence}" if found.licence else "")
                + "".join(
                    f"; {count:,} rows have no {name}: a model without samples leaves them out"
                    for name, count in lacking.items()
                )
            )
    present(content, *lines)


def _describe_rows(rows: AddedRows) -> str:
    return f"{rows.added:,} added, {rows.replaced:,} replaced, {rows.known:,} known before"


@option.command("check", of=data, short="Look for damage and for rows that cannot be right.")
def check_rows(
    place: str | None = STORE,
    removes: bool = option.given("--remove", "Remove the rows that are found."),
) -> ExitStatus:
    """Look for damage in the database, and for rows that cannot be right.

    The database checks its own tables and indexes first; nothing is removed from a damaged one.
    Rows are found that are unreadable, impossible, inconsistent or duplicated.

    Exit status: 0 if nothing is wrong or what was wrong is removed, 1 if something is.
    """
    with open_data_store(place, must_exist=True) as store, progress() as report:
        found = list(check_store(store, report=lambda n: report(f"{n:,} rows looked at")))
        is_damaged = any(one["kind"] == FindingKind.DAMAGED for one in found)
        removes = removes and not is_damaged
        removed = store.remove([one["key"] for one in found]) if removes and found else 0
    parts: list[Part] = []
    if found:
        columns = ("kind", "key", "kernel", "device_id", "message: what is wrong")
        parts = [_tabulate(found, columns)]
        parts += dict.fromkeys(f"{one['kind']}: {one['advice']}" for one in found)
    elif not removes:
        parts = ["no damage found, every row is sound"]
    present(found, *parts)
    if removes:
        complain(f"{removed:,} rows removed")
    return ExitStatus.FAILED if found and not removes else ExitStatus.ANSWERED


@option.command("merge", of=data, short="Add the observations of other stores.")
def merge_rows(
    place: str | None = STORE,
    others: tuple[str, ...] = option.argument("URL..."),
    replace: bool = _REPLACE,
) -> None:
    """Add observations and failures of other stores, files or URLs, to the store."""
    sources = [open_data_store(other, must_exist=True) for other in others]
    with open_data_store(place) as store, progress() as report:
        added = merge_stores(store, sources, replace=replace, report=report)
    for one in sources:
        one.close()
    pairs = list(zip(sources, added, strict=True))
    content = [{"store": one.where, **pick(rows, *_COUNTS)} for one, rows in pairs]
    lines = (f"{one.where}: {_describe_rows(rows)}" for one, rows in pairs)
    present(content, *lines)


@option.command("remodel", of=data, short="Compute analytic features anew.")
def remodel_rows(
    place: str | None = STORE,
    wanted: Selection = _WANTED,
    problems: Path | None = option.given(
        "--problems DIR",
        "Problem files of rows that were collected by `collect --problems`.",
        type=option.FOLDER,
    ),
) -> ExitStatus:
    """Compute the analytic features of observations anew, by today's models; nothing is run.

    For rows of the corpus, and with --problems of your own kernels, on devices that are calibrated
    or described. Models and comparisons never mix analytic features of several revisions.

    Exit status: 0 if all rows that are meant were computed, 1 if not; the reasons are printed.
    """
    from kernelcast.collection import remodelling
    from kernelcast.collection.own_problems import find_problems
    from kernelcast.training_data.applications import find_kernels

    kernels = find_kernels() if problems is None else find_problems(problems)[0]
    with open_data_store(place, must_exist=True) as store, progress() as report:
        counts = remodelling.remodel_rows(store, wanted, kernels, report=report)
    done = counts.pop(remodelling.REMODELLED, 0)
    left_out = (f"{count:,} left out: {reason}" for reason, count in counts.items())
    content = {"remodelled": done, "left_out": dict(counts)}
    present(content, f"{done:,} rows computed anew", *left_out)
    return ExitStatus.FAILED if counts else ExitStatus.ANSWERED


def _read_moment(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"{text!r}: expected a moment such as 2026-03-01 or 2026-03-01T12:30:00+01:00"
        raise click.BadParameter(msg) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@option.command("rm", of=data, short="Remove observations.")
def remove_rows(
    place: str | None = STORE,
    wanted: Selection = option.settings(
        **_SELECTION,
        launch_keys=option.given(
            "--launch KEY", "Only this launch (launch_key of `ls --rows --json`); may be repeated."
        ),
        measurements=option.given(
            "--measurement NAME", "Only this measurement, as named by its reporter; may be "
                                  "repeated."
        ),
        with_flags=option.given("--flag", "Only with one of these flags; may be repeated."),
        measured_from=option.given(
            "--from TIME",
            "Only what was measured at this time or later (ISO 8601; UTC if no zone is given).",
            type=str, callback=_read_moment,
        ),
        measured_before=option.given(
            "--before TIME", "Only what was measured earlier.", type=str, callback=_read_moment
        ),
        least_seconds=option.given(
            "--least SECONDS", "Only times of at least this length.", type=option.POSITIVE,
            default=None, callback=lambda _, __, seconds: seconds or 0.0,
        ),
        most_seconds=option.given(
            "--most SECONDS", "Only times of at most this length.", type=option.POSITIVE,
            default=None, callback=lambda _, __, seconds: seconds or math.inf,
        ),
    ),
    keys: tuple[str, ...] = option.argument("[KEY...]", required=False),
    dry_run: bool = option.given("--dry-run", "Show what would go, and remove nothing."),
    is_sure: bool = option.given("--yes", "Do not ask."),
) -> None:  # fmt: skip
    """Remove observations, by their keys (or the beginnings of them) or by what they are.

    What would go is shown first. A service on the same database notes the removal in its audit
    log, and looks at its answers again within a second. What is removed is gone: `kernelcast data
    export` keeps a copy.
    """
    option.refuse({
        "with --json nobody is asked: give --yes or --dry-run":
            wants_json() and not (is_sure or dry_run),
        "say which observations are meant: their keys, or options such as --kernel":
            wanted == Selection() and not keys,
    })  # fmt: skip
    with open_data_store(place, must_exist=True) as store:
        if keys:
            wanted = replace(wanted, keys=tuple(store.get(key).key for key in keys))
        rows = find_observations(store, wanted, most=1000 if wants_json() else 20)
        count = store.count(wanted)
        if rows:
            show(_tabulate(rows, _ROW_COLUMNS))
        show(f"{count:,} observations" + (" would go" if dry_run else ""))
        is_wanted = bool(count) and not dry_run
        if is_wanted and not is_sure:
            is_wanted = click.confirm("Remove them?", err=True)
        removed = remove_by_hand(store, wanted, count) if is_wanted else 0
    present({"count": count, "removed": removed, "is_dry_run": dry_run,
             "observations": rows})  # fmt: skip
    if is_wanted and not wants_json():
        complain(f"{removed:,} observations removed")
