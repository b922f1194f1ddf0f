"""Options that the commands of ``kernelcast data`` share."""

from typing import Any

import click

from kernelcast.cli.options import Command
from kernelcast.launches.data_store import STORE_VARIABLE
from kernelcast.records.observation import Origin
from kernelcast.training_data.store import Selection

store_option = click.option(
    "--store",
    "place",
    metavar="URL",
    envvar=STORE_VARIABLE,
    help="The store: a SQLite file, or postgresql://user@host/database.  "
    f"[default: {STORE_VARIABLE}, or observations.sqlite in the data folder]",
)


def selection_options(command: Command) -> Command:
    """Add the options that choose rows."""
    options = (
        click.option("--kernel", "kernels", metavar="NAME", multiple=True,
                     help="Only this kernel; may be repeated."),
        click.option("--application", "applications", metavar="NAME", multiple=True,
                     help="Only this application; may be repeated."),
        click.option("--suite", "suites", metavar="NAME", multiple=True,
                     help="Only this suite or data set; may be repeated."),
        click.option("--device", "devices", metavar="ID", multiple=True,
                     help="Only this device (its id or the beginning of it); may be repeated."),
        click.option("--origin", "origins", type=click.Choice([one.value for one in Origin]),
                     multiple=True, help="Only what came about like this; may be repeated."),
    )  # fmt: skip
    for one in reversed(options):
        command = one(command)
    return command


def make_selection(options: dict[str, Any]) -> Selection:
    """Make a selection of what `selection_options` have taken; they leave the dictionary."""
    origins = tuple(Origin(one) for one in options.pop("origins"))
    names = ("kernels", "applications", "suites", "devices")
    return Selection(origins=origins, **{name: options.pop(name) for name in names})
