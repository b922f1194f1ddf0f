"""``kernelcast model fit``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from kernelcast.analytic.gpu.hit_rates import HitRateFit
from kernelcast.cli import options as option
from kernelcast.cli.model.plot import draw_hit_rates
from kernelcast.cli.terminal import make_table, show, show_line
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.hit_rate_file import (
    fit_all,
    make_hit_rates,
    write_hit_rates,
)
from kernelcast.launches.modelling.hit_rate_points import (
    HitRatePoint,
    derive_points,
    read_measurements,
)
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.records.arithmetic import Number
from kernelcast.reports.drawing import check_plot


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The command line of ``kernelcast model fit``; fields are its options."""

    measurements: Path
    problem_file: Path | None
    machine: str | None
    parameters: Mapping[str, Number]
    out_file: Path
    plot_file: Path | None

    def points(self) -> list[HitRatePoint]:
        """Read the measurements; hit rates follow from volumes where those are given."""
        read = read_measurements(self.measurements)
        if not read.launches:
            return list(read.points)
        if self.problem_file is None or self.machine is None:
            msg = "measured volumes need --problem and --machine: what was run, and where"
            raise click.UsageError(msg)
        source = read_launch_source(self.problem_file, parameters=self.parameters)
        return [*read.points, *derive_points(source, find_machine(self.machine), read.launches)]

    def provenance(self, points: int) -> str:
        """Say what the hit rates were fitted to."""
        of = f" of {self.problem_file.stem}" if self.problem_file else ""
        on = f" on {self.machine}" if self.machine else ""
        return f"fitted to {points} points from {self.measurements.name}{of}{on}"


@click.command(
    context_settings={"show_default": True},
    short_help="Fit hit rates of a GPU's caches to measurements.",
)
@click.argument("measurements", metavar="MEASUREMENTS.csv|json", type=option.FILE)
@option.file(
    "--problem",
    "problem_file",
    metavar="P.yaml",
    says="The kernel that was measured, where the measurements are volumes.",
)
@click.option("--machine", metavar="NAME", help="The device it was measured on.")
@option.parameters
@click.option(
    "--out",
    "out_file",
    metavar="FILE.yaml",
    type=option.FILE,
    default=Path("hit_rates.yaml"),
    help="Where to write the hit rates; `model gpu --hit-rates` reads them.",
)
@option.plot("Draw points and curves.", metavar="FILE")
@option.debug
def fit(**options: Any) -> None:  # noqa: ANN401 - _Request has the types
    """Fit hit rates of a GPU's caches to measurements, with the standard errors of the constants.

    The hit rate at oversubscription O is 1 - a * exp(-b * exp(-c * O)), or a * exp(-b * exp(c * O))
    for data that is used again at one distance. A row of MEASUREMENTS is either a point (function,
    oversubscription, hit_rate) or a launch with its volumes by hardware counters (local_size, fold,
    l2_load_bytes_per_update, dram_load_bytes_per_update, dram_store_bytes_per_update), which needs
    --problem and --machine. Hit rates whose points tell too little keep the shipped constants.
    """
    request = _Request(**options)
    check_plot(request.plot_file)
    points = request.points()
    fits = fit_all(points)
    rates = make_hit_rates(request.out_file.stem, request.provenance(len(points)), fits)
    write_hit_rates(request.out_file, rates, fits)
    show(_make_table(fits, points))
    show_line(f"written to {request.out_file}")
    if request.plot_file is not None:
        draw_hit_rates(request.plot_file, points, fits)


def _make_table(fits: Mapping[str, HitRateFit], points: Sequence[HitRatePoint]) -> Table:
    titles = ("hit rate", "points", "a", "b", "c", "deviation")
    table = make_table(*titles, right=titles[1:])
    for name, found in fits.items():
        rate = found.rate
        table.add_row(
            name, str(found.points), _write(rate.a, found.a_error), _write(rate.b, found.b_error),
            _write(rate.c, found.c_error), f"{rate.deviation:.3f}",
        )  # fmt: skip
    missing = {one.function for one in points} - set(fits)
    for name in sorted(missing):
        count = sum(one.function == name for one in points)
        table.add_row(name, str(count), "not fitted", "", "", "")
    return table


def _write(value: float, error: float) -> str:
    """Write a constant with its standard error.

    Examples
    --------
    >>> _write(3.21, 0.04)
    '3.21 +- 0.04'
    """
    return f"{value:.3g} +- {error:.2g}"
