"""``kernelcast balance``."""

from pathlib import Path
from typing import Any

import click

from kernelcast.cli.options import (
    debug_option,
    parameters_option,
    seed_option,
)
from kernelcast.predictor.balancing.settings import BalanceSettings

_DEFAULTS = BalanceSettings()
_FILE = click.Path(path_type=Path)


@click.command(
    context_settings={"show_default": True},
    short_help="Run one kernel over several devices at once.",
)
@click.argument("problem_file", metavar="P.yaml", type=_FILE)
@click.option(
    "--device",
    "device_ids",
    metavar="ID",
    multiple=True,
    help="Use this device (its id or the beginning of it); may be repeated.  [default: all "
    "devices]",
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
    help="Part of the launch that each device runs to estimate its speed; it counts as done.",
)
@click.option(
    "--independent",
    "assumes_independence",
    is_flag=True,
    help="Vouch that no work-group reads what another one writes, where that cannot be proven.",
)
@seed_option
@parameters_option
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=float,
    default=_DEFAULTS.timeout_s,
    help="Give a device up that shows no sign of life for so long.",
)
@click.option(
    "--out",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each buffer that the kernel writes to FOLDER, as .npy files.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of a table. Times are in seconds."
)
@click.option(
    "--plot",
    "plot_file",
    metavar="FILE.png",
    type=_FILE,
    help="Draw the timeline to FILE (png, pdf, svg); needs kernelcast[plot].",
)
@debug_option
@click.pass_context
def balance(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - BalanceRequest has the types
    """Run the kernel of a problem file over several devices, so that all finish together.

    Each device works in a process of its own on its own part of the index space. A few parts are
    run first and tell the speeds; most of the rest is divided by these estimates, and what is
    left then by the speeds that showed. A kernel whose work-groups are not independent is refused.

    Exit status: 0 when all devices took part, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    from kernelcast.cli.balance_run import BalanceRequest, run_balance

    ctx.exit(run_balance(BalanceRequest(**options)))
