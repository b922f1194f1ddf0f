"""Prints and draws what ``kernelcast model gpu`` found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from kernelcast.cli.model.gpu import tables
from kernelcast.cli.model.gpu.request import GpuRequest
from kernelcast.cli.model.plot import draw_breakdown, draw_ranking, draw_scatter, draw_sizes
from kernelcast.cli.terminal import show, show_json, show_line
from kernelcast.launches.modelling.comparison import Comparison
from kernelcast.launches.modelling.formats import (
    comparison_to_json,
    configuration_to_json,
    sweep_to_json,
)
from kernelcast.launches.modelling.gpu_estimates import Configuration
from kernelcast.launches.modelling.gpu_sweeps import Sweep
from kernelcast.launches.modelling.hit_rate_points import RATE
from kernelcast.launches.modelling.transitions import Transition, find_transition
from kernelcast.reports.numbers import format_share

_DRAM = "DRAM_to_L2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One kernel's answers on some machines."""

    name: str
    found: list[Configuration]


def present_answers(answers: Answers, request: GpuRequest) -> None:
    """Show one kernel on one machine in full, on several in a table."""
    if request.as_json:
        show_json([configuration_to_json(answers.name, one) for one in answers.found])
    elif len(answers.found) == 1:
        for part in tables.make_report(answers.name, answers.found[0]):
            show(part)
    else:
        show(tables.make_machine_table(answers.name, answers.found))
        notes = dict.fromkeys(note for one in answers.found for note in one.estimate.notes)
        for note in notes:
            show_line(f"note: {note}")
    if request.plot_file is not None:
        labels = [f"{one.estimate.machine}\n{one.label}" for one in answers.found]
        draw_breakdown(request.plot_file, answers.name, labels, answers.found)


def present_sweeps(name: str, sweeps: Sequence[tuple[str, Sweep]], request: GpuRequest) -> None:
    """Show the ranking of local sizes of each machine."""
    if request.as_json:
        show_json([sweep_to_json(name, machine, sweep) for machine, sweep in sweeps])
    for machine, sweep in () if request.as_json else sweeps:
        count = len(sweep.configurations)
        show_line(f"{name} on {machine}: {count} configurations, fastest first")
        show(tables.make_sweep_table(sweep, request.shown))
        if sweep.refused:
            label, reason = sweep.refused[0]
            more = f" and {len(sweep.refused) - 1} more" if len(sweep.refused) > 1 else ""
            show_line(f"note: {label}{more} cannot be launched: {reason}")
        for note in sweep.configurations[0].estimate.notes:
            show_line(f"note: {note}")
    if request.plot_file is not None:
        draw_ranking(request.plot_file, name, sweeps, request.shown)


def present_sizes(
    parameter: str, rows: Sequence[tuple[int, Configuration]], request: GpuRequest
) -> None:
    """Show a sweep over sizes, and where its volumes climb."""
    transitions = _find_transitions(rows)
    if request.as_json:
        show_json({
            "parameter": parameter,
            "sizes": [
                {"value": value, **configuration_to_json("", one)} for value, one in rows
            ],
            "transitions": {
                label: None if one is None else asdict(one)
                for label, one in transitions.items()
            },
        })  # fmt: skip
    else:
        show(tables.make_size_table(parameter, rows))
        for label, one in transitions.items():
            show_line(tables.describe_transition(parameter, label, one))
    if request.plot_file is not None:
        draw_sizes(request.plot_file, parameter, _group(rows), transitions)


def present_comparisons(title: str, found: Sequence[Comparison], request: GpuRequest) -> None:
    """Show how far predictions are from measurements."""
    if request.as_json:
        show_json([comparison_to_json(one) for one in found])
    else:
        show_line(title)
        show(tables.make_comparison_table(found))
        for one in found:
            if one.quantity == RATE:
                best = format_share(one.best_share)
                show_line(f"the launch predicted fastest reaches {best} of the fastest measured")
    if request.plot_file is not None:
        points = {one.quantity: (one.measured, one.predicted) for one in found}
        draw_scatter(request.plot_file, title, points)


def _find_transitions(
    rows: Sequence[tuple[int, Configuration]],
) -> dict[str, Transition | None]:
    return {
        label: find_transition(
            [value for value, _ in curve],
            [one.estimate.volumes.get(_DRAM, 0.0) / one.updates for _, one in curve],
        )
        for label, curve in _group(rows).items()
    }


def _group(
    rows: Sequence[tuple[int, Configuration]],
) -> dict[str, list[tuple[int, Configuration]]]:
    """Sort rows into curves: one per machine and local size."""
    curves: dict[str, list[tuple[int, Configuration]]] = {}
    for value, one in rows:
        label = f"{one.estimate.machine} {one.label}"
        curves.setdefault(label, []).append((value, one))
    return curves
