"""``kernelcast compare``."""

from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.train.options import (
    data_option,
    jobs_option,
    judged_rows_options,
    rows_device_option,
)
from kernelcast.training.settings import Split

_RESAMPLES = 10_000
_FEWEST_RESAMPLES = 100


@click.command(
    context_settings={"show_default": True},
    short_help="Compare two models on kernels they have not seen, kernel by kernel.",
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@data_option
@rows_device_option
@click.option(
    "--split",
    type=click.Choice([Split.KERNEL.value, Split.APPLICATION.value]),
    default=Split.KERNEL.value,
    help="What is held out as a whole.",
)
@jobs_option
@judged_rows_options
@option.count(
    "--resamples",
    default=_RESAMPLES,
    least=_FEWEST_RESAMPLES,
    says="How often kernels are drawn anew for the interval of the difference.",
)
@option.folder(
    "Write comparison.json and a page, comparison.html, into FOLDER; needs kernelcast[plot]."
)
@option.json("Print JSON instead of tables: what comparison.json holds.")
@option.debug
@click.pass_context
def compare(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - CompareRequest has the types
    """Predict the same kernels by models A and B that have not seen them, and compare.

    A and B are names such as linear, analytic or hybrid; a wrong name lists all. Per device: the
    errors of both, by how much they differ with a 95 % interval, which kernels either predicts
    better by more than the noise of their measured times, and what pushed a learned model on the
    kernels where it errs most.

    Exit status: 0 when both models are judged on every device, 1 when not, 2 for bad input, 130
    after Ctrl-C.
    """
    # scikit-learn takes longer to import than all other commands do.
    from kernelcast.cli.compare.run import CompareRequest, run_comparison

    ctx.exit(run_comparison(CompareRequest(**options)))
