"""``kernelcast model fit``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import present
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import (
    derive_points,
    fit_all,
    read_measurements,
    write_hit_rates,
)
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.records.arithmetic import Number
from kernelcast.reports.charts import Axis, Chart, Figure, make_series
from kernelcast.reports.presenter import Table, Value


@option.command(
    short="Fit hit rates of a GPU's caches to measurements.", plot="FILE: Draw points and curves."
)
def fit(
    measurements: Path = option.argument("MEASUREMENTS.csv|json"),
    problem_file: Path | None = option.given(
        "--problem P.yaml",
        "The kernel that was measured, where the measurements are volumes.",
    ),
    machine: str | None = option.given("--machine NAME", "The device it was measured on."),
    parameters: Mapping[str, Number] = option.parameters,
    out_file: Path = option.given(
        "--out FILE.yaml",
        "Where to write the hit rates; `model gpu --hit-rates` reads them.",
        default=Path("hit_rates.yaml"),
    ),
) -> None:
    """Fit hit rates of a GPU's caches to measurements, with the standard errors of the constants.

    The hit rate at oversubscription O is 1 - a * exp(-b * exp(-c * O)), or a * exp(-b * exp(c * O))
    for data that is used again at one distance. A row of MEASUREMENTS is either a point (function,
    oversubscription, hit_rate) or a launch with its volumes by hardware counters (local_size, fold,
    l2_load_bytes_per_update, dram_load_bytes_per_update, dram_store_bytes_per_update), which needs
    --problem and --machine. Hit rates whose points tell too little keep the shipped constants.
    """
    points, launches = read_measurements(measurements)
    if launches:  # hit rates follow from volumes
        if problem_file is None or machine is None:
            msg = "measured volumes need --problem and --machine: what was run, and where"
            raise click.UsageError(msg)
        source = read_launch_source(problem_file, parameters=parameters)
        for name, derived in derive_points(source, find_machine(machine), launches).items():
            points[name] += derived
    fits = fit_all(points)
    of = f" of {problem_file.stem}" if problem_file else ""
    on = f" on {machine}" if machine else ""
    provenance = (
        f"fitted to {sum(map(len, points.values()))} points from {measurements.name}{of}{on}"
    )
    write_hit_rates(out_file, provenance, fits)
    rows: list[Sequence[Value]] = []
    for name in dict.fromkeys((*fits, *sorted(name for name, own in points.items() if own))):
        if name in fits:
            one = fits[name]
            numbers = [
                f"{value:.3g} +- {error:.2g}"
                for value, error in (
                    (one.rate.a, one.a_error), (one.rate.b, one.b_error), (one.rate.c, one.c_error)
                )
            ]  # fmt: skip
            rows.append((name, one.points, *numbers, f"{one.rate.deviation:.3f}"))
        else:
            rows.append((name, len(points[name]), "not fitted", "", "", ""))
    table = Table(
        columns={"hit rate": "text", "points": "whole", "a": "number", "b": "number",
                 "c": "number", "deviation": "number"},
        rows=rows,
    )  # fmt: skip
    # Chart measured hit rates and the curves fitted to them (the paper's Fig. 12, 16 and 18).
    charts = []
    for name, one in fits.items():
        over, measured = zip(*points[name], strict=True)
        most = 1.05 * max(over)
        places = [most * number / 200 for number in range(201)]
        charts.append(Chart(
            title=name, x=Axis(title="oversubscription"), y=Axis(title="hit rate"),
            series=(
                make_series("measured", over, measured),
                make_series("fit", places, map(one.rate.at, places), "guide"),
            ),
        ))  # fmt: skip
    figure = Figure(charts=tuple(charts))
    present(None, table, f"written to {out_file}", figure=figure)
