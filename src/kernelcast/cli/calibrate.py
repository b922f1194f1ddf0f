"""``kernelcast calibrate``."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.calibration.calibration import (
    Calibration,
    CalibrationSettings,
    Effort,
    Progress,
    calibrate_device,
    list_benchmarks,
)
from kernelcast.cli import options as option
from kernelcast.cli.collecting import Collected
from kernelcast.cli.terminal import ExitStatus, complain, present, progress_bar, show, show_json
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.machine_file import machine_to_plain
from kernelcast.launches.machines import find_machine
from kernelcast.records.device import DeviceDescription, Trait
from kernelcast.records.errors import InputError, KernelcastError, NoDeviceError
from kernelcast.records.machine import MachineDescription
from kernelcast.reports.drawing import require_matplotlib
from kernelcast.reports.machine import (
    compare_machines,
    comparison_to_json,
    describe_machine,
    list_sources,
    save_machine_page,
    write_interval,
    write_trait,
)
from kernelcast.reports.numbers import format_duration, format_seconds
from kernelcast.reports.presenter import Part, Section, Table
from kernelcast.reports.targets import check_target


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """Options of ``kernelcast calibrate``."""

    device_ids: tuple[str, ...] = option.given(
        "--device ID",
        "Calibrate this device only (its id or the beginning of it, see `kernelcast devices`); may "
        "be repeated.  [default: all devices]",
    )
    is_quick: bool = option.given(
        "--quick",
        "Fewer points and repeats: a minute on an idle machine; where it takes longer, how long is "
        "told.",
    )
    is_full: bool = option.given("--full", "More points and repeats: five minutes.")
    only: tuple[str, ...] = option.given(
        "--only NAME",
        "Run this microbenchmark only and add what it finds to the description that is there; may "
        "be repeated.",
    )
    wants_list: bool = option.given("--list", "List the microbenchmarks and end.")
    is_fresh: bool = option.given(
        "--fresh", "Measure everything, also what an interrupted calibration has measured already."
    )
    output: Path | None = option.given(
        "--output FILE",
        "Write the description to FILE (YAML).  [default: machines/ID.yaml in the data folder]",
    )
    report: Path | None = option.given(
        "--report OUT.html",
        "Also write a page with figures to OUT.html; needs kernelcast[plot].",
    )
    machine: str | None = option.given(
        "--machine NAME",
        "Measure nothing: show a description that is there, by the id of a calibrated device, the "
        "name of a shipped description or a file.",
    )
    compared: tuple[str, str] | None = option.given(
        "--compare",
        "Measure nothing: show two descriptions side by side.",
        metavar="A B", nargs=2, type=str,
    )  # fmt: skip
    as_json: bool = option.given(
        "--json",
        "Print JSON instead of tables: a list with one object per device, microbenchmark or "
        "compared number.",
    )

    def __post_init__(self) -> None:
        if self.is_quick and self.is_full:
            msg = "--quick and --full were both given; give one, or none for what lies between"
            raise InputError(msg)
        options = {
            "--device": self.device_ids, "--quick": self.is_quick, "--full": self.is_full,
            "--only": self.only, "--fresh": self.is_fresh, "--output": self.output,
        }  # fmt: skip
        stored = "--machine" if self.machine else "--compare" if self.compared else ""
        if stored and any(options.values()):
            wrong = ", ".join(name for name, value in options.items() if value)
            msg = f"{stored} measures nothing; leave out {wrong}"
            raise InputError(msg)
        if self.compared and (self.machine or self.report):
            msg = "--compare prints a table; leave out --machine and --report"
            raise InputError(msg)
        if self.report is not None:
            require_matplotlib("--report")
            check_target(self.report)
            if self.report.suffix.lower() not in {".html", ".htm"}:
                msg = f"{self.report}: reports are written as HTML; end the name in .html"
                raise InputError(msg)


@option.command(short="Measure what devices can do; describe machines.")
def calibrate(options: CalibrateOptions) -> ExitStatus:
    """Measure what devices can do and write machine descriptions.

    Microbenchmarks run one after the other, each in a process of its own: one that crashes is
    named, the others go on. What each finds is kept at once: after Ctrl-C the same command goes
    on where it was. The description is a YAML file in the data folder (KERNELCAST_DATA) that the
    analytic models read and people may edit. Errors and progress go to standard error.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    if options.wants_list:
        titles = list_benchmarks()
        content = [{"name": name, "title": title} for name, title in titles.items()]
        width = max(map(len, titles), default=0)
        lines = (f"{name:{width}}  {title}" for name, title in titles.items())
        present(content, *lines, as_json=options.as_json)
    elif options.compared is not None:
        first, second = map(find_machine, options.compared)
        pairs = compare_machines(first, second)
        overlaps = [pair.is_within for pair in pairs if pair.is_within is not None]
        words = f"{sum(overlaps)} of {len(overlaps)} numbers that both have overlap in their "
        verdicts = {None: "-", True: "overlap", False: "differ"}
        rows = [
            (
                pair.name, _write_side(pair.name, pair.first), _write_side(pair.name, pair.second),
                "-" if pair.ratio is None else f"{pair.ratio:.3g}", verdicts[pair.is_within],
            )
            for pair in pairs
        ]  # fmt: skip
        # A machine may be compared with itself.
        other = second.id if second.id != first.id else f"{second.id} "
        table = Table(
            columns={"": "text", first.id: "number", other: "number", "ratio": "number",
                     "intervals": "number"},
            rows=rows,
        )  # fmt: skip
        present(comparison_to_json(pairs), table, f"{words}intervals", as_json=options.as_json)
    elif options.machine is not None:
        machine = find_machine(options.machine)
        described = [{"device_id": machine.id, "machine": machine_to_plain(machine)}]
        present(described, *_describe(machine), as_json=options.as_json)
        _write_page(options, [machine])
    else:
        return _calibrate(options)
    return ExitStatus.ANSWERED


