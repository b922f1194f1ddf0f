"""``kernelcast features``."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from kernelcast.cli.collecting import Report
from kernelcast.cli.features.annotated_source import AnnotatedSource
from kernelcast.cli.features.tables import make_report
from kernelcast.cli.options import (
    FILE,
    debug_option,
    device_option,
    json_output,
    parameters_with,
    seed_option,
    timeout_option,
)
from kernelcast.cli.problem_reading import read_problems
from kernelcast.cli.status import ExitStatus, status_of, worst
from kernelcast.cli.terminal import complain, progress, show, show_json
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.features import (
    DEFAULT_GROUPS,
    FeatureSettings,
    KernelFeatures,
    read_on_devices,
    read_source_features,
)
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError, NoDeviceError
from kernelcast.records.feature_vector import FeatureGroup
from kernelcast.records.problem import Problem
from kernelcast.reports.feature_formats import features_to_json

_GROUPS = tuple(one.value for one in FeatureGroup)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The command line of ``kernelcast features``; fields are its options."""

    problem_files: tuple[Path, ...]
    device_ids: tuple[str, ...]
    without_devices: bool
    groups: tuple[str, ...]
    shows_source: bool
    seed: int
    parameters: Mapping[str, int | float]
    timeout_s: float
    as_json: bool

    def __post_init__(self) -> None:
        if self.without_devices and self.device_ids:
            msg = "--no-device and --device exclude each other; give one of them"
            raise click.UsageError(msg)

    def settings(self) -> FeatureSettings:
        """Give what is wanted of every problem."""
        groups = frozenset(FeatureGroup(one) for one in self.groups)
        return FeatureSettings(
            groups=groups or DEFAULT_GROUPS, seed=self.seed, timeout_s=self.timeout_s
        )


@dataclass(slots=True)
class _Collected:
    """What has been found so far."""

    features: list[KernelFeatures] = field(default_factory=list)
    refusals: list[tuple[str, KernelcastError]] = field(default_factory=list)
    is_interrupted: bool = False

    def complaints(self) -> list[str]:
        """Give every error, one text each."""
        failed = [
            f"{one.problem.name}: {device.error}"
            for one in self.features
            for device in one.devices
            if device.error is not None
        ]
        refused = (f"{name}: {error}" if name else str(error) for name, error in self.refusals)
        return [*failed, *refused]

    @property
    def status(self) -> ExitStatus:
        """Exit status of the program."""
        if self.is_interrupted:
            return ExitStatus.INTERRUPTED
        has_failed = any(d.error is not None for one in self.features for d in one.devices)
        failed = [ExitStatus.FAILED] if has_failed else []
        return worst([*failed, *(status_of(error) for _, error in self.refusals)])


@click.command(
    context_settings={"show_default": True},
    short_help="Show what is known of kernels: operations, addresses, features.",
)
@click.argument("problem_files", metavar="P.yaml...", nargs=-1, required=True, type=FILE)
@click.option(
    "--source",
    "shows_source",
    is_flag=True,
    help="Show the source instead, with what each line executes and where it touches memory.",
)
@device_option
@click.option(
    "--no-device",
    "without_devices",
    is_flag=True,
    help="Ask no device: only what source and launch tell.",
)
@click.option(
    "--group",
    "groups",
    type=click.Choice(_GROUPS),
    multiple=True,
    help="Features of this group only; may be repeated. `sampled` times a few work-groups.  "
    f"[default: {', '.join(one for one in _GROUPS if one in DEFAULT_GROUPS)}]",
)
@seed_option
@parameters_with(
    "Replace a value of the problem files' `parameters`, for example N=2**20; may be repeated."
)
@timeout_option(
    DEFAULT_TIMEOUT_S,
    "Time limit in seconds for each problem on each device; the process that runs the kernel is "
    "stopped then.",
    kind=float,
)
@json_output("Print a JSON list, one object per problem, with everything that is known.")
@debug_option
@click.pass_context
def features(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - _Request has the types
    """Show what is known of the kernels of problem files, and their feature vectors.

    The source tells parameters, loops, operations, address expressions and how warps touch
    memory. Each device adds what its compiler says, and an instrumented copy of the kernel counts
    what a few work-groups really execute, on copies of the buffers. A kernel that is understood
    in part is shown with its gaps. Of several problems those that can be read are answered. Errors
    and progress go to standard error. Ctrl-C prints what is done.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    request = _Request(**options)
    problems, refusals = read_problems(request.problem_files, request.parameters)
    collected = _Collected(refusals=[("", error) for error in refusals])
    with progress(is_wanted=not request.as_json) as report:
        _collect(request, problems, report, collected)
    _present(collected, request)
    if collected.status is not ExitStatus.ANSWERED:
        ctx.exit(collected.status)


def _collect(
    request: _Request, problems: list[Problem], report: Report, collected: _Collected
) -> None:
    """Read every problem; an error ends one problem, Ctrl-C ends all and keeps what is there."""
    try:
        devices = _find_devices(request, collected, report)
        for number, problem in enumerate(problems, start=1):
            place = f"[{number}/{len(problems)}] {problem.name}"
            try:
                _read(request, problem, devices, collected, _prefix(report, place))
            except KernelcastError as error:
                collected.refusals.append((problem.name, error))
    except KeyboardInterrupt:
        collected.is_interrupted = True


def _find_devices(
    request: _Request, collected: _Collected, report: Report
) -> list[DeviceDescription]:
    """Find the devices to ask; where there is none, the source still tells most."""
    if request.without_devices:
        return []
    report("looking for devices")
    try:
        return choose_devices(request.device_ids)
    except NoDeviceError as error:
        collected.refusals.append(("", error))
        return []


def _read(
    request: _Request,
    problem: Problem,
    devices: list[DeviceDescription],
    collected: _Collected,
    report: Report,
) -> None:
    report("analysing the source")
    found = read_source_features(problem, request.settings())
    collected.features.append(found)
    for device in read_on_devices(found, devices, report=report):
        so_far = collected.features[-1]
        collected.features[-1] = replace(so_far, devices=(*so_far.devices, device))


def _prefix(report: Report, place: str) -> Report:
    return lambda stage: report(f"{place}: {stage}")


def _present(collected: _Collected, request: _Request) -> None:
    """Print features to standard output, every error to standard error."""
    if request.as_json:
        show_json([features_to_json(one) for one in collected.features])
    for number, one in enumerate(() if request.as_json else collected.features):
        if number:
            show("")
        parts = [AnnotatedSource(one)] if request.shows_source else make_report(one)
        for part in parts:
            show(part)
    for complaint in collected.complaints():
        complain(complaint)
    if collected.is_interrupted:
        complain("interrupted; what was done by then is shown")
