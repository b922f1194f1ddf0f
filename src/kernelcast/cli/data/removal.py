"""``kernelcast data rm``."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.data.options import make_selection, selection_options, store_option
from kernelcast.cli.data.tables import make_row_table
from kernelcast.cli.terminal import complain, show, show_json, show_line
from kernelcast.collection.data_editing import find_observations, remove_by_hand
from kernelcast.launches.data_store import open_data_store
from kernelcast.records.errors import InputError
from kernelcast.records.observation import ObservationFlag
from kernelcast.training_data.store import Selection, Store

_MOST_SHOWN = 20
_MOST_LISTED = 1000


def _read_moment(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"{text!r}: expected a moment such as 2026-03-01 or 2026-03-01T12:30:00+01:00"
        raise click.BadParameter(msg) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@click.command("rm", short_help="Remove observations.")
@click.argument("keys", metavar="[KEY...]", nargs=-1)
@selection_options
@click.option(
    "--launch",
    "launches",
    metavar="KEY",
    multiple=True,
    help="Only this launch (launch_key of `ls --rows --json`); may be repeated.",
)
@click.option(
    "--measurement",
    "measurements",
    metavar="NAME",
    multiple=True,
    help="Only what its reporter called so; may be repeated.",
)
@click.option(
    "--flag",
    "flags",
    type=click.Choice([one.value for one in ObservationFlag]),
    multiple=True,
    help="Only with this flag; of several, with one of them.",
)
@click.option(
    "--from",
    "measured_from",
    metavar="TIME",
    callback=_read_moment,
    help="Only what was measured then or later (ISO 8601; UTC if no zone is given).",
)
@click.option(
    "--before",
    "measured_before",
    metavar="TIME",
    callback=_read_moment,
    help="Only what was measured before.",
)
@click.option(
    "--least",
    "least_seconds",
    metavar="SECONDS",
    type=option.POSITIVE,
    help="Only times of at least so long.",
)
@click.option(
    "--most",
    "most_seconds",
    metavar="SECONDS",
    type=option.POSITIVE,
    help="Only times of at most so long.",
)
@option.flag("--dry-run", says="Show what would go, and remove nothing.")
@option.flag("--yes", "is_sure", says="Do not ask.")
@option.json_flag
@store_option
@option.debug
def remove_rows(
    keys: tuple[str, ...],
    place: str | None,
    *,
    as_json: bool,
    dry_run: bool,
    is_sure: bool,
    **options: Any,  # noqa: ANN401 - see the options
) -> None:
    """Remove observations, by their keys (or the beginnings of them) or by what they are.

    What would go is shown first. A service on the same database notes the removal in its audit
    log, and looks at its answers again within a second. What is removed is gone: `kernelcast data
    export` keeps a copy.
    """  # fmt: skip
    if as_json and not (is_sure or dry_run):
        msg = "with --json nobody is asked: give --yes or --dry-run"
        raise InputError(msg)
    wanted = _select(options)
    if wanted == Selection() and not keys:
        msg = "say which observations are meant: their keys, or options such as --kernel"
        raise InputError(msg)
    with open_data_store(place, must_exist=True) as store:
        if keys:
            wanted = replace(wanted, keys=tuple(store.get(key).key for key in keys))
        _remove(store, wanted, as_json=as_json, dry_run=dry_run, is_sure=is_sure)


def _select(options: dict[str, Any]) -> Selection:
    return replace(
        make_selection(options),
        launch_keys=options["launches"],
        measurements=options["measurements"],
        with_flags=frozenset(map(ObservationFlag, options["flags"])),
        measured_from=options["measured_from"],
        measured_before=options["measured_before"],
        least_seconds=options["least_seconds"] or 0.0,
        most_seconds=options["most_seconds"] or float("inf"),
    )


def _remove(
    store: Store, wanted: Selection, *, as_json: bool, dry_run: bool, is_sure: bool
) -> None:
    found = find_observations(store, wanted, most=_MOST_LISTED if as_json else _MOST_SHOWN)
    if not as_json:
        if found.rows:
            show(make_row_table(found.rows))
        show_line(f"{found.count:,} observations" + (" would go" if dry_run else ""))
    is_wanted = bool(found.count) and not dry_run
    if is_wanted and not is_sure:
        is_wanted = click.confirm("Remove them?", err=True)
    removed = remove_by_hand(store, wanted, found.count) if is_wanted else 0
    if as_json:
        show_json({"count": found.count, "removed": removed, "is_dry_run": dry_run,
                   "observations": list(found.rows)})  # fmt: skip
    elif is_wanted:
        complain(f"{removed:,} observations removed")
