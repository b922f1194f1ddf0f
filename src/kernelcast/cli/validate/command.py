"""``kernelcast validate``."""

from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.options import take_fields
from kernelcast.cli.train.options import (
    data_option,
    jobs_option,
    judged_rows_options,
    rows_device_option,
)
from kernelcast.training.settings import RowFilter, Split, ValidationSettings

_DEFAULTS = ValidationSettings()


def parse_names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Read ``a,b,c`` as names; nothing gives none."""
    if text is None:
        return ()
    names = tuple(one.strip() for one in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        msg = f"{text!r}: give names with commas between them, each once, such as linear,hybrid"
        raise click.BadParameter(msg)
    return names


@click.command(
    context_settings={"show_default": True},
    short_help="Compare models on kernels, applications or devices they have not seen.",
)
@data_option
@rows_device_option
@click.option(
    "--split",
    type=click.Choice([one.value for one in Split]),
    default=_DEFAULTS.split.value,
    help="What is held out as a whole. Devices are predicted by models of all other devices.",
)
@click.option(
    "--models",
    metavar="A,B,...",
    callback=parse_names,
    help="Models to compare, with commas between them; a wrong name lists all.  [default: the "
    "hybrid and its rivals]",
)
@jobs_option
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Validate on a Dask cluster, such as tcp://host:8786; needs kernelcast[cluster].",
)
@click.option(
    "--coverage",
    metavar="SHARE",
    type=click.FloatRange(min=0, max=1, min_open=True, max_open=True),
    default=_DEFAULTS.coverage,
    help="Share of true times that intervals shall hold.",
)
@judged_rows_options
@option.folder(
    "Write validation.json, sampling_points.json and a page, validation.html, into FOLDER."
)
@option.json("Print JSON instead of tables: what validation.json holds.")
@option.debug
@click.pass_context
def validate(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - ValidateRequest has the types
    """Hold kernels, applications or devices out and predict them by models that have not seen them.

    Settings, gates and intervals of each model are chosen inside the rows that it learns from:
    what is held out has no part in them. Per device: errors of each model beside the noise of the
    measurements, coverage and width of intervals, what becomes of kernels that the linear model
    predicts well or badly, and the worst kernels of the model named last.

    Exit status: 0 when every device is judged, 1 when one has too few rows, 2 for bad input, 130
    after Ctrl-C.
    """
    # scikit-learn takes longer to import than all other commands do.
    from kernelcast.cli.validate.run import ValidateRequest, run_validation

    options |= {"split": Split(options["split"]), "jobs": options["jobs"] or -1}
    rows = take_fields(RowFilter, options)
    settings = take_fields(ValidationSettings, options, rows=rows)
    ctx.exit(run_validation(ValidateRequest(settings=settings, **options)))
