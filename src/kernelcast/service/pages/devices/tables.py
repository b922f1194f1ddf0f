"""Numbers of a machine description as the templates show them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait
from kernelcast.reports.machine import Cell, make_tables
from kernelcast.reports.machine.quantities import (
    format_interval,
    format_number,
    format_traits,
)

_HEADLINE_INSTRUCTION = "fp32"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNumber:
    """A number with where it is from.

    Parameters
    ----------
    label : str
        What it is for, where a cell has several.
    text, interval : str
        The number, and its interval, with units.
    source, origin : str
        Whether it was measured, reported, published or assumed, and by what.
    """

    label: str
    text: str
    interval: str
    source: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTable:
    """A table: rows of a name and cells of numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[ShownNumber, ...], ...]], ...]
    note: str


def list_tables(machine: MachineDescription) -> list[ShownTable]:
    """Give all tables of a description."""
    return [
        ShownTable(
            title=one.title,
            columns=one.columns,
            rows=tuple((name, tuple(map(_show, cells))) for name, cells in one.rows),
            note=one.note,
        )
        for one in make_tables(machine)
    ]


def list_headlines(machine: MachineDescription) -> list[tuple[str, str]]:
    """Give the few numbers by which people know a device."""
    return list(_find_headlines(machine))


def _find_headlines(machine: MachineDescription) -> Iterator[tuple[str, str]]:
    instruction = machine.instruction(_HEADLINE_INSTRUCTION)
    if instruction is not None and instruction.peak_per_s is not None:
        yield "single precision", _write("peak_per_s", instruction.peak_per_s)
    memory = machine.memory("global")
    if memory is not None and memory.load_bytes_per_s:
        best = max(memory.load_bytes_per_s.values(), key=lambda one: one.value)
        yield "loads from memory", _write("load_bytes_per_s", best)
    sized = [one for one in machine.caches if one.size_bytes is not None]
    if sized:
        sizes = (f"{one.name} {_write('size_bytes', one.size_bytes)}" for one in sized)
        yield "caches", ", ".join(sizes)


def _write(key: str, trait: Trait[Any] | None) -> str:
    return format_traits(key, (trait,), marks=False)


def _show(cell: Cell) -> tuple[ShownNumber, ...]:
    labels = cell.labels or ("",) * len(cell.traits)
    return tuple(
        _show_number(cell, label, trait)
        for label, trait in zip(labels, cell.traits, strict=True)
        if trait is not None
    )


def _show_number(cell: Cell, label: str, trait: Trait[Any]) -> ShownNumber:
    text = _write(cell.key, trait)
    if cell.clock_hz is not None:
        text += f" = {format_number(trait.value * cell.clock_hz)} cy"
    return ShownNumber(
        label=label,
        text=text,
        interval=format_interval(cell.key, trait),
        source=str(trait.source),
        origin=trait.origin,
    )
