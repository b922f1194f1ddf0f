"""``kernelcast model scratchpad``."""

from collections.abc import Iterable
from typing import Any

import click

from kernelcast.analytic.scratchpad.what_if import CpeSweep
from kernelcast.cli import options as option
from kernelcast.cli.model.scratchpad import tables
from kernelcast.cli.model.scratchpad.request import ScratchpadRequest
from kernelcast.cli.terminal import show, show_json, show_line
from kernelcast.launches.modelling.scratchpad_formats import (
    cpes_to_json,
    double_buffering_to_json,
    granularity_to_json,
    terms_to_json,
)


@click.command(
    context_settings={"show_default": True},
    short_help="Time of a kernel on a processor with scratchpads (SW26010).",
)
@click.argument("files", metavar="KERNEL.yaml...", nargs=-1, required=True, type=option.FILE)
@click.option(
    "--machine",
    metavar="NAME",
    default="sw26010",
    help="Scratchpad processor: a shipped one, or a file.",
)
@click.option(
    "--what-if",
    "what_if",
    type=click.Choice(("dma", "double-buffer", "cpes")),
    help="Ask what smaller DMA requests, double buffering or other numbers of active CPEs save.",
)
@option.count(
    "--active-cpes", says="Active CPEs, instead of the file's.  [default: the file's, else 64]"
)
@click.option(
    "--cpes",
    "cpe_range",
    metavar="FIRST:LAST:STEP",
    help="Numbers of CPEs for `--what-if cpes`.  [default: eighths of a core group, then halves]",
)
@click.option(
    "--ilp",
    "average_ilp",
    metavar="X",
    type=click.FloatRange(min=1),
    help="Average instruction-level parallelism of a problem file, which no source tells.  "
    "[default: 1]",
)
@option.parameters_with("Replace a value of the file's `parameters`; may be repeated.")
@option.plot(
    "Draw breakdown and timeline, or what --what-if found, as .png or .svg.", metavar="FILE"
)
@option.json("Print JSON; times in seconds.")
@option.debug
def scratchpad(**options: Any) -> None:  # noqa: ANN401 - ScratchpadRequest has the types
    """Model kernels on a processor whose cores copy data to scratchpads themselves.

    KERNEL.yaml lists the DMA requests, Gload requests and compute instructions of a CPE, or is
    the problem file of an OpenCL kernel, from whose source they are derived. Nothing is run.
    """
    request = ScratchpadRequest(**options)
    match request.what_if:
        case "dma":
            _answer_granularity(request)
        case "double-buffer":
            _answer_double_buffering(request)
        case "cpes":
            _answer_cpes(request)
        case _:
            _answer(request)


def _answer(request: ScratchpadRequest) -> None:
    found = request.model_all()
    if request.as_json:
        show_json([terms_to_json(one, request.processor) for one in found])
    elif len(found) == 1:
        for part in tables.make_report(found[0], request.processor):
            show(part)
    else:
        show(tables.make_kernel_table(found))
    _show_notes(request, (note for one in found for note in one.kernel.notes))
    if request.plot_file is not None:
        from kernelcast.cli.model.scratchpad.plot import draw_kernels  # matplotlib takes a while

        draw_kernels(request.plot_file, found)


def _answer_granularity(request: ScratchpadRequest) -> None:
    steps = request.vary_granularity()
    kernel = steps[0].terms.kernel
    if request.as_json:
        show_json({"kernel": kernel.name, "granularity": granularity_to_json(steps)})
    else:
        show_line(f"{kernel.name} on {request.processor.name}: smaller DMA requests")
        show(tables.make_granularity_table(steps))
        if len(steps) == 1:
            show_line(
                "no request can be divided: its half would be less than a transaction of "
                f"{request.processor.transaction_bytes} bytes"
            )
    _show_notes(request, kernel.notes)
    if request.plot_file is not None:
        from kernelcast.cli.model.scratchpad.plot import draw_granularity

        draw_granularity(request.plot_file, steps)


def _answer_double_buffering(request: ScratchpadRequest) -> None:
    found = request.buffer_doubly()
    kernel = found.terms.kernel
    if request.as_json:
        show_json({"kernel": kernel.name, "double_buffering": double_buffering_to_json(found)})
    else:
        for part in tables.make_double_buffer_report(found, request.processor):
            show(part)
    _show_notes(request, kernel.notes)
    if request.plot_file is not None:
        from kernelcast.cli.model.scratchpad.plot import draw_kernels

        draw_kernels(request.plot_file, [found.terms])


def _answer_cpes(request: ScratchpadRequest) -> None:
    sweep = request.vary_cpes()
    kernel = sweep.best.terms.kernel
    if request.as_json:
        show_json({"kernel": kernel.name, **cpes_to_json(sweep)})
    else:
        show_line(f"{kernel.name} on {request.processor.name}: active CPEs")
        show(tables.make_cpe_table(sweep.points, request.processor))
        show_line(_tell_best(sweep))
    notes = [*kernel.notes, *(f"{count} CPEs: {reason}" for count, reason in sweep.refused)]
    if not request.changes_with_cpes():
        notes.append(
            "nothing in the file depends on {active_cpes}: each CPE keeps its work, so more of "
            "them do more work"
        )
    _show_notes(request, notes)
    if request.plot_file is not None:
        from kernelcast.cli.model.scratchpad.plot import draw_cpes

        draw_cpes(request.plot_file, sweep)


def _tell_best(sweep: CpeSweep) -> str:
    text = f"fastest with {sweep.best.active_cpes} active CPEs"
    own = sweep.best_of_one_group
    if own is None or own is sweep.best:
        return text
    return f"{text}; of one core group with {own.active_cpes}"


def _show_notes(request: ScratchpadRequest, notes: Iterable[str]) -> None:
    for note in () if request.as_json else dict.fromkeys(notes):
        show_line(f"note: {note}")
