"""``kernelcast corpus``."""

from collections.abc import Mapping
from pathlib import Path

import click

from kernelcast.cli import options as option
from kernelcast.cli.collecting import Collected
from kernelcast.cli.corpus import tables
from kernelcast.cli.terminal import ExitStatus, complain, progress, show, show_json, show_line
from kernelcast.collection.corpus.check_task import CheckOutcome, CheckStatus
from kernelcast.collection.corpus.checks import DEFAULT_CHECK_TIMEOUT_S, check_on_devices
from kernelcast.collection.corpus.copy import write_runnable_copy
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.problem_file import read_parameters
from kernelcast.records.errors import InputError
from kernelcast.training_data.applications import find_applications, find_kernels


@click.group()
def corpus() -> None:
    """List, check and copy the kernels of the benchmark corpus.

    A PATTERN is a kernel's name, application/stem, or a glob such as 'nbody/*'. Without a slash
    it names an application, a kernel or a kernel of the sampling paper's Table 2.
    """


@corpus.command("ls")
@option.json_list
@option.debug
def list_kernels(*, as_json: bool) -> None:
    """List the kernels with their size parameters and local sizes."""
    applications = find_applications()
    if as_json:
        show_json(
            [tables.kernel_to_json(one, kernel) for one in applications for kernel in one.kernels]
        )
    else:
        show(tables.make_kernel_table(applications))


@corpus.command(context_settings={"show_default": True})
@click.argument("pattern", default="*")
@option.device
@option.timeout(DEFAULT_CHECK_TIMEOUT_S, "Time limit in seconds for each kernel on each device.")
@option.json_list
@option.debug
@click.pass_context
def check(
    ctx: click.Context,
    *,
    pattern: str,
    device_ids: tuple[str, ...],
    timeout_s: float,
    as_json: bool,
) -> None:
    """Run the kernels that match PATTERN and compare what they compute with NumPy.

    Small launches, with each local size that a kernel is meant for, in processes of their own.
    Kernels that need what a device lacks are skipped there. Ctrl-C prints what is done.

    Exit status: 0 when all passed or were skipped, 1 when one did not, 2 for bad input, 130 after
    Ctrl-C.
    """
    kernels = find_kernels(pattern)
    collected = Collected[CheckOutcome]()
    with collected.until_interrupted(), progress(is_wanted=not as_json) as report:
        report("looking for devices")
        devices = choose_devices(device_ids)
        for one in check_on_devices(kernels, devices, timeout_s=timeout_s, report=report):
            collected.answers.append(one)
    _present(collected.answers, as_json=as_json)
    collected.complain()
    if collected.is_interrupted:
        ctx.exit(ExitStatus.INTERRUPTED)
    if tables.list_complaints(collected.answers):
        ctx.exit(ExitStatus.FAILED)


@corpus.command()
@click.argument("pattern")
@click.argument("folder", type=option.FOLDER)
@option.parameters_with(
    "Replace a parameter of the problem files that have it, for example N=2**20; may be repeated.",
    has_letter=False,
)
@option.debug
def write(*, pattern: str, folder: Path, parameters: Mapping[str, int]) -> None:
    """Write the kernels that match PATTERN into FOLDER, ready to be run and changed.

    Each gets a folder application/stem with its problem file, source and generated inputs; the
    problem file works with every other command. Prints the problem files' names.
    """
    kernels = find_kernels(pattern)
    known = {name for one in kernels for name in read_parameters(one.problem_path)}
    if not parameters.keys() <= known:
        unknown = ", ".join(sorted(parameters.keys() - known))
        msg = f"{pattern}: no parameter is called {unknown}; there are: {', '.join(sorted(known))}"
        raise InputError(msg)
    for kernel in kernels:
        show_line(str(write_runnable_copy(kernel, folder, parameters=parameters)))


def _present(outcomes: list[CheckOutcome], *, as_json: bool) -> None:
    """Print the outcomes to standard output, what did not pass to standard error as well."""
    if as_json:
        show_json([tables.outcome_to_json(one) for one in outcomes])
    elif outcomes:
        show(tables.make_check_table(outcomes))
        counts = {status: sum(one.status is status for one in outcomes) for status in CheckStatus}
        show_line(", ".join(f"{count} {status}" for status, count in counts.items() if count))
    for complaint in tables.list_complaints(outcomes):
        complain(complaint)