def _calibrate(options: CalibrateOptions) -> ExitStatus:
    """Calibrate device by device; Ctrl-C ends it and keeps what is there."""
    try:
        devices = choose_devices(options.device_ids)
    except NoDeviceError:
        if options.as_json:
            show_json([])
        raise
    if options.output is not None and len(devices) > 1:
        msg = f"--output takes one device, found {len(devices)}; choose one by --device"
        raise InputError(msg)
    effort = Effort.QUICK if options.is_quick else Effort.FULL if options.is_full else Effort.NORMAL
    settings = CalibrationSettings(
        effort=effort, only=options.only, is_fresh=options.is_fresh, output=options.output
    )
    outcomes = Collected[tuple[DeviceDescription, Calibration | KernelcastError]](
        when_interrupted="what was measured is kept, the same command goes on from there"
    )
    with progress_bar(is_wanted=not options.as_json) as tell, outcomes.until_interrupted():
        warn = _make_busy_warning() if options.is_quick else None

        def report(one: Progress) -> None:
            if warn is not None:
                warn(one)
            words = ": ".join(filter(None, [one.title, one.stage]))
            tell(one.done, one.total, f"{words} ({one.device_id})", one.remaining_s)

        for device in devices:
            try:
                outcomes.answers.append((device, calibrate_device(device, settings, report=report)))
            except InputError:
                raise  # the same for every device, such as a folder that cannot be written
            except KernelcastError as error:
                outcomes.answers.append((device, error))
                outcomes.failures.append(("", error))
    if options.as_json:
        last = sorted(outcomes.answers, key=lambda one: isinstance(one[1], KernelcastError))
        show_json([_outcome_to_json(device, outcome) for device, outcome in last])
    machines = []
    for device, outcome in outcomes.answers:
        if isinstance(outcome, KernelcastError):
            continue
        machines.append(outcome.machine)
        if not options.as_json:
            show(*_describe(outcome.machine))
            took = format_seconds(sum(outcome.durations_s.values()))
            more = f", {len(outcome.resumed)} more had run before" if outcome.resumed else ""
            ran = f"{len(outcome.durations_s)} microbenchmarks in {took}{more}"
            show(f"{ran}; written to {outcome.path}")
        for name, reason in outcome.failed.items():
            complain(f"{device.id}: {name} failed: {reason}")
    outcomes.complain()
    if machines:
        _write_page(options, machines)
    return outcomes.status


def _make_busy_warning() -> Callable[[Progress], None]:
    """Make what says, once for a device, how long it takes where a minute does not suffice."""
    began_s: dict[str, float] = {}
    warned: set[str] = set()

    def warn(one: Progress) -> None:
        now_s = time.monotonic()
        whole_s = now_s - began_s.setdefault(one.device_id, now_s) + (one.remaining_s or 0.0)
        # Longer than what ``--quick`` takes on an idle machine.
        if whole_s > 90.0 and one.done * 3 >= one.total and one.device_id not in warned:
            warned.add(one.device_id)
            complain(
                f"{one.device_id}: this takes about {format_duration(whole_s)} on a machine as "
                "busy as this one is now, a minute on an idle one; Ctrl-C keeps what is there"
            )

    return warn


def _outcome_to_json(
    device: DeviceDescription, outcome: Calibration | KernelcastError
) -> dict[str, object]:
    about = {"device": device.name, "device_id": device.id}
    if isinstance(outcome, KernelcastError):
        return {**about, "error_message": str(outcome)}
    return {
        **about,
        "file": str(outcome.path),
        "durations_seconds": dict(outcome.durations_s),
        "resumed": list(outcome.resumed),
        "failed": dict(outcome.failed),
        "machine": machine_to_plain(outcome.machine),
    }


def _describe(machine: MachineDescription) -> Iterator[Part]:
    about = [machine.platform, machine.driver, machine.calibrated_on]
    words = ", ".join(filter(None, about)) or str(machine.kind)
    parts = describe_machine(machine, has_figures=False)
    yield Section(title=f"{machine.id}: {machine.name} ({words})", parts=parts)
    if sources := list_sources(machine):
        yield sources


def _write_page(options: CalibrateOptions, machines: Sequence[MachineDescription]) -> None:
    if options.report is None:
        return
    save_machine_page(options.report, machines)
    if not options.as_json:
        show(f"report written to {options.report}")


def _write_side(name: str, trait: Trait[float] | None) -> str:
    if trait is None:
        return "-"
    # Keys such as issue_latency_s.4 end in a number of instructions or bytes.
    key = next((part for part in reversed(name.split(".")) if not part.isdecimal()), name)
    interval = write_interval(key, trait)
    return write_trait(key, trait) + (f" [{interval}]" if interval else "")
