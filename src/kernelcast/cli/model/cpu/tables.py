"""Tables of ``kernelcast model cpu``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelcast.analytic.cpu.ecm import ScalingPoint
from kernelcast.analytic.cpu.layer_conditions import Transition
from kernelcast.analytic.cpu.units import Unit, convert
from kernelcast.cli.terminal import make_table
from kernelcast.launches.modelling.cpu_loops import LoopPrediction
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.reports.numbers import format_seconds, format_share
from kernelcast.sampling.loop_benchmark import LoopMeasurement

_MOST_CORES_SHOWN = 16
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSize:
    """A size that was run."""

    measurement: LoopMeasurement
    cycles: float
    """Core cycles per cache line of work, at the machine description's clock."""


def make_report(
    found: LoopPrediction,
    scaling: Sequence[ScalingPoint],
    unit: Unit,
    measured: MeasuredSize | None,
) -> Iterator[RenderableType]:
    """Lay out one size: ECM, traffic, Roofline, cores."""
    constants = ", ".join(f"{name}={value}" for name, value in found.constants.items())
    yield Text(f"{constants}: {format_value(found.value(unit), unit)} by ECM", style="bold")
    if found.least_cycles < found.most_cycles:
        ends = (found.least_cycles, found.most_cycles)
        least, most = (format_value(convert(one, unit, found.work), unit) for one in ends)
        yield Text(
            f"branches  {least} to {most}, whatever data decide and the compiler makes of it"
        )
    yield Text(f"ECM   {found.ecm.notation()} cy/CL")
    steps = " | ".join(f"{one:.1f}" for one in found.ecm.cumulative())
    names = " | ".join(one.name for one in found.volumes.levels)
    yield Text(f"      {{{steps}}} cy/CL with data in {names}")
    saturation = found.ecm.saturation_cores
    if saturation is not None:
        yield Text(f"      memory bandwidth is saturated from {saturation} cores on")
    if found.roofline is not None:
        cycles = found.roofline.cycles
        bound = found.roofline.bottleneck.level
        value = format_value(convert(cycles, unit, found.work), unit)
        yield Text(f"Roofline  {value}, bound by {bound}")
    if measured is not None:
        yield Text(_describe_measured(found, measured, unit))
    yield _make_levels(found)
    if scaling:
        yield _make_scaling(found, scaling, unit)


def make_sweep_table(
    name: str, rows: Sequence[tuple[LoopPrediction, MeasuredSize | None]], unit: Unit
) -> Table:
    """Lay out a sweep, one size a row."""
    is_measured = any(measured is not None for _, measured in rows)
    columns = [name, "ECM (cy/CL)", f"ECM ({unit})", "Roofline", "n_s"]
    if is_measured:
        columns += ["measured", "wall", "CPU", "error"]
    table = make_table(*columns, right=columns)
    for found, measured in rows:
        roofline = found.roofline
        cells = [
            str(found.constants[name]),
            found.ecm.notation(),
            format_value(found.value(unit), unit),
            format_value(convert(roofline.cycles, unit, found.work), unit) if roofline else "",
            str(found.ecm.saturation_cores or ""),
        ]
        if measured is not None:
            one = measured.measurement
            cells += [
                format_value(convert(measured.cycles, unit, found.work), unit),
                format_seconds(one.seconds),
                format_seconds(one.cpu_seconds),
                format_share(found.cycles / measured.cycles - 1, signed=True),
            ]
        table.add_row(*cells)
    return table


def make_transition_table(size: str, found: Sequence[Transition]) -> Table:
    """Lay out conditions as the paper's Listing 5."""
    numbers = [f"largest {size}", "hits", "misses", "evicts"]
    table = make_table("level", "condition", *numbers, "reuse held (bytes)", right=numbers)
    for one in found:
        table.add_row(
            one.level, one.condition, str(one.largest if one.largest is not None else ""),
            f"{one.hits:g}", f"{one.misses:g}", f"{one.evicts:g}",
            "all arrays" if one.tail_bytes == "oo" else one.tail_bytes,
        )  # fmt: skip
    return table


