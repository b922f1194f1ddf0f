"""``kernelcast collect``."""

import re
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.data.options import store_option
from kernelcast.cli.options import take_fields
from kernelcast.collection.settings import DEFAULT_ROW_TIMEOUT_S, CollectionSettings

_DEFAULTS = CollectionSettings()
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>s|m|min|h)?")
_UNITS_S = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_duration(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Read ``90``, ``90s``, ``30m`` or ``1.5h`` as seconds."""
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match is None or float(match["number"]) == 0:
        msg = f"{text!r}: give a time such as 90s, 30m or 1.5h"
        raise click.BadParameter(msg)
    return float(match["number"]) * _UNITS_S[match["unit"]]


@click.command(
    "collect",
    context_settings={"show_default": True},
    short_help="Measure the benchmark corpus: samples, features, whole runs.",
)
@option.device
@click.option(
    "--kernels",
    "patterns",
    metavar="GLOB",
    multiple=True,
    help="Kernels of the corpus (`kernelcast corpus ls`), such as 'nbody' or 'npb_*/*'; may be "
    "repeated.  [default: all kernels]",
)
@option.count(
    "--sizes",
    default=_DEFAULTS.sizes,
    metavar="K",
    says="Sizes of each kernel; other local sizes than the usual one get every other size.",
)
@option.count(
    "--local-sizes",
    default=_DEFAULTS.local_sizes,
    metavar="L",
    says="Local sizes of each kernel at most. With 1, all kernels are done sooner; a later "
    "collection with more adds the others.",
)
@option.runs(_DEFAULTS.runs, "Whole runs of each launch; twice as many where they disagree.")
@option.count(
    "--multiples",
    default=_DEFAULTS.multiples,
    least=0,
    metavar="K",
    says="Sample at 1 and 2 up to K and K + 1 times saturation too, for the study of sampling "
    "points; estimates do not need it.",
)
@click.option(
    "--counters/--no-counters",
    "counts",
    default=_DEFAULTS.counts,
    help="Count by an instrumented run, or from the source alone, which is sooner done.",
)
@click.option(
    "--shortest",
    "shortest_s",
    metavar="SECONDS",
    type=option.POSITIVE,
    default=_DEFAULTS.shortest_s,
    help="Shortest time of a whole launch that sizes are chosen for.",
)
@click.option(
    "--longest",
    "longest_s",
    metavar="SECONDS",
    type=option.POSITIVE,
    default=_DEFAULTS.longest_s,
    help="Longest time of a whole launch that sizes are chosen for.",
)
@click.option(
    "--sizes-of",
    metavar="ID",
    help="Collect at the sizes of this device's rows in the store, so that both devices have the "
    "same launches and can be ranked; those that take over four times the longest time are left "
    "out. An id or its beginning.  [default: sizes chosen for each device]",
)
@click.option(
    "--time-budget",
    "budget_s",
    metavar="TIME",
    callback=parse_duration,
    help="Begin no further row after this time, such as 30m or 2h.",
)
@click.option(
    "--resume",
    "_resume",
    is_flag=True,
    expose_value=False,
    help="Go on where an earlier collection ended. That is what always happens: rows that are "
    "there are not measured again, unless they were disturbed or are of an earlier sampler.",
)
@option.flag(
    "--retry-failures",
    "retries_failures",
    says="Try launches again that failed in an earlier collection.",
)
@store_option
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Collect over a Dask cluster, such as tcp://host:8786: one worker per machine, rows into "
    "a store that all of them reach; needs kernelcast[cluster].",
)
@option.seed
@option.timeout(DEFAULT_ROW_TIMEOUT_S, "Time limit of one row.", name="row_timeout_s")
@option.json("Print JSON instead of a table: a list, one object per device.")
@option.debug
@click.pass_context
def collect_command(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - CollectRequest has the types
    """Measure kernels of the corpus and keep what models learn from.

    Of each kernel at each size: features, samples of a few work-groups, whole runs. Each row is
    stored as soon as it is measured, in transactions: Ctrl-C and kill lose the row in progress at
    most, and the same command goes on. A kernel that crashes or hangs becomes a failure record.
    Devices are measured one after the other; let nothing else run beside. Errors and progress go
    to standard error.

    Exit status: 0 when all rows are there, 1 when some failed, 2 for bad input, 130 after Ctrl-C.
    """
    # Databases and models take longer to import than all other commands do.
    from kernelcast.cli.collect.run import CollectRequest, run_collection

    settings = take_fields(CollectionSettings, options)
    ctx.exit(run_collection(CollectRequest(settings=settings, **options)))
