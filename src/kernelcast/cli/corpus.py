"""``kernelcast corpus``."""

from collections.abc import Mapping
from pathlib import Path

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import Collected, ExitStatus, present, progress, show
from kernelcast.collection.corpus_problems import (
    DEFAULT_CHECK_TIMEOUT_S,
    CheckOutcome,
    CheckStatus,
    check_on_devices,
    write_runnable_copy,
)
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.problem_file import read_parameters
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.plain import to_plain
from kernelcast.reports.numbers import format_seconds
from kernelcast.reports.presenter import Table
from kernelcast.training_data.applications import find_applications, find_kernels


@click.group
def corpus() -> None:
    """List, check and copy the kernels of the benchmark corpus.

    A PATTERN is a kernel's name, application/stem, or a glob such as 'nbody/*'. Without a slash
    it names an application, a kernel or a kernel of the sampling paper's Table 2.
    """


@option.command("ls", of=corpus)
def list_kernels() -> None:
    """List the kernels with their size parameters and local sizes."""
    content = [
        {
            "kernel": kernel.name, "application": application.name,
            "suite": application.suite.value, "title": application.title,
            "table_2": kernel.table_2,
            "size": {one.removeprefix("is_"): x for one, x in to_plain(kernel.size).items()},
            "local_sizes": [list(sizes) for sizes in kernel.local_sizes],
            "fp64": kernel.uses_fp64, "note": kernel.note, "problem": str(kernel.problem_path),
        }
        for application in find_applications()
        for kernel in application.kernels
    ]  # fmt: skip
    present(content, Table.of(content, {
        "kernel": "text", "suite": "text", "Table 2": ("text", "table_2"),
        "size": ("text", lambda one: "{parameter} {least:,} to {most:,}".format(**one["size"])),
        "local sizes": ("text", lambda one: (
            ", ".join("x".join(map(str, sizes)) for sizes in one["local_sizes"])
        )),
        "fp64": ("text", lambda one: "yes" if one["fp64"] else ""),
        "what it computes": ("text", "title"),
    }))  # fmt: skip


@option.command(of=corpus)
def check(
    pattern: str = option.argument("[PATTERN]", default="*", required=False),
    device_ids: tuple[str, ...] = option.device,
    timeout_s: float = option.given(
        "--timeout SECONDS",
        "Time limit in seconds for each kernel on each device.",
        default=DEFAULT_CHECK_TIMEOUT_S,
        type=option.POSITIVE,
    ),
) -> ExitStatus:
    """Run the kernels that match PATTERN and compare what they compute with NumPy.

    Small launches, with each local size that a kernel is meant for, in processes of their own.
    Kernels that need what a device lacks are skipped there. Ctrl-C prints what is done.

    Exit status: 0 when all passed or were skipped, 1 when one did not, 2 for bad input, 130 after
    Ctrl-C.
    """
    kernels = find_kernels(pattern)
    collected = Collected[CheckOutcome]()
    outcomes = collected.answers
    with collected.until_interrupted(), progress() as report:
        report("looking for devices")
        devices = choose_devices(device_ids)
        outcomes.extend(check_on_devices(kernels, devices, timeout_s=timeout_s, report=report))
    counts = {status: sum(one.status is status for one in outcomes) for status in CheckStatus}
    words = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    content = [{**to_plain(one), "seconds": round(one.seconds, 3)} for one in outcomes]
    # A row per kernel, a column per device.
    names = dict.fromkeys(one.device_id for one in outcomes)
    cells = {
        (one.kernel, one.device_id): f"passed in {format_seconds(one.seconds)}"
        if one.status is CheckStatus.PASSED
        else one.status.value
        for one in outcomes
    }
    table = Table(
        columns=dict.fromkeys(("kernel", *names), "text"),
        rows=[
            (kernel, *(cells.get((kernel, device), "") for device in names))
            for kernel in dict.fromkeys(one.kernel for one in outcomes)
        ],
    )
    present(content, *((table, words) if outcomes else ()))
    collected.failures += [
        (f"{one.kernel} on {one.device_id}", KernelcastError(f"{one.status}: {one.explanation}"))
        for one in outcomes
        if one.status in {CheckStatus.DIFFERS, CheckStatus.FAILED}
    ]
    return collected.conclude()


@option.command(json="", of=corpus)
def write(
    pattern: str = option.argument("PATTERN"),
    folder: Path = option.argument("FOLDER", type=option.FOLDER),
    parameters: Mapping[str, int] = option.numbers(
        "--param NAME=VALUE",
        "Replace a parameter of the problem files that have it, for example N=2**20; may be "
        "repeated.",
    ),
) -> None:
    """Write the kernels that match PATTERN into FOLDER, ready to be run and changed.

    Each gets a folder application/stem with its problem file, source and generated inputs; the
    problem file works with every other command. Prints the problem files' names.
    """
    kernels = find_kernels(pattern)
    names = {name for kernel in kernels for name in read_parameters(kernel.problem_path)}
    if unknown := parameters.keys() - names:
        raise InputError(
            f"{pattern}: no parameter is called {', '.join(sorted(unknown))}; there are: "
            f"{', '.join(sorted(names))}"
        )
    for kernel in kernels:
        show(str(write_runnable_copy(kernel, folder, parameters)))
