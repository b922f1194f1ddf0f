"""``kernelcast devices``."""

import click
from rich.table import Table

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, make_table, progress, show, show_json
from kernelcast.launches.devices import examine_devices
from kernelcast.records.device import DeviceDescription, DeviceReport
from kernelcast.records.errors import NoDeviceError
from kernelcast.records.plain import to_plain
from kernelcast.reports.numbers import format_bytes

_COLUMNS = (
    "id", "name, platform, driver", "compute\nunits", "local\nmemory", "fp64", "extensions",
    "timer", "status",
)  # fmt: skip
# On a narrow terminal, where they stand above each other.
_NARROW_COLUMNS = (
    "id\nname\nplatform\ndriver", "compute units\nlocal memory\nfp64\ntimer",
    "status\nextensions",
)  # fmt: skip


@click.command()
@option.json_list
@option.debug
@click.pass_context
def devices(ctx: click.Context, *, as_json: bool) -> None:
    """List the OpenCL and CUDA devices of this machine and try each.

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
        show_json([_to_json(one) for one in reports])
    else:
        show(_lay_out(reports), narrow=_lay_out_narrow(reports))
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
            _list_names(device),
            str(device.compute_units),
            format_bytes(device.local_memory_bytes),
            _describe_fp64(device),
            _list_extensions(device),
            _describe_timer(one),
            _describe_status(one),
        )
    return table


def _lay_out_narrow(reports: list[DeviceReport]) -> Table:
    """Lay devices out in three columns."""
    table = make_table(*_NARROW_COLUMNS)
    table.show_lines = True
    # Long names are folded, ids never: people copy them.
    table.columns[0].min_width = max(len(one.description.id) for one in reports)
    for one in reports:
        device = one.description
        table.add_row(
            f"{device.id}\n{_list_names(device)}",
            f"{device.compute_units}\n{format_bytes(device.local_memory_bytes)}\n"
            f"{_describe_fp64(device)}\n{_describe_timer(one)}",
            f"{_describe_status(one)}\n{_list_extensions(device)}",
        )
    return table


def _list_names(device: DeviceDescription) -> str:
    return f"{device.name}\n{device.platform}\n{device.driver}"


def _list_extensions(device: DeviceDescription) -> str:
    return "\n".join(name.removeprefix("cl_") for name in device.extensions) or "-"


def _describe_fp64(device: DeviceDescription) -> str:
    return "yes" if device.has_fp64 else "no"


def _describe_status(report: DeviceReport) -> str:
    return "ok" if report.broken_reason is None else f"broken: {report.broken_reason}"


def _describe_timer(report: DeviceReport) -> str:
    if report.timer is None:
        return "-"
    return "agrees" if report.timer.agrees else "disagrees"


def _to_json(report: DeviceReport) -> dict[str, object]:
    """Turn a device's report into what `kernelcast devices --json` prints of it."""
    return {
        **to_plain(report.description),
        "timer": None if report.timer is None else to_plain(report.timer),
        "status": "ok" if report.broken_reason is None else "broken",
        "broken_reason": report.broken_reason,
    }
