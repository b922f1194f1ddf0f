"""``kernelcast trace``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.collecting import Collected, Report, prefix
from kernelcast.cli.options import take_fields
from kernelcast.cli.terminal import ExitStatus, progress, show, show_json, show_line
from kernelcast.cli.trace.plot import save_trace_plot
from kernelcast.cli.trace.table import list_remarks, make_table, trace_to_json
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S
from kernelcast.launches.trace_task import TraceSettings
from kernelcast.launches.tracing import trace_on_devices
from kernelcast.records.errors import InputError
from kernelcast.records.work_group_trace import TraceAnswer, TraceMethod
from kernelcast.reports.drawing import check_plot


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The command line of ``kernelcast trace``; fields are its options."""

    problem_file: Path
    device_ids: tuple[str, ...]
    settings: TraceSettings
    parameters: Mapping[str, int | float]
    timeout_s: float
    as_json: bool
    plot_file: Path | None

    def __post_init__(self) -> None:
        check_plot(self.plot_file)


@click.command(
    context_settings={"show_default": True},
    short_help="Show when each work-group of a kernel begins and ends.",
)
@click.argument("problem_file", metavar="P.yaml", type=option.FILE)
@option.device
@option.count(
    "--work-groups",
    says="Trace about the first N work-groups: part of a row, whole rows or whole planes.  "
    "[default: all, at most 10000]",
)
@click.option(
    "--method",
    type=click.Choice([one.value for one in TraceMethod]),
    default=TraceMethod.AUTO.value,
    help="By a clock on the device, by the steps of t(n), or by what the device offers.",
)
@option.seed
@option.parameters
@option.timeout(
    DEFAULT_TIMEOUT_S,
    "Time limit in seconds for each device; the process that runs the kernel is stopped then.",
    kind=float,
)
@option.json_list
@option.plot("Draw the timelines to FILE (png, pdf, svg); needs kernelcast[plot].")
@option.debug
@click.pass_context
def trace(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - _Request has the types
    """Show when each work-group of a problem file's kernel begins and ends on each device.

    A copy of the kernel, in which every work-group reads a clock at its begin and end, runs once
    on copies of the buffers. That shows the waves, the measured P_sat (work-groups active at once
    per compute unit) and the staircase of work-groups that share a compute unit. Where a device
    has no such clock, launches of 1, 2, 3, ... work-groups are timed instead, and the answer says
    so. Errors and progress go to standard error. Ctrl-C prints what is done.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    options["method"] = TraceMethod(options["method"])
    request = _Request(settings=take_fields(TraceSettings, options), **options)
    with progress(is_wanted=not request.as_json) as report:
        collected = _collect(request, report)
    _present(collected, request)
    if request.plot_file is not None and any(one.trace for one in collected.answers):
        save_trace_plot(request.plot_file, collected.answers)
    if collected.status is not ExitStatus.ANSWERED:
        ctx.exit(collected.status)


def _collect(request: _Request, report: Report) -> Collected[TraceAnswer]:
    """Ask every device; Ctrl-C ends the asking and keeps what is there."""
    problem = read_problem(request.problem_file, parameters=request.parameters)
    collected = Collected[TraceAnswer]()
    with collected.until_interrupted():
        report("looking for devices")
        devices = choose_devices(request.device_ids)
        for one in trace_on_devices(
            problem,
            devices,
            settings=request.settings,
            timeout_s=request.timeout_s,
            report=prefix(report, f"{problem.name} on "),
        ):
            collected.answers.append(one)
    errors = [(one.problem, one.error) for one in collected.answers if one.error is not None]
    is_refused = len(errors) == len(collected.answers) and all(
        isinstance(error, InputError) for _, error in errors
    )
    (collected.refusals if is_refused else collected.failures).extend(errors)
    return collected


def _present(collected: Collected[TraceAnswer], request: _Request) -> None:
    """Print traces and remarks to standard output, every error to standard error."""
    answers = collected.answers
    if request.as_json:
        show_json([trace_to_json(one) for one in answers])
    elif answers:
        show(make_table(answers))
        for remark in list_remarks(answers):
            show_line(remark)
    collected.complain()
