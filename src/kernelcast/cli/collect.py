"""``kernelcast collect``."""

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, present, progress_bar
from kernelcast.cli.training import STORE
from kernelcast.collection.settings import CollectionSettings
from kernelcast.records.arithmetic import evaluate

if TYPE_CHECKING:  # databases and models take longer to import than all other commands do
    from kernelcast.records.device import Progress

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>s|m|min|h)?")
_UNITS_S = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_duration(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Read ``90``, ``90s``, ``30m`` or ``1.5h`` as seconds."""
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match is None or float(match["number"]) == 0:
        raise click.BadParameter(f"{text!r}: give a time such as 90s, 30m or 1.5h")
    return float(match["number"]) * _UNITS_S[match["unit"]]


def _read_sizes(text: str) -> tuple[int, ...]:
    """Read ``1024,2048``; values may be arithmetic, such as ``2**14``."""
    sizes = tuple(int(evaluate(one)) for one in text.split(",") if one)
    if min(sizes, default=1) < 1:
        raise ValueError("sizes are at least 1")
    return sizes


@option.command(
    "collect", short="Measure kernels, of the corpus or your own: samples, features, whole runs.",
)  # fmt: skip
def collect_command(  # noqa: PLR0913 - each is an option
    device_ids: tuple[str, ...] = option.device,
    patterns: tuple[str, ...] = option.given(
        "--kernels GLOB",
        "Kernels of the corpus or of --problems, such as 'nbody' or 'npb_*/*'; may be repeated.  "
        "[default: all kernels]",
    ),
    problems: Path | None = option.given(
        "--problems DIR",
        "Collect the problem files in this folder instead of the corpus. Each folder in it is a "
        "family of kernels.",
        type=option.FOLDER,
    ),
    own_sizes: Mapping[str, tuple[int, ...]] = option.pairs(
        "--size NAME[=N,...]",
        "For --problems: the parameter that makes kernels larger, and its values; may be "
        "repeated.  [default: the first that adds work-groups, values searched]",
        _read_sizes, "NAME or NAME=N,N,...",
    ),
    settings: CollectionSettings = option.settings(
        sizes=option.given(
            "--sizes K",
            "Sizes of each kernel; half of them with other local sizes than the usual one.",
        ),
        local_sizes=option.given(
            "--local-sizes L",
            "Local sizes of each kernel at most. A later collection with more adds the others.",
        ),
        least_work_groups=option.given(
            "--least-work-groups N", "Leave launches with fewer out."
        ),
        runs=option.given(
            "--runs N",
            "Whole runs of each launch; twice as many where they disagree.",
        ),
        multiples=option.given(
            "--multiples K",
            "Also sample at k and k + 1 times saturation, for k from 1 to K.",
            type=click.IntRange(min=0),
        ),
        counts=option.given(
            "--counters/--no-counters",
            "Count by an instrumented run, or faster from the source alone.",
        ),
        shortest_s=option.given(
            "--shortest SECONDS",
            "Choose sizes of which a whole launch takes at least so long.",
            type=option.POSITIVE,
        ),
        longest_s=option.given(
            "--longest SECONDS",
            "Choose sizes of which a whole launch takes at most so long.",
            type=option.POSITIVE,
        ),
        most_others=option.given(
            "--most-others PROCESSORS",
            "Flag rows beside which other programs kept more processors busy: models do not learn "
            "from them.",
            type=option.POSITIVE,
        ),
        worst_noise=option.given(
            "--worst-noise SHARE",
            "Flag rows whose whole runs differ by more (half their 10-90 % spread over the "
            "median).",
            type=option.POSITIVE,
        ),
        seed=option.seed,
        row_timeout_s=option.given(
            "--timeout SECONDS", "Time limit of one row.", type=option.POSITIVE
        ),
    ),
    sizes_of: str | None = option.given(
        "--sizes-of ID",
        "Collect at the sizes of this device's rows (id or its beginning), so that both devices "
        "can be ranked; sizes that take over four times the longest time are left out.  [default: "
        "sizes chosen for each device]",
    ),
    budget_s: float | None = option.given(
        "--time-budget TIME", "Begin no further row after this time, such as 30m or 2h.",
        type=str, callback=parse_duration,
    ),
    resume: bool = option.given(
        "--resume",
        "Go on where an earlier collection ended, which is always done: only rows that were "
        "disturbed or are of an earlier sampler are measured again.",
    ),
    retries_failures: bool = option.given(
        "--retry-failures", "Try launches again that failed in an earlier collection."
    ),
    place: str | None = STORE,
    scheduler: str | None = option.given(
        "--scheduler ADDRESS",
        "Collect over a Dask cluster, such as tcp://host:8786, with one worker per machine and a "
        "store that all reach; needs kernelcast[cluster].",
    ),
) -> ExitStatus:  # fmt: skip
    """Measure kernels of the corpus, or your own, and keep what models learn from.

    Of each kernel at each size: features, samples of a few work-groups, whole runs. Each row is
    stored as soon as it is measured: Ctrl-C and kill lose the row in progress at most, and the
    same command goes on. A kernel that crashes or hangs becomes a failure record. Devices are
    measured one after the other; let nothing else run.

    Exit status: 0 when all rows are there, 1 when some failed, 2 for bad input, 130 after Ctrl-C.
    """
    from kernelcast.collection.collection import (
        CollectionOrder,
        collect,
        collect_on_cluster,
        find_cluster_devices,
    )
    from kernelcast.collection.own_problems import find_problems
    from kernelcast.launches.data_store import open_data_store
    from kernelcast.launches.devices import choose_devices
    from kernelcast.records.device import match_device_id
    from kernelcast.reports.numbers import format_duration
    from kernelcast.reports.presenter import Table, write_lines
    from kernelcast.training_data.applications import choose_kernels, find_kernels
    from kernelcast.training_data.store import Selection
    from kernelcast.training_data.summary import summarise_store
    from kernelcast.workers import connect_cluster

    # A wrong name is told before anything is opened.
    left_out: Mapping[str, str] = {}
    if problems is not None:
        own, left_out = find_problems(problems, own_sizes)
        kernels = choose_kernels(own, patterns, str(problems))
    elif own_sizes:
        raise click.UsageError("--size is for --problems; the corpus has its own sizes")
    else:
        kernels = find_kernels(*patterns)
    for path, why in left_out.items():
        complain(f"{path} is left out: {why}")
    with ExitStack() as stack:
        store, client = stack.enter_context(open_data_store(place)), None
        if scheduler is not None:
            client = stack.enter_context(connect_cluster(scheduler))
            devices = find_cluster_devices(client, device_ids)
        else:
            devices = tuple(choose_devices(device_ids))
        if sizes_of is not None:
            # Another device may take this many times as long at the same size.
            settings = replace(settings, too_long=4.0)
            known = [one["group"] for one in summarise_store(store, Selection())]
            sizes_of = match_device_id(sizes_of, known)
        order = CollectionOrder(
            kernels=kernels, devices=devices, settings=settings, sizes_of=sizes_of,
            retries_failures=retries_failures, budget_s=budget_s,
        )  # fmt: skip
        foretold_s = settings.foretell_s(kernels) * len(devices)
        most = "" if budget_s is None else f", {format_duration(budget_s)} at most"
        complain(
            f"{len(kernels)} kernels on {len(devices)} devices: about "
            f"{format_duration(foretold_s)} where nothing is there yet{most}"
        )
        tell = stack.enter_context(progress_bar())

        def report(at: "Progress") -> None:
            where = f"{at.words} ({at.device_id}, {at.rows} rows)"
            tell(at.done, at.total, where, at.remaining_s)

        outcome = (
            collect(order, store, report=report)
            if client is None
            else collect_on_cluster(order, store, client, report=report)
        )
    for one in outcome.devices:
        for name, error in one.errors.items():
            complain(f"{one.device_id}: {name}: {error}")
        for failure in one.failures:
            launch = failure.launch
            complain(f"{launch.kernel.label} {dict(launch.parameters)}: {failure.message}")
    table = Table.of(outcome.devices, {
        "device": ("text", "device_id"), "kernels": "whole", "rows measured": ("whole", "measured"),
        "there already": ("whole", "present"), "disturbed": "whole",
        "failed": ("whole", lambda one: len(one.failures) + len(one.errors)),
        "left out": ("whole", lambda one: len(one.skipped)),
    })  # fmt: skip
    content = [one.to_dict() for one in outcome.devices]
    present(content, table, *write_lines("collect.txt", outcome=outcome))
    if outcome.is_interrupted:
        return ExitStatus.INTERRUPTED
    failed = any(one.failures or one.errors for one in outcome.devices)
    return ExitStatus.FAILED if failed else ExitStatus.ANSWERED
