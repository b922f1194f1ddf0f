"""The commands of ``kernelcast data``."""

from pathlib import Path
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.data.options import make_selection, selection_options, store_option
from kernelcast.cli.data.tables import (
    make_failure_table,
    make_finding_table,
    make_row_table,
    make_summary_table,
    show_observation,
)
from kernelcast.cli.terminal import ExitStatus, complain, progress, show, show_json, show_line
from kernelcast.collection.data_exchange import ImportRequest, import_file, merge_stores
from kernelcast.launches.data_store import open_data_store
from kernelcast.training_data.check import FindingKind, check_store
from kernelcast.training_data.importers.tuning import UNITS
from kernelcast.training_data.summary import (
    GROUPS,
    failure_to_json,
    observation_to_json,
    summarise_store,
    summary_to_json,
)


@click.command("ls", short_help="List what is in the store.")
@click.option(
    "--by",
    type=click.Choice(GROUPS),
    default=GROUPS[0],
    show_default=True,
    help="Group observations by this.",
)
@option.flag("--rows", "wants_rows", says="List every observation with its key.")
@option.flag(
    "--failures",
    "wants_failures",
    says="List launches that could not be observed, with the reason.",
)
@selection_options
@option.json_flag
@store_option
@option.debug
def list_rows(place: str | None, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - see the options
    """List what is in the store: a line per group, per observation or per failure."""
    wanted = make_selection(options)
    with open_data_store(place, must_exist=True) as store:
        if options["wants_failures"]:
            failures = [failure_to_json(one) for one in store.failures(wanted)]
            _show(failures, make_failure_table, as_json=as_json)
        elif options["wants_rows"]:
            found = [observation_to_json(one, is_full=False) for one in store.find(wanted)]
            _show(found, make_row_table, as_json=as_json)
        else:
            groups = summarise_store(store, wanted, by=options["by"])
            rows = [summary_to_json(one) for one in groups]
            _show(rows, lambda these: make_summary_table(options["by"], these), as_json=as_json)


@click.command("show", short_help="Show observations in full.")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@option.json_flag
@store_option
@option.debug
def show_rows(keys: tuple[str, ...], place: str | None, *, as_json: bool) -> None:
    """Show observations in full, by their keys or the beginnings of them."""
    with open_data_store(place, must_exist=True) as store:
        found = [observation_to_json(store.get(key)) for key in keys]
    if as_json:
        show_json(found)
        return
    for one in found:
        show_observation(one)


@click.command("export", short_help="Write observations into a Parquet file.")
@click.argument("file", metavar="FILE.parquet", type=option.FILE)
@selection_options
@option.json_flag
@store_option
@option.debug
def export_rows(file: Path, place: str | None, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - see the options
    """Write observations into a Parquet file that others can read and import."""
    from kernelcast.training_data.parquet import export_parquet  # needs an extra

    wanted = make_selection(options)
    with (
        open_data_store(place, must_exist=True) as store,
        progress(is_wanted=not as_json) as report,
    ):
        count = export_parquet(store, file, wanted, report=lambda n: report(f"{n:,} rows"))
    if as_json:
        show_json({"file": str(file), "rows": count})
    else:
        show_line(f"{count:,} observations written to {file}")


@click.command("import", short_help="Add observations from files.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=option.FILE)
@option.flag("--replace", says="Replace observations that have the same key.")
@option.file(
    "--problem", metavar="T1.json", says="For a tuner's results: what it tuned, in the T1 format."
)
@click.option(
    "--measured-on",
    "device",
    metavar="NAME",
    help="For a tuner's results: the device, where its files do not say it.",
)
@click.option(
    "--time-unit",
    type=click.Choice(sorted(UNITS)),
    help="For a tuner's results: unit of run times, where its files do not say it.",
)
@option.json_flag
@store_option
@option.debug
def import_files(
    files: tuple[Path, ...],
    place: str | None,
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - see the options
) -> None:
    """Add observations from files; what is in the store already stays as it is.

    Parquet files of `kernelcast data export`, public data sets (AIWC OpenDwarfs, amaris_nca,
    NeuSight, RAJAPerf) and results of auto-tuners in the T4 format are recognised by their
    content. A file that cannot be used leaves the store as it was.
    """
    outcomes = []
    with open_data_store(place) as store, progress(is_wanted=not as_json) as report:
        for path in files:
            request = ImportRequest(path=path, **options)
            outcomes.append(
                import_file(store, request, report=lambda n, at=path: report(f"{at.name}: {n}"))  # type: ignore[misc]  # `at` keeps this turn's file
            )
    if as_json:
        show_json([
            {"file": str(one.path), "kind": one.kind, "licence": one.licence,
             "added": one.rows.added, "replaced": one.rows.replaced, "known": one.rows.known,
             "failures": one.failures}
            for one in outcomes
        ])  # fmt: skip
        return
    for one in outcomes:
        show_line(
            f"{one.path}: {one.kind}, {one.rows.added:,} added, {one.rows.replaced:,} replaced, "
            f"{one.rows.known:,} known before, {one.failures:,} failures"
            + (f"; licence: {one.licence}" if one.licence else "")
        )


@click.command("check", short_help="Look for damage and for rows that cannot be right.")
@option.flag("--remove", "removes", says="Remove the rows that are found.")
@option.json_flag
@store_option
@option.debug
@click.pass_context
def check_rows(ctx: click.Context, place: str | None, *, removes: bool, as_json: bool) -> None:
    """Look for damage in the database, and for rows that cannot be right.

    The database checks its own tables and indexes first; nothing is removed from a damaged one.
    Rows are found that are unreadable, impossible, inconsistent or duplicated.

    Exit status: 0 if nothing is wrong or what was wrong is removed, 1 if something is.
    """
    with (
        open_data_store(place, must_exist=True) as store,
        progress(is_wanted=not as_json) as report,
    ):
        found = list(check_store(store, report=lambda n: report(f"{n:,} rows looked at")))
        is_damaged = any(one.kind is FindingKind.DAMAGED for one in found)
        removes = removes and not is_damaged
        removed = store.remove([one.key for one in found]) if removes and found else 0
    if as_json:
        show_json([
            {"kind": one.kind.value, "key": one.key, "kernel": one.kernel,
             "device_id": one.device_id, "message": one.message, "advice": one.advice}
            for one in found
        ])  # fmt: skip
    elif found:
        show(make_finding_table(found))
        for advice in dict.fromkeys(f"{one.kind}: {one.advice}" for one in found):
            show_line(advice)
    if removes:
        complain(f"{removed:,} rows removed")
    elif found:
        ctx.exit(ExitStatus.FAILED)
    elif not as_json:
        show_line("no damage found, every row is sound")


@click.command("merge", short_help="Add the observations of other stores.")
@click.argument("others", metavar="URL...", nargs=-1, required=True)
@option.flag("--replace", says="Replace observations that have the same key.")
@option.json_flag
@store_option
@option.debug
def merge_rows(others: tuple[str, ...], place: str | None, *, replace: bool, as_json: bool) -> None:
    """Add observations and failures of other stores, files or URLs, to the store."""
    sources = [open_data_store(other, must_exist=True) for other in others]
    with open_data_store(place) as store, progress(is_wanted=not as_json) as report:
        added = merge_stores(store, sources, replace=replace, report=report)
    for one in sources:
        one.close()
    pairs = list(zip(sources, added, strict=True))
    if as_json:
        show_json([
            {"store": one.where, "added": rows.added, "replaced": rows.replaced,
             "known": rows.known}
            for one, rows in pairs
        ])  # fmt: skip
        return
    for one, rows in pairs:
        show_line(
            f"{one.where}: {rows.added:,} added, {rows.replaced:,} replaced, "
            f"{rows.known:,} known before"
        )


def _show(found: list[dict[str, object]], lay_out: Any, *, as_json: bool) -> None:  # noqa: ANN401 - a table's maker
    if as_json:
        show_json(found)
    elif found:
        show(lay_out(found))
    else:
        show_line("nothing there that fits")
