"""The page that ``kernelcast calibrate --report`` writes: one file, no network."""

from collections.abc import Sequence
from pathlib import Path

from kernelcast.records.machine import MachineDescription
from kernelcast.reports import html
from kernelcast.reports.html import Html
from kernelcast.reports.machine.charts import find_height, make_charts
from kernelcast.reports.machine.figures import plan_figures
from kernelcast.reports.machine.tables import make_tables


def save_page(path: Path, machines: Sequence[MachineDescription]) -> None:
    """Write the report of descriptions to an HTML file."""
    title = "Calibration: " + ", ".join(one.id for one in machines)
    html.save_document(path, title, Html("\n").join(map(_make_article, machines)))


def _make_article(machine: MachineDescription) -> Html:
    about = [str(machine.kind), machine.id, machine.platform, machine.driver]
    day = f"calibrated {machine.calibrated_on}" if machine.calibrated_on else ""
    figures = [
        (
            one.title,
            html.make_figure(
                html.chart_svg(find_height(one), *make_charts(one, machine)), one.caption
            ),
        )
        for one in plan_figures(machine)
    ]
    measured = html.find_part("machine.html", "measured")
    body = measured(machine, make_tables(machine), figures, f"{machine.id}-")
    return html.make_article(machine.name, [*about, day], body)
