"""``kernelcast collect``."""

import re
from dataclasses import dataclass
from typing import Any

import click

from kernelcast.cli.collect_summary import list_complaints, make_summary, outcome_to_json
from kernelcast.cli.options import debug_option, device_option
from kernelcast.cli.progress_bar import Standing, progress_bar
from kernelcast.cli.status import ExitStatus
from kernelcast.cli.terminal import complain, show, show_json, show_line
from kernelcast.predictor.collection.cluster import (
    collect_on_cluster,
    connect,
    find_cluster_devices,
)
from kernelcast.predictor.collection.collection import CollectionOrder, collect
from kernelcast.predictor.collection.kernel_rows import Place
from kernelcast.predictor.collection.progress import CollectionOutcome, CollectionProgress
from kernelcast.predictor.collection.settings import DEFAULT_ROW_TIMEOUT_S, CollectionSettings
from kernelcast.predictor.collection.size_plans import SizePlans
from kernelcast.predictor.data_folder import data_folder, default_store
from kernelcast.predictor.devices import choose_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.training_data.applications import CorpusKernel, find_kernels
from kernelcast.training_data.store import open_store

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The command line of ``kernelcast collect``; fields are its options."""

    device_ids: tuple[str, ...]
    patterns: tuple[str, ...]
    sizes: int
    runs: int
    shortest_s: float
    longest_s: float
    budget_s: float | None
    retries_failures: bool
    store: str | None
    scheduler: str | None
    seed: int
    timeout_s: float
    as_json: bool

    def kernels(self) -> tuple[CorpusKernel, ...]:
        """Give the kernels asked for, each once."""
        found = [kernel for pattern in self.patterns or ("*",) for kernel in find_kernels(pattern)]
        return tuple({kernel.name: kernel for kernel in found}.values())

    def settings(self) -> CollectionSettings:
        """Give how rows are measured."""
        return CollectionSettings(
            sizes=self.sizes,
            runs=self.runs,
            shortest_s=self.shortest_s,
            longest_s=self.longest_s,
            seed=self.seed,
            row_timeout_s=self.timeout_s,
        )

    def order(self, devices: tuple[DeviceDescription, ...]) -> CollectionOrder:
        """Give what is to be collected."""
        return CollectionOrder(
            kernels=self.kernels(),
            devices=devices,
            settings=self.settings(),
            retries_failures=self.retries_failures,
            budget_s=self.budget_s,
        )


@click.command(
    "collect",
    context_settings={"show_default": True},
    short_help="Measure the benchmark corpus: samples, features, whole runs.",
)
@device_option
@click.option(
    "--kernels",
    "patterns",
    metavar="GLOB",
    multiple=True,
    help="Kernels of the corpus (`kernelcast corpus ls`), such as 'nbody' or 'npb_*/*'; may be "
    "repeated.  [default: all kernels]",
)
@click.option(
    "--sizes",
    metavar="K",
    type=click.IntRange(min=1),
    default=_DEFAULTS.sizes,
    help="Sizes of each kernel; other local sizes than the usual one get every other size.",
)
@click.option(
    "--runs",
    metavar="N",
    type=click.IntRange(min=1),
    default=_DEFAULTS.runs,
    help="Whole runs of each launch; twice as many where they disagree.",
)
@click.option(
    "--shortest",
    "shortest_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=_DEFAULTS.shortest_s,
    help="Shortest time of a whole launch that sizes are chosen for.",
)
@click.option(
    "--longest",
    "longest_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=_DEFAULTS.longest_s,
    help="Longest time of a whole launch that sizes are chosen for.",
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
    "there are never measured again.",
)
@click.option(
    "--retry-failures",
    "retries_failures",
    is_flag=True,
    help="Try launches again that failed in an earlier collection.",
)
@click.option(
    "--store",
    metavar="PLACE",
    help="Where rows go: a file (SQLite) or a URL (PostgreSQL).  [default: observations.sqlite in "
    "the data folder]",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Collect over a Dask cluster, such as tcp://host:8786: one worker per machine, rows into "
    "a store that all of them reach; needs kernelcast[cluster].",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Seed of random buffer contents and of the sampled places.",
)
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_ROW_TIMEOUT_S,
    help="Time limit of one row.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of a table: a list, one object "
    "per device.",
)  # fmt: skip
@debug_option
@click.pass_context
def collect_command(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - _Request has the types
    """Measure kernels of the corpus and keep what models learn from.

    Of each kernel at each size: features, samples of a few work-groups, whole runs. Each row is
    stored as soon as it is measured, in transactions: Ctrl-C and kill lose the row in progress at
    most, and the same command goes on. A kernel that crashes or hangs becomes a failure record.
    Devices are measured one after the other; let nothing else run beside. Errors and progress go
    to standard error.

    Exit status: 0 when all rows are there, 1 when some failed, 2 for bad input, 130 after Ctrl-C.
    """
    request = _Request(**options)
    outcome = _collect(request)
    for complaint in list_complaints(outcome):
        complain(complaint)
    if request.as_json:
        show_json(outcome_to_json(outcome))
    else:
        show(make_summary(outcome))
        if outcome.is_out_of_time:
            show_line("the time budget is spent; the same command goes on where this one ended")
    ctx.exit(_status_of(outcome))


def _collect(request: _Request) -> CollectionOutcome:
    request.kernels()  # a wrong pattern is told before anything is opened
    with (
        open_store(request.store or default_store()) as store,
        progress_bar(is_wanted=not request.as_json) as tell,
    ):

        def report(progress: CollectionProgress) -> None:
            tell(_stand(progress))

        if request.scheduler is not None:
            with connect(request.scheduler) as client:
                devices = find_cluster_devices(client, request.device_ids)
                return collect_on_cluster(request.order(devices), store, client, report=report)
        folder = data_folder()
        place = Place(
            store=store,
            plans=SizePlans(folder=folder / "collection"),
            cache_folder=folder / "corpus",
        )
        order = request.order(tuple(choose_devices(request.device_ids)))
        return collect(order, place, report=report)


def _stand(progress: CollectionProgress) -> Standing:
    return Standing(
        done=progress.done,
        total=progress.total,
        description=_describe(progress),
        remaining_s=progress.remaining_s,
    )


def _describe(progress: CollectionProgress) -> str:
    return f"{progress.kernel}: {progress.stage} ({progress.device_id}, {progress.rows} rows)"


def _status_of(outcome: CollectionOutcome) -> ExitStatus:
    if outcome.is_interrupted:
        return ExitStatus.INTERRUPTED
    failed = any(one.failures or one.errors for one in outcome.devices)
    return ExitStatus.FAILED if failed else ExitStatus.ANSWERED
