"""``kernelcast tune``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from kernelcast.cli import options as option
from kernelcast.cli.collecting import Collected
from kernelcast.cli.terminal import ExitStatus, progress_bar, show, show_json
from kernelcast.launches.devices import choose_devices
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.private_files import writing
from kernelcast.reports.numbers import format_seconds
from kernelcast.reports.presenter import Table, Unit
from kernelcast.reports.targets import check_target
from kernelcast.tuning.api import TuneProgress, tune_on_device
from kernelcast.tuning.ranking import several_processes
from kernelcast.tuning.report import (
    TunedConfiguration,
    TuneFailure,
    TuneReport,
    report_to_json,
    report_to_t4,
)
from kernelcast.tuning.settings import TuneModels, TuneSettings
from kernelcast.tuning.space import SearchSpace, read_space
from kernelcast.tuning.t1 import read_t1

_DEFAULTS: Final = TuneSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """Options of ``kernelcast tune``."""

    problem_file: Path | None = option.argument("[P.yaml]")
    device_ids: tuple[str, ...] = option.use(option.device)
    models: TuneModels = option.given(
        "--models",
        "What ranks configurations: the analytic model alone, which runs nothing, or a few "
        "work-groups of those that it likes best as well.",
        default=_DEFAULTS.models.value,
    )
    top: int = option.given(
        "--top K",
        "Configurations that are shown, and measured with --measure.",
        default=_DEFAULTS.top, type=option.COUNT,
    )  # fmt: skip
    measure: bool = option.given("--measure", "Measure the best K as a whole, in turn.")
    runs: int = option.given(
        "--runs N",
        "Measured runs of each; their median counts.",
        default=_DEFAULTS.runs, type=option.COUNT,
    )  # fmt: skip
    sampled: int = option.given(
        "--sampled K",
        "Configurations that `--models hybrid` samples.",
        default=_DEFAULTS.sampled, type=option.COUNT,
    )  # fmt: skip
    parameters: Mapping[str, int | float] = option.numbers(
        "--param NAME=VALUE",
        "Fix a value of the problem file's `parameters`, for example N=2**20; may be repeated.",
    )
    seed: int = option.use(option.seed)
    timeout_s: float = option.given(
        "--timeout SECONDS",
        "Give a configuration up that runs for so long.",
        default=_DEFAULTS.timeout_s, type=option.POSITIVE,
    )  # fmt: skip
    save_file: Path | None = option.given(
        "--save FILE",
        "Keep measured runs in FILE, one JSON object a line, and take them up again from it.  "
        "[default: a file in the user's data folder]",
    )
    t1_file: Path | None = option.given(
        "--t1 T1.json", "Read the problem from a file in the auto-tuning community's T1 format."
    )
    t4_file: Path | None = option.given(
        "--t4 T4.json", "Write what was measured to a file in the T4 format; for one device."
    )
    as_json: bool = option.use(option.json_list)

    def __post_init__(self) -> None:
        if (self.problem_file is None) == (self.t1_file is None):
            msg = "give one problem: a problem file, or --t1 T1.json"
            raise click.UsageError(msg)
        if self.t1_file is not None and self.parameters:
            msg = "--param fixes values of a problem file; edit the T1 file instead"
            raise click.UsageError(msg)
        if self.t4_file is not None and not self.measure:
            msg = "--t4 writes what was measured: give --measure as well"
            raise click.UsageError(msg)
        for path in (self.save_file, self.t4_file):
            if path is not None:
                check_target(path)

    def read_space(self) -> SearchSpace:
        """Read the configurations."""
        if self.t1_file is not None:
            return read_t1(self.t1_file)
        assert self.problem_file is not None
        return read_space(self.problem_file, parameters=self.parameters)


@option.command(short="Find the best launch configuration of a kernel by models.")
def tune(options: TuneOptions) -> ExitStatus:
    """Search the configurations of a problem file for the fastest, by models.

    Lists of values among the file's `parameters` are searched over, `restrictions` leave
    combinations out; without lists, local sizes are searched. No configuration runs as a whole
    unless --measure asks for it; then the best K run in turn, and what was measured is kept, so
    that Ctrl-C loses nothing. The device must have been calibrated.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    settings = option.pick(TuneSettings, options)
    space = options.read_space()
    devices = choose_devices(options.device_ids)
    if options.t4_file is not None and len(devices) > 1:
        msg = f"--t4 takes the results of one device, here are {len(devices)}: choose by --device"
        raise InputError(msg)
    collected = Collected[TuneReport | TuneFailure](
        when_interrupted="measured runs are kept, the same command goes on where this ended"
    )
    with collected.until_interrupted(), several_processes(space) as executor:
        for device in devices:
            with progress_bar(is_wanted=not options.as_json) as tell:

                def report(progress: TuneProgress) -> None:
                    tell(progress.done, progress.total, f"{progress.device_id}: {progress.stage}")

                try:
                    answer: TuneReport | TuneFailure = tune_on_device(
                        space, device, settings=settings, save=options.save_file,
                        executor=executor, report=report,
                    )  # fmt: skip
                except KernelcastError as error:
                    answer = TuneFailure(
                        problem=space.name, device=device.name, device_id=device.id,
                        message=f"{space.name}: {error}",
                    )  # fmt: skip
                    collected.failures.append(("", KernelcastError(answer.message)))
            collected.answers.append(answer)
    if options.as_json:
        show_json([report_to_json(one, top=settings.top) for one in collected.answers])
    reports = [one for one in collected.answers if isinstance(one, TuneReport)]
    for one in () if options.as_json else reports:
        show(list_best(one, top=settings.top), *list_remarks(one))
    if options.t4_file is not None and reports:
        with writing(options.t4_file):
            text = json.dumps(report_to_t4(reports[0]), indent=1) + "\n"
            options.t4_file.write_text(text, encoding="utf-8")
    collected.complain()
    return collected.status


