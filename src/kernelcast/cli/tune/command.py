"""``kernelcast tune``."""

from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.options import take_fields
from kernelcast.tuning.settings import TuneModels, TuneSettings

_DEFAULTS = TuneSettings()


@click.command(
    context_settings={"show_default": True},
    short_help="Find the best launch configuration of a kernel by models.",
)
@click.argument("problem_file", metavar="[P.yaml]", required=False, type=option.FILE)
@option.device
@click.option(
    "--models",
    type=click.Choice([one.value for one in TuneModels]),
    default=_DEFAULTS.models.value,
    help="What ranks configurations: the analytic model alone, which runs nothing, or a few "
    "work-groups of those that it likes best as well.",
)
@option.count(
    "--top",
    default=_DEFAULTS.top,
    metavar="K",
    says="Configurations that are shown, and measured with --measure.",
)
@option.flag("--measure", says="Measure the best K as a whole, in turn.")
@option.runs(_DEFAULTS.runs, "Measured runs of each; their median counts.")
@option.count(
    "--sampled",
    default=_DEFAULTS.sampled,
    metavar="K",
    says="Configurations that `--models hybrid` samples.",
)
@option.parameters_with(
    "Fix a value of the problem file's `parameters`, for example N=2**20; may be repeated.",
    has_letter=False,
)
@option.seed
@option.timeout(_DEFAULTS.timeout_s, "Give a configuration up that runs for so long.")
@option.file(
    "--save",
    "save_file",
    says="Keep measured runs in FILE, one JSON object a line, and take them up again from it.  "
    "[default: a file in the user's data folder]",
)
@option.file(
    "--t1",
    "t1_file",
    metavar="T1.json",
    says="Read the problem from a file in the auto-tuning community's T1 format.",
)
@option.file(
    "--t4",
    "t4_file",
    metavar="T4.json",
    says="Write what was measured to a file in the T4 format; for one device.",
)
@option.json_list
@option.debug
@click.pass_context
def tune(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - TuneRequest has the types
    """Search the configurations of a problem file for the fastest, by models.

    Lists of values among the file's `parameters` are searched over, `restrictions` leave
    combinations out; without lists, local sizes are searched. No configuration runs as a whole
    unless --measure asks for it; then the best K run in turn, and what was measured is kept, so
    that Ctrl-C loses nothing. The device must have been calibrated.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    from kernelcast.cli.tune.run import TuneRequest, run_tuning

    options["models"] = TuneModels(options["models"])
    settings = take_fields(TuneSettings, options)
    ctx.exit(run_tuning(TuneRequest(settings=settings, **options)))
