"""A machine's report and a comparison of two machines on a terminal."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.reports.machine import Cell, ReportTable, make_tables
from kernelcast.reports.machine.quantities import (
    MARKS,
    format_interval,
    format_number,
    format_traits,
)
from kernelcast.reports.machine_comparison import NumberPair


def make_report(machine: MachineDescription) -> RenderableType:
    """Lay a description out as the microbenchmarks paper's Table III."""
    parts: list[RenderableType] = [_title(machine), ""]
    parts.extend(_lay_out(table) for table in make_tables(machine))
    sources = {trait.source for trait in _traits(machine)}
    letters = [f"({MARKS[one]}) {one}" for one in TraitSource if one in sources and MARKS[one]]
    if letters:
        told = "no letter: measured; " if TraitSource.MEASURED in sources else ""
        parts.append(f"{told}{', '.join(letters)}")
    if machine.not_obtained:
        parts.append("not obtained:")
        parts.extend(f"  {name}: {why}" for name, why in machine.not_obtained.items())
    return Group(*parts)


def make_comparison(
    first: MachineDescription, second: MachineDescription, pairs: Sequence[NumberPair]
) -> Table:
    """Lay two descriptions out side by side."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for title in (first.id, second.id, "ratio", "intervals"):
        table.add_column(title, justify="right")
    for one in pairs:
        ratio = "-" if one.ratio is None else f"{one.ratio:.3g}"
        table.add_row(
            one.name, _side(one.name, one.first), _side(one.name, one.second), ratio, _verdict(one)
        )
    return table


def _title(machine: MachineDescription) -> str:
    about = [machine.platform, machine.driver, machine.calibrated_on]
    return f"{machine.id}: {machine.name} ({', '.join(filter(None, about)) or machine.kind})"


def _lay_out(table: ReportTable) -> Table:
    laid = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=table.title, title_justify="left",
        title_style="bold", show_header=any(table.columns[1:]) and len(table.columns) > 2,
    )  # fmt: skip
    for place, title in enumerate(table.columns):
        laid.add_column(title, justify="right" if place else "left")
    for name, cells in table.rows:
        laid.add_row(name, *map(_write, cells))
    return laid


def _write(cell: Cell) -> str:
    lines = [format_traits(cell.key, cell.traits)]
    if cell.clock_hz is not None and any(cell.traits):
        cycles = [
            "-" if one is None else format_number(one.value * cell.clock_hz) for one in cell.traits
        ]
        lines.append(f"{'/'.join(cycles)} cy")
    return "\n".join(lines)


def _side(name: str, trait: Trait[float] | None) -> str:
    if trait is None:
        return "-"
    # Keys such as issue_latency_s.4 end in a number of instructions or bytes.
    key = next((part for part in reversed(name.split(".")) if not part.isdecimal()), name)
    interval = format_interval(key, trait)
    text = format_traits(key, (trait,))
    return f"{text} [{interval}]" if interval else text


def _verdict(pair: NumberPair) -> str:
    if pair.is_within is None:
        return "-"
    return "overlap" if pair.is_within else "differ"


def _traits(machine: MachineDescription) -> Iterable[Trait[float]]:
    return (
        trait
        for table in make_tables(machine)
        for _, cells in table.rows
        for cell in cells
        for trait in cell.traits
        if trait is not None
    )