def list_best(report: TuneReport, *, top: int) -> Table:
    """List the best configurations, best first."""
    shown = [
        configuration for configuration in report.configurations if not configuration.obstacle
    ][:top]
    columns: dict[str, Unit] = dict.fromkeys((*report.names, "local size"), "number")
    table = Table(
        columns={**columns, "predicted": "s", "sampled": "s", "measured": "s",
                 "limited by": "text"},
        rows=[
            (
                *(f"{one.parameters[name]:g}" for name in report.names),
                " x ".join(map(str, one.local_size)), one.predicted_s, one.sampled_s,
                one.measured_s, one.limiter.partition(":")[0],
            )
            for one in shown
        ],
        title=f"{report.problem} on {report.device_id}",
    )  # fmt: skip
    is_sampled = any(one.sampled_s is not None for one in shown)
    is_measured = any(one.runs_s for one in shown)
    return table.without(*["sampled"] * (not is_sampled), *["measured"] * (not is_measured))


def list_remarks(report: TuneReport) -> list[str]:
    """Say how much was searched, what it cost, and what to know."""

    def name(one: TunedConfiguration) -> str:
        return " ".join(f"{name}={value:g}" for name, value in one.parameters.items())

    total = len(report.configurations)
    barred = [configuration for configuration in report.configurations if configuration.obstacle]
    lines = [
        f"{total} configurations, {total - len(barred)} of them possible; models took "
        f"{format_seconds(report.models_s)}"
        + (f", sampling {format_seconds(report.sampling_s)}" if report.sampling_s else "")
        + (f", measuring {format_seconds(report.measuring_s)}" if report.measuring_s else ""),
        "none of them can be launched" if report.pick is None else f"use: {name(report.pick)}",
    ]
    if barred:
        lines.append(f"left out, for example: {name(barred[0])}: {barred[0].obstacle}")
    return lines + [f"warning: {warning}" for warning in report.warnings]
