"""The page that ``kernelcast calibrate --report`` writes: one file, no network."""

from collections.abc import Sequence
from pathlib import Path

from kernelcast.records.machine import MachineDescription
from kernelcast.reports.drawing import WIDTH_INCHES
from kernelcast.reports.html import (
    Html,
    figure_style,
    figure_to_svg,
    find_part,
    make_article,
    make_document,
    make_figure,
    save_document,
)
from kernelcast.reports.machine.drawing import draw_figure, find_height
from kernelcast.reports.machine.figures import ReportFigure, plan_figures
from kernelcast.reports.machine.tables import make_tables


def save_page(path: Path, machines: Sequence[MachineDescription]) -> None:
    """Write the report of descriptions to an HTML file."""
    save_document(path, _make_title(machines), _make_body(machines))


def make_page(machines: Sequence[MachineDescription]) -> str:
    """Give the page's text."""
    return make_document(_make_title(machines), _make_body(machines))


def _make_title(machines: Sequence[MachineDescription]) -> str:
    return "Calibration: " + ", ".join(one.id for one in machines)


def _make_body(machines: Sequence[MachineDescription]) -> Html:
    return Html("\n").join(map(_make_article, machines))


def _make_article(machine: MachineDescription) -> Html:
    about = [str(machine.kind), machine.id, machine.platform, machine.driver]
    day = f"calibrated {machine.calibrated_on}" if machine.calibrated_on else ""
    figures = [
        (one.title, make_figure(_draw(one, machine), one.caption)) for one in plan_figures(machine)
    ]
    measured = find_part("machine.html", "measured")
    body = measured(machine, make_tables(machine), figures, f"{machine.id}-")
    return make_article(machine.name, [*about, day], body)


def _draw(figure: ReportFigure, machine: MachineDescription) -> Html:
    from matplotlib.figure import Figure

    with figure_style():
        drawn = Figure(figsize=(WIDTH_INCHES, find_height(figure)), layout="constrained")
        draw_figure(drawn, figure, machine)
        return figure_to_svg(drawn)
