"""The page that ``kernelcast calibrate --report`` writes: one file, no network."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from kernelcast.cli.machines.figures import draw_svg, plan_figures
from kernelcast.cli.machines.quantities import format_interval, format_number, format_traits
from kernelcast.cli.machines.report_tables import Cell, ReportTable, make_tables
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1d21; --soft: #5c6470; --line: #d5d9e0;
  --paper: #ffffff; --mark: #0a6ebd; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --soft: #9aa3b0; --line: #3a404a;
  --paper: #16181c; --mark: #6cb6ff; } }
body { background: var(--paper); color: var(--ink); max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.about, figcaption, .note { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; white-space: pre-line; } th:first-child, td:first-child { text-align: left; }
td div { white-space: nowrap; } td .low { color: var(--soft); font-size: .8rem; }
td .source { color: var(--mark); font-size: .75rem; cursor: help; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
svg text { font-family: system-ui, sans-serif !important; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 1.2rem; color: var(--soft); white-space: pre-line;
  overflow-wrap: anywhere; }
article + article { border-top: 2px solid var(--line); margin-top: 3rem; }
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --mark: #000; }
  body { max-width: none; margin: 0; font-size: 11px; } figure, table, tr { break-inside: avoid; }
  h2 { break-after: avoid; } }
"""


def save_page(path: Path, machines: Sequence[MachineDescription]) -> None:
    """Write the report of descriptions to an HTML file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        path.write_text(make_page(machines), encoding="utf-8")
    except OSError as error:
        msg = f"{path}: the report cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def make_page(machines: Sequence[MachineDescription]) -> str:
    """Give the page's text."""
    title = escape("Calibration: " + ", ".join(one.id for one in machines))
    articles = "\n".join(map(_make_article, machines))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{articles}\n"
        "</body>\n</html>\n"
    )


def _make_article(machine: MachineDescription) -> str:
    about = [str(machine.kind), machine.id, machine.platform, machine.driver]
    told = " &middot; ".join(escape(one) for one in about if one)
    day = f" &middot; calibrated {escape(machine.calibrated_on)}" if machine.calibrated_on else ""
    tables = make_tables(machine)
    first = {"Computations", "Memories", "Load bandwidth by element size", "Caches"}
    return "\n".join([
        f"<article>\n<h1>{escape(machine.name)}</h1>\n<p class='about'>{told}{day}</p>",
        "<p class='note'>Below each number: its 95 % interval and its source; point at the source "
        "for its origin. Throughout, the sizes of caches and memories are in powers of two, rates "
        "in powers of ten.</p>",
        *(_make_table(one) for one in tables if one.title in first),
        *_make_figures(machine),
        *(_make_table(one) for one in tables if one.title not in first),
        _make_missing(machine),
        "</article>",
    ])  # fmt: skip


def _make_table(table: ReportTable) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in table.columns)
    rows = "\n".join(
        f"<tr><td>{escape(name)}</td>{''.join(map(_make_cell, cells))}</tr>"
        for name, cells in table.rows
    )
    note = f"<p class='note'>{escape(table.note)}</p>" if table.note else ""
    return (
        f"<section>\n<h2>{escape(table.title)}</h2>\n<div class='wide'><table>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n{note}</section>"
    )


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


def _make_figures(machine: MachineDescription) -> list[str]:
    return [
        f"<section>\n<h2>{escape(one.title)}</h2>\n<figure>{draw_svg(one, machine)}"
        f"<figcaption>{escape(one.caption)}</figcaption></figure></section>"
        for one in plan_figures(machine)
    ]


def _make_missing(machine: MachineDescription) -> str:
    if not machine.not_obtained:
        return ""
    entries = "\n".join(
        f"<dt>{escape(name)}</dt><dd>{escape(reason)}</dd>"
        for name, reason in machine.not_obtained.items()
    )
    return f"<section>\n<h2>Not obtained</h2>\n<dl>\n{entries}\n</dl></section>"
