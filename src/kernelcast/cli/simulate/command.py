"""``kernelcast simulate``."""

from typing import Any

import click

from kernelcast.cli import options as option

_SHAPES = ("independent", "cholesky", "fork-join", "layered")


def _parse_errors(_: click.Context, __: click.Parameter, text: str) -> tuple[float, ...]:
    """Read shares such as ``0,0.05,0.2``."""
    try:
        return tuple(dict.fromkeys(float(one) for one in text.split(",")))
    except ValueError as error:
        msg = f"{text!r}: expected shares with commas between them, such as 0,0.05,0.2"
        raise click.BadParameter(msg) from error


@click.command(
    context_settings={"show_default": True},
    short_help="Simulate what accurate estimates are worth to a cluster.",
)
@option.count("--devices", default=100, says="Devices of the cluster.")
@option.count("--tasks", default=5000, says="Tasks of the program.")
@click.option(
    "--shape",
    "shapes",
    type=click.Choice(_SHAPES),
    multiple=True,
    help="How tasks depend on each other; may be repeated.  [default: all of them]",
)
@option.count(
    "--models", default=10, says="Models that the devices are of; those of one model are equal."
)
@option.count(
    "--launches",
    default=50,
    says="Kinds of tasks: kernels at a size. A Cholesky factorisation has four.",
)
@click.option(
    "--heterogeneity",
    metavar="SPREAD",
    type=click.FloatRange(min=0),
    default=0.5,
    help="Standard deviation of the logarithm of one launch's time over models.",
)
@click.option(
    "--errors",
    metavar="SHARES",
    default="0,0.02,0.05,0.1,0.2,0.3,0.5,1",
    callback=_parse_errors,
    help="Mean errors of estimates, log-normal: |estimated - true| / true.",
)
@option.file(
    "--validation", "validation_file", says="Also take the errors of a validation's models (JSON)."
)
@click.option(
    "--model",
    "model_name",
    metavar="NAME",
    help="Of --validation, this model only.",
)
@option.count(
    "--repeats",
    default=5,
    says="Clusters and programs that are drawn; figures are medians over them.",
)
@option.count(
    "--lookahead", default=8, says="Tasks that may be placed and not yet done, per device."
)
@option.count("--seed", default=0, least=0, says="Of everything random.")
@option.plot("Draw makespans over errors to FILE (png, pdf, svg); needs kernelcast[plot].")
@option.json("Print JSON instead of a table: a list, one object per shape and way of knowing.")
@option.debug
@click.pass_context
def simulate(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - StudySettings has the types
    """Simulate what accurate estimates are worth to a cluster.

    A scheduler places tasks where it expects them to end first: knowing true times, estimates of
    some error, means of earlier runs that it has to make first (history), or nothing. Shown is
    how long the whole program takes, over what it takes with perfect knowledge. Nothing runs on a
    device.

    Exit status: 0, 2 for bad input, 130 after Ctrl-C.
    """
    from kernelcast.cli.simulate.run import read_request, run_simulation

    ctx.exit(run_simulation(read_request(options)))
