"""Options that training, validation and the registry's commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kernelcast.predictor.training.registry import MODELS_VARIABLE
from kernelcast.predictor.training.settings import RowFilter

Command = TypeVar("Command", bound=Callable[..., Any])


def data_option(command: Command) -> Command:
    """Add ``--data``, which may be repeated."""
    return click.option(
        "--data",
        "sources",
        metavar="PATH",
        multiple=True,
        help="Observations: a store (file or URL), a Parquet file or a folder of them; may be "
        "repeated.  [default: KERNELCAST_STORE, or observations.sqlite in the data folder]",
    )(command)


def rows_device_option(command: Command) -> Command:
    """Add ``--device``, which chooses rows and may be repeated."""
    return click.option(
        "--device",
        "device_ids",
        metavar="ID",
        multiple=True,
        help="Only rows of this device (its id or the beginning of it); may be repeated.",
    )(command)


def judged_rows_options(command: Command) -> Command:
    """Add ``--shortest`` and ``--least-work-groups``."""
    usual = RowFilter()
    fewest = click.option(
        "--least-work-groups",
        metavar="N",
        type=click.IntRange(min=0),
        default=usual.least_work_groups,
        help="Leave launches out that have fewer work-groups, likewise.",
    )
    shortest = click.option(
        "--shortest",
        "shortest_s",
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        default=usual.shortest_s,
        help="Leave launches out that were measured shorter, from learning and from judging.",
    )
    return shortest(fewest(command))


def jobs_option(command: Command) -> Command:
    """Add ``--jobs``."""
    return click.option(
        "--jobs",
        metavar="N",
        type=click.IntRange(min=1),
        help="Processes that work side by side.  [default: one per processor]",
    )(command)


def registry_option(command: Command) -> Command:
    """Add ``--registry``."""
    return click.option(
        "--registry",
        "registry_url",
        metavar="URL",
        help="Where models are kept: a folder or any URL that fsspec knows.  "
        f"[default: {MODELS_VARIABLE}, or models in the data folder]",
    )(command)


def json_flag(command: Command) -> Command:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(
        command
    )
