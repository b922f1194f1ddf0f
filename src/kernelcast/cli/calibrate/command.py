"""``kernelcast calibrate``."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from kernelcast.calibration.calibration import (
    Calibration,
    Progress,
    calibrate_device,
    list_benchmarks,
)
from kernelcast.cli import options as option
from kernelcast.cli.calibrate.request import CalibrateRequest
from kernelcast.cli.calibrate.tables import make_comparison, make_report
from kernelcast.cli.collecting import Collected
from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.terminal import (
    ExitStatus,
    complain,
    show,
    show_json,
    show_line,
)
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.machine_file import machine_to_plain
from kernelcast.launches.machines import find_machine
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError, NoDeviceError
from kernelcast.records.machine import MachineDescription
from kernelcast.reports.machine.page import save_page
from kernelcast.reports.machine_comparison import compare_machines, comparison_to_json
from kernelcast.reports.numbers import format_seconds

_Outcomes = Collected[tuple[DeviceDescription, Calibration | KernelcastError]]


@click.command(short_help="Measure what devices can do; describe machines.")
@option.devices(
    "Calibrate this device only (its id or the beginning of it, see `kernelcast devices`); may be "
    "repeated.  [default: all devices]"
)
@option.flag(
    "--quick",
    "is_quick",
    says="Fewer points and repeats: a minute on an idle machine; progress tells what is left.",
)
@option.flag("--full", "is_full", says="More points and repeats: five minutes.")
@click.option(
    "--only",
    metavar="NAME",
    multiple=True,
    help="Run this microbenchmark only and add what it finds to the description that is there; "
    "may be repeated.",
)
@option.flag("--list", "wants_list", says="List the microbenchmarks and end.")
@option.flag(
    "--fresh",
    "is_fresh",
    says="Measure everything, also what an interrupted calibration has measured already.",
)
@option.file(
    "--output",
    says="Write the description to FILE (YAML).  [default: machines/ID.yaml in the data folder]",
)
@option.file(
    "--report",
    metavar="OUT.html",
    says="Also write a page with figures to OUT.html; needs kernelcast[plot].",
)
@click.option(
    "--machine",
    metavar="NAME",
    help="Measure nothing: show a description that is there, by the id of a calibrated device, "
    "the name of a shipped description or a file.",
)
@click.option(
    "--compare",
    "compared",
    metavar="A B",
    nargs=2,
    help="Measure nothing: show two descriptions side by side.",
)
@option.json(
    "Print JSON instead of tables: a list with one object per device, microbenchmark or compared "
    "number."
)
@option.debug
@click.pass_context
def calibrate(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - CalibrateRequest has the types
    """Measure what devices can do and write machine descriptions.

    Microbenchmarks run one after the other, each in a process of its own: one that crashes is
    named, the others go on. What each finds is kept at once: after Ctrl-C the same command goes
    on where it was. The description is a YAML file in the data folder (KERNELCAST_DATA) that the
    analytic models read and people may edit. Errors and progress go to standard error.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    request = CalibrateRequest(**options)
    if request.wants_list:
        _show_benchmarks(as_json=request.as_json)
    elif request.compared is not None:
        _show_comparison(*request.compared, as_json=request.as_json)
    elif request.machine is not None:
        _show_machine(request.machine, request)
    else:
        ctx.exit(_calibrate(request))


def _show_benchmarks(*, as_json: bool) -> None:
    titles = list_benchmarks()
    if as_json:
        show_json([{"name": name, "title": title} for name, title in titles.items()])
        return
    width = max(map(len, titles), default=0)
    for name, title in titles.items():
        show_line(f"{name:{width}}  {title}")


def _show_comparison(first: str, second: str, *, as_json: bool) -> None:
    ours, theirs = find_machine(first), find_machine(second)
    pairs = compare_machines(ours, theirs)
    if as_json:
        show_json(comparison_to_json(pairs))
        return
    show(make_comparison(ours, theirs, pairs))
    common = [one.is_within for one in pairs if one.is_within is not None]
    show_line(f"{sum(common)} of {len(common)} numbers that both have overlap in their intervals")


