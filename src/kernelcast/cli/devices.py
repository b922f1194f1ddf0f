"""``kernelcast devices``."""

import click
from rich.table import Table

from kernelcast.cli.options import debug_option, json_option
from kernelcast.cli.status import ExitStatus
from kernelcast.cli.terminal import complain, make_table, progress, show, show_json
from kernelcast.launches.devices import examine_devices
from kernelcast.records.device import DeviceReport
from kernelcast.records.errors import NoDeviceError
from kernelcast.reports.formats import report_to_json
from kernelcast.reports.numbers import format_bytes

_COLUMNS = (
    "id", "name, platform, driver", "compute\nunits", "local\nmemory", "fp64", "extensions",
    "timer", "status",
)  # fmt: skip


@click.command()
@json_option
@debug_option
@click.pass_context
def devices(ctx: click.Context, *, as_json: bool) -> None:
    """List the OpenCL devices of this machine and try each.

    Each device builds and runs a small kernel for about 10 ms, in a process of its own: one that
    cannot is listed as broken with its reason. "timer" says whether the device's event timer
    agrees with the host's clock; where it does not, the host's clock is used. Ids are stable:
    they survive a reboot and do not depend on the order of the devices.

    Exit status: 0 if a device works, 1 if all are broken or there is none.
    """
    try:
        with progress(is_wanted=not as_json) as report:
            reports = examine_devices(report=report)
    except NoDeviceError as error:
        if as_json:
            show_json([])
        complain(str(error))
        ctx.exit(ExitStatus.FAILED)
    if as_json:
        show_json([report_to_json(one) for one in reports])
    else:
        show(_lay_out(reports))
    if all(one.broken_reason is not None for one in reports):
        ctx.exit(ExitStatus.FAILED)


def _lay_out(reports: list[DeviceReport]) -> Table:
    """Lay devices out, one per row."""
    table = make_table(*_COLUMNS)
    table.columns[0].no_wrap = True
    for one in reports:
        device = one.description
        table.add_row(
            device.id,
            f"{device.name}\n{device.platform}\n{device.driver}",
            str(device.compute_units),
            format_bytes(device.local_memory_bytes),
            "yes" if device.has_fp64 else "no",
            "\n".join(name.removeprefix("cl_") for name in device.extensions) or "-",
            _describe_timer(one),
            "ok" if one.broken_reason is None else f"broken: {one.broken_reason}",
        )
    return table


def _describe_timer(report: DeviceReport) -> str:
    if report.timer is None:
        return "-"
    return "agrees" if report.timer.agrees else "disagrees"
