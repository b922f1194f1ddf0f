"""Answers ``kernelcast model cpu`` for problem files of OpenCL kernels."""

from collections.abc import Sequence

from kernelcast.cli.model.cpu.request import CpuRequest
from kernelcast.cli.model.cpu.tables import make_estimate_report
from kernelcast.cli.terminal import make_table, progress, show, show_json, show_line
from kernelcast.launches.modelling.cpu_formats import estimate_to_json
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.recording import record_accesses
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.reports.numbers import format_seconds


def answer_problem(request: CpuRequest) -> None:
    """Estimate a launch, or one for each value of a parameter, and show."""
    machine = request.find_description()
    if machine.kind is not DeviceKind.CPU:
        msg = f"{machine.id} is a {machine.kind}; `kernelcast model gpu` models GPUs"
        raise InputError(msg)
    sizes = request.sizes
    rows: list[tuple[int, AnalyticEstimate]] = []
    name = request.file.stem
    with progress(is_wanted=not request.as_json) as report:
        for value in sizes.values or (0,):
            given = {**sizes.fixed, sizes.name: value} if sizes.name else dict(sizes.fixed)
            source = read_launch_source(request.file, parameters=given)
            if request.device_id is not None:
                source = record_accesses(source, request.device_id, report=report)
            name = source.name
            rows.append((value, estimate_analytically(source.launch(), machine)))
    _show(request, name, rows)
    if request.plot_file is not None:
        from kernelcast.cli.model.cpu.plot import draw_estimates  # matplotlib takes a while

        draw_estimates(request.plot_file, f"{name} on {machine.id}", sizes.name, rows)


def _show(request: CpuRequest, name: str, rows: Sequence[tuple[int, AnalyticEstimate]]) -> None:
    swept = request.sizes.name
    if request.as_json:
        show_json([
            {**({"value": value} if swept else {}), **estimate_to_json(name, one)}
            for value, one in rows
        ])  # fmt: skip
    elif not swept:
        for part in make_estimate_report(name, rows[0][1]):
            show(part)
    else:
        show_line(f"{name} on {rows[0][1].machine}")
        table = make_table(swept, "time", "limiter", right=(swept, "time"))
        for value, one in rows:
            table.add_row(str(value), format_seconds(one.seconds), one.limiter)
        show(table)
        for note in dict.fromkeys(note for _, one in rows for note in one.notes):
            show_line(f"note: {note}")
