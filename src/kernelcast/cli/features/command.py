"""``kernelcast features``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.collecting import Collected, Report, prefix, read_problems
from kernelcast.cli.features.annotated_source import AnnotatedSource
from kernelcast.cli.features.tables import make_report
from kernelcast.cli.terminal import ExitStatus, progress, show, show_json
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
from kernelcast.reports.formats import features_to_json

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


@click.command(
    context_settings={"show_default": True},
    short_help="Show what is known of kernels: operations, addresses, features.",
)
@click.argument("problem_files", metavar="P.yaml...", nargs=-1, required=True, type=option.FILE)
@option.flag(
    "--source",
    "shows_source",
    says="Show the source instead, with what each line executes and where it touches memory.",
)
@option.device
@option.flag(
    "--no-device", "without_devices", says="Ask no device: only what source and launch tell."
)
@click.option(
    "--group",
    "groups",
    type=click.Choice(_GROUPS),
    multiple=True,
    help="Features of this group only; may be repeated. `sampled` times a few work-groups.  "
    f"[default: {', '.join(one for one in _GROUPS if one in DEFAULT_GROUPS)}]",
)
@option.seed
@option.parameters_with(
    "Replace a value of the problem files' `parameters`, for example N=2**20; may be repeated."
)
@option.timeout(
    DEFAULT_TIMEOUT_S,
    "Time limit in seconds for each problem on each device; the process that runs the kernel is "
    "stopped then.",
    kind=float,
)
@option.json("Print a JSON list, one object per problem, with everything that is known.")
@option.debug
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
    collected = Collected[KernelFeatures](refusals=[("", error) for error in refusals])
    with progress(is_wanted=not request.as_json) as report:
        _collect(request, problems, report, collected)
    _present(collected, request)
    if collected.status is not ExitStatus.ANSWERED:
        ctx.exit(collected.status)


def _collect(
    request: _Request, problems: list[Problem], report: Report, collected: Collected[KernelFeatures]
) -> None:
    """Read every problem; an error ends one problem, Ctrl-C ends all and keeps what is there."""
    with collected.until_interrupted():
        devices = _find_devices(request, collected, report)
        for number, problem in enumerate(problems, start=1):
            place = f"[{number}/{len(problems)}] {problem.name}: "
            try:
                _read(request, problem, devices, collected, prefix(report, place))
            except KernelcastError as error:
                collected.refusals.append((problem.name, error))


def _find_devices(
    request: _Request, collected: Collected[KernelFeatures], report: Report
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
    collected: Collected[KernelFeatures],
    report: Report,
) -> None:
    report("analysing the source")
    found = read_source_features(problem, request.settings())
    collected.answers.append(found)
    for device in read_on_devices(found, devices, report=report):
        so_far = collected.answers[-1]
        collected.answers[-1] = replace(so_far, devices=(*so_far.devices, device))
        if device.error is not None:
            collected.failures.append((problem.name, device.error))


def _present(collected: Collected[KernelFeatures], request: _Request) -> None:
    """Print features to standard output, every error to standard error."""
    if request.as_json:
        show_json([features_to_json(one) for one in collected.answers])
    for number, one in enumerate(() if request.as_json else collected.answers):
        if number:
            show("")
        parts = [AnnotatedSource(one)] if request.shows_source else make_report(one)
        for part in parts:
            show(part)
    collected.complain()
