"""Runs ``kernelcast tune``."""

import json
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import click
from rich.table import Table

from kernelcast.cli import terminal
from kernelcast.cli.collecting import Collected
from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.terminal import ExitStatus, show, show_json, show_line
from kernelcast.launches.devices import choose_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.reports.numbers import format_seconds
from kernelcast.reports.targets import check_target, writing
from kernelcast.tuning.api import TuneProgress, tune_on_device
from kernelcast.tuning.ranking import several_processes
from kernelcast.tuning.report import (
    TunedConfiguration,
    TuneFailure,
    TuneReport,
    report_to_json,
    report_to_t4,
)
from kernelcast.tuning.settings import TuneSettings
from kernelcast.tuning.space import SearchSpace, read_space
from kernelcast.tuning.t1 import read_t1


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    """The command line of ``kernelcast tune``; fields are its options."""

    problem_file: Path | None
    device_ids: tuple[str, ...]
    settings: TuneSettings
    parameters: Mapping[str, int | float]
    save_file: Path | None
    t1_file: Path | None
    t4_file: Path | None
    as_json: bool

    def __post_init__(self) -> None:
        if (self.problem_file is None) == (self.t1_file is None):
            msg = "give one problem: a problem file, or --t1 T1.json"
            raise click.UsageError(msg)
        if self.t1_file is not None and self.parameters:
            msg = "--param fixes values of a problem file; edit the T1 file instead"
            raise click.UsageError(msg)
        if self.t4_file is not None and not self.settings.measure:
            msg = "--t4 writes what was measured: give --measure as well"
            raise click.UsageError(msg)
        for path in (self.save_file, self.t4_file):
            if path is not None:
                check_target(path)

    def space(self) -> SearchSpace:
        """Read the configurations."""
        if self.t1_file is not None:
            return read_t1(self.t1_file)
        assert self.problem_file is not None
        return read_space(self.problem_file, parameters=self.parameters)


def run_tuning(request: TuneRequest) -> ExitStatus:
    """Tune, show what was found, and give the exit status."""
    space = request.space()
    devices = choose_devices(request.device_ids)
    if request.t4_file is not None and len(devices) > 1:
        msg = f"--t4 takes the results of one device, here are {len(devices)}: choose by --device"
        raise InputError(msg)
    collected = Collected[TuneReport | TuneFailure](
        when_interrupted="measured runs are kept, the same command goes on where this ended"
    )
    found = collected.answers
    with collected.until_interrupted(), several_processes(space) as executor:
        for device in devices:
            found.append(_tune(space, device, request, executor))
    _show(found, request)
    if request.t4_file is not None and found and isinstance(found[0], TuneReport):
        with writing(request.t4_file):
            text = json.dumps(report_to_t4(found[0]), indent=1) + "\n"
            request.t4_file.write_text(text, encoding="utf-8")
    collected.failures = [
        ("", KernelcastError(one.message)) for one in found if isinstance(one, TuneFailure)
    ]
    collected.complain()
    return collected.status


def _tune(
    space: SearchSpace,
    device: DeviceDescription,
    request: TuneRequest,
    executor: Executor | None,
) -> TuneReport | TuneFailure:
    with progress_bar(is_wanted=not request.as_json) as tell:

        def report(progress: TuneProgress) -> None:
            tell(progress.done, progress.total, f"{progress.device_id}: {progress.stage}")

        try:
            return tune_on_device(
                space,
                device,
                settings=request.settings,
                save=request.save_file,
                executor=executor,
                report=report,
            )
        except KernelcastError as error:
            return TuneFailure(
                problem=space.name,
                device=device.name,
                device_id=device.id,
                message=f"{space.name}: {error}",
            )


def _show(found: list[TuneReport | TuneFailure], request: TuneRequest) -> None:
    if request.as_json:
        show_json([report_to_json(one, top=request.settings.top) for one in found])
        return
    for one in found:
        if isinstance(one, TuneReport):
            show(make_table(one, top=request.settings.top))
            for line in list_lines(one):
                show_line(line)


def make_table(report: TuneReport, *, top: int) -> Table:
    """Lay the best configurations out, one per row, best first."""
    shown = [one for one in report.configurations if not one.obstacle][:top]
    is_sampled = any(one.sampled_s is not None for one in shown)
    is_measured = any(one.runs_s for one in shown)
    numbers = [*report.names, "local size", "predicted"]
    numbers += ["sampled"] * is_sampled + ["measured"] * is_measured
    table = terminal.make_table(
        *numbers, "limited by", right=numbers, title=f"{report.problem} on {report.device_id}"
    )
    for one in shown:
        cells = [*(f"{one.parameters[name]:g}" for name in report.names)]
        cells += [" x ".join(map(str, one.local_size)), format_seconds(one.predicted_s)]
        cells += [format_seconds(one.sampled_s)] if is_sampled else []
        cells += [format_seconds(one.measured_s)] if is_measured else []
        table.add_row(*cells, one.limiter.partition(":")[0])
    return table


def list_lines(report: TuneReport) -> list[str]:
    """Say how much was searched, what it cost, and what to know."""
    total = len(report.configurations)
    barred = [one for one in report.configurations if one.obstacle]
    lines = [
        f"{total} configurations, {total - len(barred)} of them possible; models took "
        f"{format_seconds(report.models_s)}"
        + (f", sampling {format_seconds(report.sampling_s)}" if report.sampling_s else "")
        + (f", measuring {format_seconds(report.measuring_s)}" if report.measuring_s else "")
    ]
    pick = report.pick
    if pick is None:
        lines.append("none of them can be launched")
    else:
        lines.append(f"use: {_name(pick)}")
    if barred:
        lines.append(f"left out, for example: {_name(barred[0])}: {barred[0].obstacle}")
    lines += [f"warning: {one}" for one in report.warnings]
    return lines


def _name(one: TunedConfiguration) -> str:
    return " ".join(f"{name}={value:g}" for name, value in one.parameters.items())
