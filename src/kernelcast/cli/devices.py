"""``kernelcast devices``."""

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, present, progress
from kernelcast.launches.devices import examine_devices
from kernelcast.records.plain import to_plain
from kernelcast.reports.presenter import Table


@option.command()
def devices() -> ExitStatus:
    """List the OpenCL and CUDA devices of this machine and try each.

    Each device builds and runs a small kernel for about 10 ms, in a process of its own: one that
    cannot is listed as broken with its reason. "timer" says whether the device's event timer
    agrees with the host's clock; if not, the host's clock is used. Ids are permanent.

    Exit status: 0 if a device works, 1 if all are broken or there is none.
    """
    with progress() as report:
        reports = examine_devices(report=report)
    content = [
        {
            **to_plain(one.description),
            "timer": None if one.timer is None else to_plain(one.timer),
            "status": "ok" if one.broken_reason is None else "broken",
            "broken_reason": one.broken_reason,
        }
        for one in reports
    ]
    table = Table.of(reports, {
        "id": ("text", "description.id"),
        "name, platform, driver": ("text", lambda one: (
            f"{one.description.name}\n{one.description.platform}\n{one.description.driver}"
        )),
        "compute\nunits": ("number", "description.compute_units"),
        "local\nmemory": ("B", "description.local_memory_bytes"),
        "fp64": ("text", lambda one: "yes" if one.description.has_fp64 else "no"),
        "extensions": ("text", lambda one: (
            "\n".join(name.removeprefix("cl_") for name in one.description.extensions) or "-"
        )),
        "timer": ("text", lambda one: (
            "-" if one.timer is None else "agrees" if one.timer.agrees else "disagrees"
        )),
        "status": ("text", lambda one: (
            "ok" if one.broken_reason is None else f"broken: {one.broken_reason}"
        )),
    }, stacks=(
        ("id", "name, platform, driver"), ("fp64", "compute\nunits", "local\nmemory", "timer"),
        ("status", "extensions"),
    ))  # fmt: skip
    present(content, table)
    is_broken = all(one.broken_reason is not None for one in reports)
    return ExitStatus.FAILED if is_broken else ExitStatus.ANSWERED
