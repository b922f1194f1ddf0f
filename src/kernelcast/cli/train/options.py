"""Options that training, validation and the registry's commands share."""

import click

from kernelcast.cli import options as option
from kernelcast.cli.options import Command
from kernelcast.training.registry import MODELS_VARIABLE
from kernelcast.training.settings import RowFilter

data_option = click.option(
    "--data",
    "sources",
    metavar="PATH",
    multiple=True,
    help="Observations: a store (file or URL), a Parquet file or a folder of them; may be "
    "repeated.  [default: KERNELCAST_STORE, or observations.sqlite in the data folder]",
)
rows_device_option = option.devices(
    "Only rows of this device (its id or the beginning of it); may be repeated."
)
jobs_option = option.count(
    "--jobs", says="Processes that work side by side.  [default: one per processor]"
)
registry_option = click.option(
    "--registry",
    "registry_url",
    metavar="URL",
    help="Where models are kept: a folder or any URL that fsspec knows.  "
    f"[default: {MODELS_VARIABLE}, or models in the data folder]",
)


def judged_rows_options(command: Command) -> Command:
    """Add ``--shortest`` and ``--least-work-groups``."""
    usual = RowFilter()
    fewest = option.count(
        "--least-work-groups",
        default=usual.least_work_groups,
        least=0,
        says="Leave launches out that have fewer work-groups, likewise.",
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