def _show_machine(name: str, request: CalibrateRequest) -> None:
    machine = find_machine(name)
    if request.as_json:
        show_json([{"device_id": machine.id, "machine": machine_to_plain(machine)}])
    else:
        show(make_report(machine))
    _write_report(request, [machine])


def _calibrate(request: CalibrateRequest) -> ExitStatus:
    try:
        devices = choose_devices(request.device_ids)
    except NoDeviceError:
        if request.as_json:
            show_json([])
        raise
    if request.output is not None and len(devices) > 1:
        msg = f"--output takes one device, found {len(devices)}; choose one by --device"
        raise InputError(msg)
    with progress_bar(is_wanted=not request.as_json) as tell:
        outcomes = _collect(
            request,
            devices,
            lambda one: tell(one.done, one.total, describe(one), one.remaining_s),
        )
    _present(outcomes, request)
    machines = [one.machine for _, one in outcomes.answers if isinstance(one, Calibration)]
    if machines:
        _write_report(request, machines)
    return outcomes.status


def describe(progress: Progress) -> str:
    """Say what is at work.

    Examples
    --------
    >>> describe(Progress(device_id="a", done=0, total=2, title="barriers", stage="measuring"))
    'barriers: measuring (a)'
    """
    what = ": ".join(filter(None, [progress.title, progress.stage]))
    return f"{what} ({progress.device_id})"


def _collect(
    request: CalibrateRequest,
    devices: Sequence[DeviceDescription],
    report: Callable[[Progress], None],
) -> _Outcomes:
    """Calibrate device by device; Ctrl-C ends it and keeps what is there."""
    settings = request.settings()
    outcomes = _Outcomes(
        when_interrupted="what was measured is kept, the same command goes on from there"
    )
    with outcomes.until_interrupted():
        for device in devices:
            try:
                outcomes.answers.append((device, calibrate_device(device, settings, report=report)))
            except InputError:
                raise  # the same for every device, such as a folder that cannot be written
            except KernelcastError as error:
                outcomes.answers.append((device, error))
                outcomes.failures.append(("", error))
    return outcomes


def _present(outcomes: _Outcomes, request: CalibrateRequest) -> None:
    if request.as_json:
        last = sorted(outcomes.answers, key=lambda one: isinstance(one[1], KernelcastError))
        show_json([_to_json(device, one) for device, one in last])
    for device, one in outcomes.answers:
        if isinstance(one, KernelcastError):
            continue
        if not request.as_json:
            show(make_report(one.machine))
            show_line(_summarise(one))
        for name, reason in one.failed.items():
            complain(f"{device.id}: {name} failed: {reason}")
    outcomes.complain()


def _summarise(calibration: Calibration) -> str:
    took = format_seconds(sum(calibration.durations_s.values()))
    resumed = f", {len(calibration.resumed)} more had run before" if calibration.resumed else ""
    ran = len(calibration.durations_s)
    return f"{ran} microbenchmarks in {took}{resumed}; written to {calibration.path}"


def _to_json(device: DeviceDescription, one: Calibration | KernelcastError) -> dict[str, object]:
    about = {"device": device.name, "device_id": device.id}
    if isinstance(one, KernelcastError):
        return {**about, "error_message": str(one)}
    return {
        **about,
        "file": str(one.path),
        "durations_seconds": dict(one.durations_s),
        "resumed": list(one.resumed),
        "failed": dict(one.failed),
        "machine": machine_to_plain(one.machine),
    }


def _write_report(request: CalibrateRequest, machines: Sequence[MachineDescription]) -> None:
    if request.report is None:
        return
    save_page(request.report, machines)
    if not request.as_json:
        show_line(f"report written to {request.report}")
