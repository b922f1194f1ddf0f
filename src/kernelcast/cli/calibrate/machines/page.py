"""The page that ``kernelcast calibrate --report`` writes: one file, no network."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from kernelcast.cli.calibrate.machines.figures import draw_svg
from kernelcast.cli.html_page import (
    Html,
    make_article,
    make_definitions,
    make_document,
    make_figure,
    make_note,
    make_section,
    make_table,
    save_document,
)
from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait
from kernelcast.reports.machine import Cell, ReportTable, make_tables, plan_figures
from kernelcast.reports.machine.quantities import (
    format_interval,
    format_number,
    format_traits,
)


def save_page(path: Path, machines: Sequence[MachineDescription]) -> None:
    """Write the report of descriptions to an HTML file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    save_document(path, _make_title(machines), _make_body(machines))


def make_page(machines: Sequence[MachineDescription]) -> str:
    """Give the page's text."""
    return make_document(_make_title(machines), _make_body(machines))


def _make_title(machines: Sequence[MachineDescription]) -> str:
    return "Calibration: " + ", ".join(one.id for one in machines)


def _make_body(machines: Sequence[MachineDescription]) -> Html:
    return Html("\n".join(map(_make_article, machines)))


def _make_article(machine: MachineDescription) -> Html:
    about = [str(machine.kind), machine.id, machine.platform, machine.driver]
    day = f"calibrated {machine.calibrated_on}" if machine.calibrated_on else ""
    tables = make_tables(machine)
    first = {"Computations", "Memories", "Load bandwidth by element size", "Caches"}
    return make_article(
        machine.name,
        [*about, day],
        make_note(
            "Below each number: its 95 % interval and its source; point at the source for its "
            "origin. Throughout, the sizes of caches and memories are in powers of two, rates in "
            "powers of ten."
        ),
        *(_make_table(one) for one in tables if one.title in first),
        *_make_figures(machine),
        *(_make_table(one) for one in tables if one.title not in first),
        _make_missing(machine),
    )


def _make_table(table: ReportTable) -> Html:
    rows = [
        Html(f"<tr><td>{escape(name)}</td>{''.join(map(_make_cell, cells))}</tr>")
        for name, cells in table.rows
    ]
    return make_section(table.title, make_table(table.columns, rows, table.note))


def _make_cell(cell: Cell) -> str:
    labels = cell.labels or ("",) * len(cell.traits)
    pairs = [(label, one) for label, one in zip(labels, cell.traits, strict=True) if one]
    lines = [_make_number(cell, label, one) for label, one in pairs]
    return f"<td>{''.join(lines) or '-'}</td>"


def _make_number(cell: Cell, label: str, trait: Trait[Any]) -> str:
    text = format_traits(cell.key, (trait,), marks=False)
    if cell.clock_hz is not None:
        text += f" = {format_number(trait.value * cell.clock_hz)} cy"
    named = f"<span class='low'>{escape(label)}: </span>" if label else ""
    interval = format_interval(cell.key, trait)
    told = f"<span class='low'>{escape(interval)}</span> " if interval else ""
    origin = escape(trait.origin or str(trait.source), quote=True)
    source = f"<span class='source' title=\"{origin}\">{escape(str(trait.source))}</span>"
    return f"<div>{named}{escape(text)}</div><div>{told}{source}</div>"


def _make_figures(machine: MachineDescription) -> list[Html]:
    return [
        make_section(one.title, make_figure(draw_svg(one, machine), one.caption))
        for one in plan_figures(machine)
    ]


def _make_missing(machine: MachineDescription) -> Html:
    if not machine.not_obtained:
        return Html("")
    return make_section("Not obtained", make_definitions([*machine.not_obtained.items()]))
