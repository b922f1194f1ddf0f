"""``kernelcast model gpu``."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.model.gpu.output import (
    Answers,
    present_answers,
    present_comparisons,
    present_sizes,
    present_sweeps,
)
from kernelcast.cli.model.gpu.request import GpuRequest, SizeSweep
from kernelcast.cli.options import parse_parameters
from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.terminal import progress
from kernelcast.launches.modelling.comparison import compare_with_measured
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.gpu_sweeps import list_folds, sweep_local_sizes, sweep_sizes
from kernelcast.launches.modelling.hit_rate_points import read_measurements
from kernelcast.launches.modelling.recording import record_accesses
from kernelcast.launches.modelling.sources import LaunchSource
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription


@click.command(
    context_settings={"show_default": True},
    short_help="Time, limiters and data volumes of a kernel on a GPU.",
)
@click.argument("file", metavar="[P.yaml]", required=False, type=option.FILE)
@click.option(
    "--machine",
    "machines",
    metavar="NAME",
    multiple=True,
    required=True,
    help="Machine description: a shipped one (a100), one calibrated here, or a file; may be "
    "repeated.",
)
@click.option(
    "--local",
    "local_sizes",
    metavar="X,Y,Z",
    multiple=True,
    help="Local size, instead of the file's; may be repeated with --sweep-size.",
)
@click.option(
    "--fold",
    "folds",
    metavar="2z",
    multiple=True,
    help="Let each work-item compute so many updates along an axis; may be repeated.",
)
@option.flag("--sweep-local", "sweeps_local", says="Rank all local sizes with powers of two.")
@option.flag(
    "--sweep-fold",
    "sweeps_fold",
    says="Rank the foldings 2y and 2z as well, each with all local sizes.",
)
@click.option(
    "--sweep-size",
    metavar="NAME=A:B:STEP",
    help="Vary a parameter of the file from A to B: shows where caches become too small.",
)
@option.file(
    "--measured",
    "measured_file",
    says="Compare with measured launches, a table (.csv or .json) as `model fit` takes them, also "
    "with the column updates_per_s.",
)
@click.option(
    "--device",
    "device_id",
    metavar="ID",
    help="Record on this OpenCL device where accesses go that depend on data; it need not be the "
    "machine that is modelled.",
)
@option.parameters
@click.option(
    "--array",
    "arrays",
    metavar="NAME:TYPE:SIZES",
    multiple=True,
    help="Declare an array for accesses as text, contiguous dimension first: "
    "src:float64:640x512x512.",
)
@click.option(
    "--access",
    "loads",
    metavar="TEXT",
    multiple=True,
    help='A load of every work-item, such as "src[x-1][y] if x > 0"; x, y, z are global ids.',
)
@click.option("--store", "stores", metavar="TEXT", multiple=True, help="A store.")
@click.option("--atomic", "atomics", metavar="TEXT", multiple=True, help="An atomic operation.")
@click.option(
    "--scalar",
    "scalars",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parse_parameters,
    help="A name that accesses as text may use.",
)
@click.option(
    "--operation",
    "operations",
    metavar="KIND=COUNT",
    multiple=True,
    callback=parse_parameters,
    help="Operations of every work-item, such as fp64=25 or fp32_fma=8.",
)
@click.option("--global", "global_size", metavar="X,Y,Z", help="Global size, for accesses as text.")
@click.option("--offset", "global_offset", metavar="X,Y,Z", help="Global offset, likewise.")
@option.count(
    "--registers", says="32-bit registers per work-item, which limit how many run at once."
)
@click.option(
    "--hit-rates",
    "hit_rates",
    metavar="NAME",
    help="Hit rates of the caches: a shipped set, or a file that `model fit` wrote; paper-2022 "
    "takes the paper's limiters as well.",
)
@option.count("--top", "shown", default=10, says="Rows of the ranking.")
@option.plot("Draw the result, as .png or .svg.", metavar="FILE")
@option.json("Print JSON; times in seconds.")
@option.debug
def gpu(**options: Any) -> None:  # noqa: ANN401 - GpuRequest has the types
    """Model a kernel on GPUs: data volumes between caches and memory, limiters, time.

    P.yaml is a problem file, whose source is analysed, or an access file. Accesses can also be
    typed with --array, --access, --store and --global. Nothing is run; --device records addresses
    that depend on data.
    """
    request = GpuRequest(**options)
    machines = request.find_machines()
    sizes = request.sizes()
    if sizes is not None:
        _sweep_sizes(request, sizes, machines)
        return
    source = request.source()
    if request.device_id is not None:
        with progress(is_wanted=not request.as_json) as report:
            source = record_accesses(source, request.device_id, report=report)
    if request.sweeps_local or request.sweeps_fold:
        _sweep_local_sizes(request, source, machines)
        return
    if request.measured_file is not None:
        read = read_measurements(request.measured_file)
        title = f"{source.name} on {machines[0].id}: predicted against measured"
        present_comparisons(
            title, compare_with_measured(source, machines[0], read.launches), request
        )
        return
    [local_size] = request.own_local_sizes()
    found = [configure(source, one, local_size) for one in machines]
    present_answers(Answers(name=source.name, found=found), request)


def _sweep_local_sizes(
    request: GpuRequest, source: LaunchSource, machines: Sequence[MachineDescription]
) -> None:
    folds = list_folds(source) if request.sweeps_fold else None
    sweeps = []
    for machine in machines:
        with progress_bar(is_wanted=not request.as_json) as tell:
            report = partial(tell, description=machine.id)
            sweeps.append((machine.id, sweep_local_sizes(source, machine, folds, report)))
    present_sweeps(source.name, sweeps, request)


def _sweep_sizes(
    request: GpuRequest, sizes: SizeSweep, machines: Sequence[MachineDescription]
) -> None:
    def make(value: int) -> LaunchSource:
        return request.source({sizes.name: value})

    rows = []
    local_sizes = request.own_local_sizes()
    total = len(sizes.values) * len(local_sizes)
    for machine in machines:
        with progress_bar(is_wanted=not request.as_json) as tell:
            answers = sweep_sizes(make, sizes.values, machine, local_sizes)
            for done, (value, found) in enumerate(answers, start=1):
                tell(done, total, machine.id)
                if found is not None:
                    rows.append((value, found))
    if not rows:
        msg = "the local size fits no size of the domain, or exceeds the machine's limit"
        raise InputError(msg)
    present_sizes(sizes.name, rows, request)
