"""``kernelcast train``."""

from pathlib import Path
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.train.options import (
    data_option,
    jobs_option,
    registry_option,
    rows_device_option,
)
from kernelcast.training.settings import DEFAULT_MODEL


@click.command(
    context_settings={"show_default": True},
    short_help="Train models on collected observations.",
)
@data_option
@click.option(
    "--model",
    "model",
    metavar="NAME",
    default=DEFAULT_MODEL,
    help="The model; a wrong name lists all.",
)
@rows_device_option
@option.flag(
    "--pooled",
    "is_pooled",
    says="One model of all devices on dimensionless features (hybrid_pooled): it serves devices "
    "that it has not seen once they are calibrated.",
)
@click.option(
    "--out",
    "out",
    metavar="FILE.skops",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the model into one file instead of the registry.",
)
@registry_option
@option.flag(
    "--no-validation",
    "skips_validation",
    says="Do not validate: the file then does not say how good the model is.",
)
@jobs_option
@option.json("Print JSON instead of a table: a list, one object per model.")
@option.debug
@click.pass_context
def train(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - TrainRequest has the types
    """Train a model for each device, or one for all, on collected observations.

    Each model is validated by leaving out one kernel after the other (a pooled one, one device
    after the other), and the report is kept in its file. Models go into a registry, where
    estimates find the newest; older versions stay. A model that is ready stays after Ctrl-C.

    Exit status: 0 when all models are trained, 1 when one could not be, 2 for bad input, 130
    after Ctrl-C.
    """
    # scikit-learn takes longer to import than all other commands do.
    from kernelcast.cli.train.run import TrainRequest, run_training

    ctx.exit(run_training(TrainRequest(**options)))
