"""``kernelcast estimate``."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, progress, show, show_json, show_line
from kernelcast.launches.child_processes import start_ahead
from kernelcast.launches.settings import DEFAULT_COVERAGE, DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.records.errors import NoDeviceError

if TYPE_CHECKING:
    from kernelcast.cli.collecting import CollectedEstimates
    from kernelcast.cli.request import EstimateRequest

_DEFAULTS = EstimateSettings()


@click.command(
    context_settings={"show_default": True},
    short_help="Predict how long kernels take on each device.",
)
@click.argument("problem_files", metavar="P.yaml...", nargs=-1, type=option.FILE)
@option.device
@option.flag("--measure", says="Also time whole runs of the kernel and show the error.")
@option.runs(
    _DEFAULTS.measured_runs, "Whole runs timed by --measure, after one that is not counted."
)
@click.option(
    "--budget",
    metavar="SHARE",
    type=float,
    default=_DEFAULTS.plan.budget,
    help="Device time that sampling may take, as a share of the predicted time (of launches below "
    "0.1 s 4 ms at least, or half of a shorter one): above 0, at most 1.",
)
@click.option(
    "--coverage",
    metavar="SHARE",
    type=float,
    default=DEFAULT_COVERAGE,
    help="Share of true times that the interval shall hold: between 0 and 1.",
)
@option.seed
@option.parameters
@option.timeout(
    DEFAULT_TIMEOUT_S,
    "Time limit in seconds for each problem on each device, build and measurement included; the "
    "process that runs the kernel is stopped then.",
    kind=float,
)
@click.option(
    "--within",
    "within_s",
    metavar="SECONDS",
    type=float,
    help="Wait so long for each answer, builds and all else included, at most 60 s: the best that "
    "is known by then answers, by samples if they fit, and its warnings say why it has none.",
)
@option.least_gain
@option.flag(
    "--no-history",
    says="Let nothing older count: no observation of this launch or of other sizes, no samples.",
)
@option.flag(
    "--no-sampling",
    says="Run nothing: answer from earlier observations, or from the source by the analytic model "
    "of a calibrated device.",
)
@option.flag(
    "--explain",
    says="Say how each answer was obtained, and why not in a better way. With --json it is always "
    "there.",
)
@option.json_list
@option.file("--record", "record_file", says="Write the raw samples to FILE (JSON), for --replay.")
@option.file(
    "--replay",
    "replay_file",
    says="Answer from the samples in FILE instead of from devices, with the budget and seed they "
    "were recorded with. Without P.yaml, all that is in FILE.",
)
@option.plot(
    "Draw predicted times with their intervals, beside measured ones, to FILE (png, pdf, svg); "
    "needs kernelcast[plot]."
)
@option.debug
@click.pass_context
def estimate(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - EstimateRequest has the types
    """Predict how long the kernels of problem files take on each device.

    A few work-groups are run and timed; the whole launch's time follows from them, with an
    interval. A learned model of the device, where there is one, corrects it. A
    launch that was observed before is answered from its observations, one that was sampled within
    the last hour from those samples, where more would gain less than they cost; unless whole runs
    are measured or samples recorded. Devices answer one after the other, each in a process of its
    own. Of several problems those that can be read are answered. Errors and progress go to
    standard error. Ctrl-C prints what is done.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    began = datetime.now(UTC)
    if options["replay_file"] is None and options["problem_files"]:
        # What follows takes as long to import as the process to start.
        device_ids = options["device_ids"] or ("",)
        start_ahead(None if options["no_sampling"] else device_ids[0])
    from kernelcast.cli.collecting import collect, read_problems
    from kernelcast.cli.request import EstimateRequest

    request = EstimateRequest(**options)
    problems, refusals = read_problems(request.problem_files, request.parameters)
    try:
        with progress(is_wanted=not request.as_json) as report:
            collected = collect(request, problems, report, refusals)
    except NoDeviceError:
        if request.as_json:
            show_json([])
        raise
    _present(collected, request, began)
    if request.record_file is not None and collected.recordings:
        from kernelcast.launches.recordings import save_recordings

        save_recordings(request.record_file, collected.recordings)
    if request.plot_file is not None and any(one.estimate for one in collected.answers):
        from kernelcast.cli.estimate.plot import save_plot

        save_plot(request.plot_file, collected.answers)
    if collected.status is not ExitStatus.ANSWERED:
        ctx.exit(collected.status)


def _present(collected: "CollectedEstimates", request: "EstimateRequest", began: datetime) -> None:
    """Print answers and warnings to standard output, every error to standard error."""
    from kernelcast.cli.estimate.explanation import list_explanations
    from kernelcast.cli.estimate.table import list_kept_samples, list_warnings, make_table

    if request.as_json:
        show_json([answer.to_dict() for answer in collected.answers])
    elif any(answer.estimate for answer in collected.answers):
        wide, narrow = (
            make_table(
                collected.answers,
                coverage=request.coverage,
                is_measured=request.measure,
                is_narrow=is_narrow,
            )
            for is_narrow in (False, True)
        )
        show(wide, narrow=narrow)
        for line in list_kept_samples(collected.answers, began):
            show_line(f"note: {line}")
        for warning in list_warnings(collected.answers):
            show_line(f"warning: {warning}")
        for line in list_explanations(collected.answers) if request.explain else ():
            show_line(line)
    collected.complain()