def make_estimate_report(name: str, found: AnalyticEstimate) -> Iterator[RenderableType]:
    """Lay out the estimate of an OpenCL launch."""
    seconds = format_seconds(found.seconds)
    yield Text(f"{name} on {found.machine}: {seconds}, limited by {found.limiter}", style="bold")
    limiters = make_table("limiter", "alone", "of total", right=("alone", "of total"))
    for limiter, alone in sorted(found.limiters.items(), key=lambda one: -one[1]):
        if alone > 0:
            limiters.add_row(limiter, format_seconds(alone), format_share(alone / found.seconds))
    yield limiters
    volumes = make_table("boundary", "GB", right=("GB",))
    for boundary, volume in found.volumes.items():
        volumes.add_row(boundary.replace("_", " "), f"{volume / 1e9:.3g}")
    yield volumes
    width = found.quantities.get("vector_work_items_count", 1.0)
    if width > 1:
        yield Text(f"{width:.0f} work-items run in the lanes of a vector")
    else:
        yield Text("work-items run one after the other")
    yield from (Text(f"note: {note}") for note in found.notes)


def format_value(value: float, unit: Unit) -> str:
    """Write a time or a rate with its unit.

    Examples
    --------
    >>> format_value(166.53, Unit.CYCLES_PER_LINE), format_value(2.5e9, Unit.FLOP_PER_S)
    ('166.5 cy/CL', '2.50 GFLOP/s')
    """
    if unit is Unit.SECONDS:
        return format_seconds(value)
    if unit in (Unit.ITERATIONS_PER_S, Unit.FLOP_PER_S):
        scale, prefix = next((one for one in _PREFIXES if value >= one[0]), (1.0, ""))
        return f"{value / scale:.2f} {prefix}{unit}"
    return f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"


def _describe_measured(found: LoopPrediction, measured: MeasuredSize, unit: Unit) -> str:
    one = measured.measurement
    value = format_value(convert(measured.cycles, unit, found.work), unit)
    error = format_share(found.cycles / measured.cycles - 1, signed=True)
    times = f"wall {format_seconds(one.seconds)}, CPU {format_seconds(one.cpu_seconds)} per pass"
    return f"measured  {value} ({times}, {one.compiler}); ECM is {error} off"


def _make_levels(found: LoopPrediction) -> Table:
    """Lay out traffic, cycles and Roofline bounds of each boundary."""
    counts, times_of = ("hits", "misses", "evicts"), ("lines", "cy/CL", "Roofline cy/CL")
    table = make_table("level", *counts, "boundary", *times_of, right=(*counts, *times_of))
    volumes = found.volumes
    times = {one.farther: one for one in found.ecm.transfers}
    lines = {one.farther: one.lines for one in volumes.transfers()}
    for one in volumes.levels:
        time = times.get(one.name)
        ceiling = found.roofline.ceiling(one.name) if found.roofline is not None else None
        table.add_row(
            one.name, f"{one.hits:.4g}", f"{one.misses:.4g}", f"{one.evicts:.4g}",
            f"{time.nearer}-{time.farther}" if time else "",
            f"{lines[one.name]:.4g}" if time else "",
            f"{time.cycles:.1f}" if time else "",
            f"{ceiling.cycles:.1f}" if ceiling else "",
        )  # fmt: skip
    return table


def _make_scaling(found: LoopPrediction, scaling: Sequence[ScalingPoint], unit: Unit) -> Table:
    numbers = ("cores", f"ECM ({unit})")
    table = make_table(*numbers, "memory", right=numbers)
    for one in scaling[:_MOST_CORES_SHOWN]:
        table.add_row(
            str(one.cores),
            format_value(convert(one.cycles, unit, found.work), unit),
            "saturated" if one.is_saturated else "",
        )
    return table
