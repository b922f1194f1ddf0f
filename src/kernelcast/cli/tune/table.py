"""The table that ``kernelcast tune`` prints."""

from rich.table import Table

from kernelcast.cli import terminal
from kernelcast.reports.numbers import format_seconds
from kernelcast.tuning.report import TunedConfiguration, TuneReport


def make_table(report: TuneReport, *, top: int) -> Table:
    """Lay the best configurations out, one per row, best first."""
    shown = [one for one in report.configurations if not one.obstacle][:top]
    is_sampled = any(one.sampled_s is not None for one in shown)
    is_measured = any(one.runs_s for one in shown)
    numbers = [*report.names, "local size", "predicted"]
    numbers += ["sampled"] * is_sampled + ["measured"] * is_measured
    table = terminal.make_table(
        *numbers, "limited by", right=numbers, title=f"{report.problem} on {report.device_id}"
    )
    for one in shown:
        cells = [*(f"{one.parameters[name]:g}" for name in report.names)]
        cells += [" x ".join(map(str, one.local_size)), format_seconds(one.predicted_s)]
        cells += [format_seconds(one.sampled_s)] if is_sampled else []
        cells += [format_seconds(one.measured_s)] if is_measured else []
        table.add_row(*cells, one.limiter.partition(":")[0])
    return table


def list_lines(report: TuneReport) -> list[str]:
    """Say how much was searched, what it cost, and what to know."""
    total = len(report.configurations)
    barred = [one for one in report.configurations if one.obstacle]
    lines = [
        f"{total} configurations, {total - len(barred)} of them possible; models took "
        f"{format_seconds(report.models_s)}"
        + (f", sampling {format_seconds(report.sampling_s)}" if report.sampling_s else "")
        + (f", measuring {format_seconds(report.measuring_s)}" if report.measuring_s else "")
    ]
    pick = report.pick
    if pick is None:
        lines.append("none of them can be launched")
    else:
        lines.append(f"use: {_name(pick)}")
    if barred:
        lines.append(f"left out, for example: {_name(barred[0])}: {barred[0].obstacle}")
    lines += [f"warning: {one}" for one in report.warnings]
    return lines


def _name(one: TunedConfiguration) -> str:
    return " ".join(f"{name}={value:g}" for name, value in one.parameters.items())
