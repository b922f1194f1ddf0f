"""``kernelcast balance``."""

from typing import Any

import click

from kernelcast.balancing.settings import BalanceSettings
from kernelcast.cli import options as option
from kernelcast.cli.options import take_fields

_DEFAULTS = BalanceSettings()


@click.command(
    context_settings={"show_default": True},
    short_help="Run one kernel over several devices at once.",
)
@click.argument("problem_file", metavar="P.yaml", type=option.FILE)
@option.devices(
    "Use this device (its id or the beginning of it); may be repeated.  [default: all devices]"
)
@click.option(
    "--cores",
    metavar="ID=CORES,...",
    help="Bind a device's process to processor cores, for example intel=0,pocl=1-3.  [default: "
    "CPU devices share the cores evenly]",
)
@click.option(
    "--first-share",
    metavar="SHARE",
    type=float,
    default=_DEFAULTS.first_share,
    help="Part of the work that is divided by the estimates; the rest is divided by the speeds "
    "that show.",
)
@click.option(
    "--budget",
    metavar="SHARE",
    type=float,
    default=_DEFAULTS.budget,
    help="Part of the launch that is run to estimate the devices' speeds; it counts as done.",
)
@option.flag(
    "--independent",
    "assumes_independence",
    says="Vouch that no work-group reads what another one writes, where that cannot be proven.",
)
@option.seed
@option.parameters
@option.timeout(
    _DEFAULTS.timeout_s, "Give a device up that shows no sign of life for so long.", kind=float
)
@option.folder("Write each buffer that the kernel writes to FOLDER, as .npy files.")
@option.json("Print JSON instead of a table. Times are in seconds.")
@option.plot("Draw the timeline to FILE (png, pdf, svg); needs kernelcast[plot].")
@option.debug
@click.pass_context
def balance(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - BalanceRequest has the types
    """Run the kernel of a problem file over several devices, so that all finish together.

    Each device works in a process of its own on its own part of the index space. A few parts are
    run first and tell the speeds; most of the rest is divided by these estimates, and what is
    left then by the speeds that showed. A kernel whose work-groups are not independent is refused.

    Exit status: 0 when all devices took part, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    from kernelcast.cli.balance.run import BalanceRequest, run_balance

    settings = take_fields(BalanceSettings, options)
    ctx.exit(run_balance(BalanceRequest(settings=settings, **options)))
