"""``kernelcast calibrate``."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kernelcast.calibration.calibration import (
    Calibration,
    CalibrationSettings,
    Effort,
    calibrate_device,
    list_benchmarks,
)
from kernelcast.cli import options as option
from kernelcast.cli.terminal import Collected, ExitStatus, complain, present, progress_bar, show
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.machines import find_machine, machine_to_plain
from kernelcast.records.device import DeviceDescription, Progress, Trait
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.plain import CONVERTER
from kernelcast.records.private_files import check_target
from kernelcast.reports.drawing import require_matplotlib
from kernelcast.reports.machine import (
    compare_machines,
    describe_machine,
    list_sources,
    save_machine_page,
    write_interval,
    write_trait,
)
from kernelcast.reports.numbers import format_duration, format_seconds
from kernelcast.reports.presenter import Part, Section, Table


@option.command(short="Measure what devices can do; describe machines.")
def calibrate(
    device_ids: tuple[str, ...] = option.device,
    is_quick: bool = option.given(
        "--quick",
        "Fewer points and repeats: a minute on an idle machine.",
    ),
    is_full: bool = option.given("--full", "More points and repeats: five minutes."),
    settings: CalibrationSettings = option.settings(
        only=option.given(
            "--only NAME",
            "Run this microbenchmark only and add its results to the existing description; may be "
            "repeated.",
        ),
        is_fresh=option.given(
            "--fresh",
            "Measure also what an interrupted calibration has measured.",
        ),
        output=option.given(
            "--output FILE",
            "Write the description to FILE (YAML).  [default: machines/ID.yaml in the data folder]",
        ),
    ),
    wants_list: bool = option.given("--list", "List the microbenchmarks and end."),
    report: Path | None = option.given(
        "--report OUT.html",
        "Also write a page with figures to OUT.html; needs kernelcast[plot].",
    ),
    machine: str | None = option.given(
        "--machine NAME",
        "Measure nothing: show the description of a calibrated device (id), a shipped one (name) "
        "or a file.",
    ),
    compared: tuple[str, str] | None = option.given(
        "--compare",
        "Measure nothing: show two descriptions side by side.",
        metavar="A B", nargs=2, type=str,
    ),
) -> ExitStatus:  # fmt: skip
    """Measure what devices can do and write machine descriptions.

    Microbenchmarks run one after the other, each in a process of its own: one that crashes is
    named, the others go on. After Ctrl-C the same command goes on where it was. The description
    is a YAML file in the data folder (KERNELCAST_DATA); you may edit it.
    """
    stored = "--machine" if machine else "--compare" if compared else ""
    measuring = {
        "--device": device_ids, "--quick": is_quick, "--full": is_full, "--only": settings.only,
        "--fresh": settings.is_fresh, "--output": settings.output,
    }  # fmt: skip
    wrong = ", ".join(name for name, value in measuring.items() if value)
    option.refuse({
        "--quick and --full were both given; give one, or none for what lies between":
            is_quick and is_full,
        f"{stored} measures nothing; leave out {wrong}": stored and wrong,
        "--compare prints a table; leave out --machine and --report":
            compared and (machine or report),
        f"{report}: reports are written as HTML; end the name in .html":
            report and report.suffix.lower() not in {".html", ".htm"},
    })  # fmt: skip
    if report is not None:
        require_matplotlib("--report")
        check_target(report)
    if wants_list:
        titles = list_benchmarks()
        content = [{"name": name, "title": title} for name, title in titles.items()]
        width = max(map(len, titles), default=0)
        present(content, *(f"{name:{width}}  {title}" for name, title in titles.items()))
    elif compared is not None:
        _compare(*map(find_machine, compared))
    elif machine is not None:
        found = find_machine(machine)
        described = [{"device_id": found.id, "machine": machine_to_plain(found)}]
        present(described, *_describe(found))
        _write_page(report, [found])
    else:
        effort = Effort.QUICK if is_quick else Effort.FULL if is_full else Effort.NORMAL
        return _calibrate(device_ids, replace(settings, effort=effort), report)
    return ExitStatus.ANSWERED


def _compare(first: MachineDescription, second: MachineDescription) -> None:
    def write(name: str, trait: Trait[float] | None) -> str:
        if trait is None:
            return "-"
        # Keys such as issue_latency_s.4 end in a number of instructions or bytes.
        key = next((part for part in reversed(name.split(".")) if not part.isdecimal()), name)
        interval = write_interval(key, trait)
        return write_trait(key, trait) + (f" [{interval}]" if interval else "")

    pairs = compare_machines(first, second)
    overlaps = [pair["intervals_overlap"] for pair in pairs]
    known = [one for one in overlaps if one is not None]
    verdicts = {None: "-", True: "overlap", False: "differ"}
    # A machine may be compared with itself.
    other = second.id if second.id != first.id else f"{second.id} "
    table = Table.of(pairs, {
        "": ("text", "name"),
        first.id: ("number", lambda pair: write(pair["name"], pair["first"])),
        other: ("number", lambda pair: write(pair["name"], pair["second"])),
        "ratio": ".3g", "intervals": ("number", lambda pair: verdicts[pair["intervals_overlap"]]),
    })  # fmt: skip
    words = f"{sum(known)} of {len(known)} numbers that both have overlap in their intervals"
    present(CONVERTER.unstructure(pairs), table, words)


def _calibrate(
    device_ids: Sequence[str], settings: CalibrationSettings, page: Path | None
) -> ExitStatus:
    """Calibrate device by device; Ctrl-C ends it and keeps what is there."""
    devices = choose_devices(device_ids)
    if settings.output is not None and len(devices) > 1:
        raise InputError(f"--output takes one device, found {len(devices)}; choose one by --device")
    outcomes = Collected[tuple[DeviceDescription, Calibration]](
        when_interrupted="what was measured is kept, the same command goes on from there"
    )
    failed: list[dict[str, object]] = []
    with progress_bar() as tell, outcomes.until_interrupted():
        began_s: dict[str, float] = {}
        warned: set[str] = set()

        def report(one: Progress) -> None:
            tell(one.done, one.total, f"{one.words} ({one.device_id})", one.remaining_s)
            now_s = time.monotonic()
            whole_s = now_s - began_s.setdefault(one.device_id, now_s) + (one.remaining_s or 0.0)
            # Longer than what ``--quick`` takes on an idle machine; said once for a device.
            is_slow = settings.effort is Effort.QUICK and whole_s > 90.0
            if is_slow and one.done * 3 >= one.total and one.device_id not in warned:
                warned.add(one.device_id)
                complain(
                    f"{one.device_id}: this takes about {format_duration(whole_s)} on a machine as "
                    "busy as this one is now, a minute on an idle one; Ctrl-C keeps what is there"
                )

        for device in devices:
            try:
                outcomes.answers.append((device, calibrate_device(device, settings, report=report)))
            except InputError:
                raise  # the same for every device, such as a folder that cannot be written
            except KernelcastError as error:
                outcomes.failures.append(("", error))
                failed.append({
                    "device": device.name, "device_id": device.id, "error_message": str(error),
                })  # fmt: skip
    content = [
        {
            "device": device.name, "device_id": device.id, "file": str(one.path),
            "durations_seconds": dict(one.durations_s), "resumed": list(one.resumed),
            "failed": dict(one.failed), "machine": machine_to_plain(one.machine),
        }
        for device, one in outcomes.answers
    ]  # fmt: skip
    present([*content, *failed])
    for device, one in outcomes.answers:
        took = format_seconds(sum(one.durations_s.values()))
        more = f", {len(one.resumed)} more had run before" if one.resumed else ""
        ran = f"{len(one.durations_s)} microbenchmarks in {took}{more}"
        show(*_describe(one.machine))
        show(f"{ran}; written to {one.path}")
        for name, reason in one.failed.items():
            complain(f"{device.id}: {name} failed: {reason}")
    status = outcomes.conclude()
    if outcomes.answers:
        _write_page(page, [one.machine for _, one in outcomes.answers])
    return status


def _describe(machine: MachineDescription) -> Iterator[Part]:
    about = [machine.platform, machine.driver, machine.calibrated_on]
    words = ", ".join(filter(None, about)) or str(machine.kind)
    parts = describe_machine(machine, has_figures=False)
    yield Section(title=f"{machine.id}: {machine.name} ({words})", parts=parts)
    if sources := list_sources(machine):
        yield sources


def _write_page(path: Path | None, machines: Sequence[MachineDescription]) -> None:
    if path is not None:
        save_machine_page(path, machines)
        show(f"report written to {path}")
