"""``kernelcast model scratchpad``."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from kernelcast.analytic.scratchpad import (
    ScratchpadKernel,
    ScratchpadMachine,
    ScratchpadTerms,
    Variant,
    buffer_doubly,
    list_cpe_counts,
    model_kernel,
    plan_timeline,
    vary_cpes,
    vary_granularity,
)
from kernelcast.cli import options as option
from kernelcast.cli.terminal import present
from kernelcast.launches.modelling.scratchpad import (
    CPES,
    depends_on_cpes,
    derive_scratchpad_kernel,
    find_scratchpad,
    is_scratchpad_file,
    read_scratchpad_kernel,
    terms_to_json,
    variants_to_json,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arithmetic import Number
from kernelcast.reports.charts import Axis, Chart, Figure, make_series
from kernelcast.reports.numbers import format_seconds, format_share
from kernelcast.reports.presenter import Part, Table

_TIMES: Final = {
    "T_total": ("s", "t_total_s"), "T_comp": ("s", "t_comp_s"), "T_DMA": ("s", "dma.time_s"),
    "T_gload": ("s", "gload.time_s"), "T_overlap": ("s", "t_overlap_s"),
}  # fmt: skip
_STEP_TIMES: Final = {title: (unit, f"terms.{field}") for title, (unit, field) in _TIMES.items()}


@option.command(
    short="Time of a kernel on a processor with scratchpads (SW26010).",
    plot="FILE: Draw breakdown and timeline, or what --what-if found, as .png or .svg.",
)
def scratchpad(
    files: tuple[Path, ...] = option.argument("KERNEL.yaml..."),
    machine: str = option.given(
        "--machine NAME", "Scratchpad processor: a shipped one, or a file.", default="sw26010"
    ),
    what_if: str | None = option.given(
        "--what-if",
        "Ask what smaller DMA requests, double buffering or other numbers of active CPEs save.",
        type=click.Choice(("dma", "double-buffer", "cpes")),
    ),
    active_cpes: int | None = option.given(
        "--active-cpes N",
        "Active CPEs, instead of the file's.  [default: the file's, else 64]",
    ),
    cpe_range: str | None = option.given(
        "--cpes FIRST:LAST:STEP",
        "Numbers of CPEs for `--what-if cpes`.  [default: eighths of a core group, then halves]",
    ),
    average_ilp: float | None = option.given(
        "--ilp X",
        "Average instruction-level parallelism of a problem file, which no source tells.  "
        "[default: 1]",
        type=click.FloatRange(min=1),
    ),
    parameters: Mapping[str, Number] = option.parameters,
) -> None:
    """Model kernels on a processor whose cores copy data to scratchpads themselves.

    KERNEL.yaml lists the DMA requests, Gload requests and compute instructions of a CPE, or is
    the problem file of an OpenCL kernel, from whose source they are derived. Nothing is run.
    """
    option.refuse({
        "--what-if takes one kernel at a time": what_if is not None and len(files) > 1,
        "--cpes goes with --what-if cpes": cpe_range is not None and what_if != "cpes",
        "--ilp is for problem files; a scratchpad kernel file has the key average_ilp":
            average_ilp is not None and any(map(is_scratchpad_file, files)),
    })  # fmt: skip
    processor = find_scratchpad(machine)

    def read(path: Path, cpes: int | None) -> ScratchpadKernel:
        if is_scratchpad_file(path):
            return read_scratchpad_kernel(path, active_cpes=cpes, parameters=parameters)
        problem = read_problem(path, parameters=parameters)
        return derive_scratchpad_kernel(
            problem, processor, active_cpes=cpes, average_ilp=average_ilp
        )

    if what_if == "cpes":
        counts = list_cpe_counts(processor)
        if cpe_range is not None:
            given_as = f"--cpes {cpe_range!r}"
            counts = list(option.read_range(cpe_range, given_as=given_as, example="8:64:8"))
        [path] = files
        usual = read(path, active_cpes).active_cpes
        found, refused = vary_cpes(lambda count: read(path, count), usual, counts, processor)
        notes = [f"{count} CPEs: {reason}" for count, reason in refused]
        if is_scratchpad_file(path) and not depends_on_cpes(path):
            notes.append(
                "nothing in the file depends on {active_cpes}: each CPE keeps its work, so more of "
                "them do more work"
            )
        _present_cpes(found, refused, notes, processor)
        return
    kernels = [read(path, active_cpes) for path in files]
    if what_if == "dma":
        # Divide DMA requests into smaller and smaller ones (the paper's Fig. 7).
        steps = vary_granularity(kernels[0], processor)
        kernel = steps[0].terms.kernel
        table = Table.of(steps, {
            "parts": ("whole", "number"),
            "smallest copy": ("number", _tell_smallest_copy),
            "DMA requests": (",g", "terms.dma.requests"), **_STEP_TIMES,
            "NG": ("whole", "terms.dma.groups"), "saved": ("s", "saving_s"),
            "by equation 13": ("s", "equation_s"),
        })  # fmt: skip
        parts: list[Part] = [f"{kernel.name} on {processor.name}: smaller DMA requests", table]
        if len(steps) == 1:
            parts.append(
                "no request can be divided: its half would be less than a transaction of "
                f"{processor.transaction_bytes} bytes"
            )
        labels = [f"1/{step.number}\n{_tell_smallest_copy(step)}" for step in steps]
        title = "size of the DMA requests, and bytes of the smallest copy"
        chart = _chart_times([step.terms for step in steps], labels, title)
        told = variants_to_json(steps, "parts", "equation_13_s")
        for one, step in zip(told, steps, strict=True):
            one["smallest_bytes"] = step.terms.kernel.smallest_copy_bytes
            one["dma_requests"] = step.terms.dma.requests
        content = {"kernel": kernel.name, "granularity": told}
        figure = Figure(charts=(chart,), title=f"{kernel.name}: smaller DMA requests")
        present(content, *parts, figure=figure, notes=kernel.notes)
    elif what_if == "double-buffer":
        _present_double_buffering(kernels[0], processor)
    else:
        terms = [model_kernel(kernel, processor) for kernel in kernels]
        about = {"kernel": ("text", "kernel.name"), "CPEs": ("whole", "kernel.active_cpes")}
        parts = [Table.of(terms, {**about, **_TIMES})]
        if len(terms) == 1:
            parts = list(_describe_terms(terms[0], processor))
        told = [terms_to_json(term, processor) for term in terms]
        notes = [note for term in terms for note in term.kernel.notes]
        present(told, *parts, figure=_chart_kernels(terms), notes=notes)


def _tell_smallest_copy(step: Variant) -> str:
    return f"{step.terms.kernel.smallest_copy_bytes:,.0f} B"


def _describe_terms(terms: ScratchpadTerms, processor: ScratchpadMachine) -> Iterator[Part]:
    """Describe one kernel by every term, with the paper's names in the paper's order."""
    kernel = terms.kernel
    yield (
        f"{kernel.name} on {processor.name}: {format_seconds(terms.t_total_s)} with "
        f"{kernel.active_cpes} active CPEs"
    )
    yield _name_scenario(terms)
    times = _list_times(terms)
    yield Table(
        columns={"term": "text", "time": "s", "of T_total": "share", "": "text"},
        rows=[
            (name, seconds, seconds / terms.t_total_s,
             ("-" if seconds < 0 else "#") * round(20 * abs(seconds / terms.t_total_s)))
            for name, seconds in times.items() if seconds
        ],
    )  # fmt: skip
    names = {id(terms.dma): "DMA", id(terms.gload): "Gload"}
    yield Table.of([one for one in (terms.dma, terms.gload) if one.requests], {
        "requests": ("text", lambda one: names[id(one)]), "#reqs": (",g", "requests"),
        "MRT": (",g", "transactions"), "avg_MRT": (".4g", "average_mrt"),
        "L_avg": ("s", "latency_s"), "MRP": (".4g", "parallelism"), "NG": ("whole", "groups"),
        "T": ("s", "time_s"), "may overlap": ("s", "overlap_s"),
    })  # fmt: skip


def _present_double_buffering(kernel: ScratchpadKernel, processor: ScratchpadMachine) -> None:
    """Ask what double buffering would save (the paper's Fig. 8)."""
    terms, saving = model_kernel(kernel, processor), buffer_doubly(kernel, processor)
    share = format_share(saving["saving_s"] / terms.t_total_s)
    rows: list[tuple[str, str | float, str]] = [
        ("NG_DMA", str(terms.dma.groups), "virtual groups"),
        ("T_DMA", terms.dma.time_s, "all DMA requests"),
        ("copy-in", terms.copy_in_s, "those from memory to the scratchpad"),
        ("T_comp - T_overlap", terms.t_comp_s - terms.t_overlap_s,
         "computation that overlaps with nothing"),
        ("saved", saving["saving_s"], "copy-in of one virtual group (Fig. 5)"),
        ("equation 14", saving["equation_14_s"], "with all of T_DMA: at most this"),
        ("T_total", saving["t_total_s"], "with double buffering"),
    ]  # fmt: skip
    parts: list[Part] = [
        f"{kernel.name} on {processor.name}: double buffering saves "
        f"{format_seconds(saving['saving_s'])} of {format_seconds(terms.t_total_s)} ({share})",
        _name_scenario(terms),
        Table(columns={"term": "text", "value": "s", "what it is": "text"}, rows=rows),
    ]
    if not saving["fits"]:
        parts.append(
            f"note: two buffers need {saving['needed_bytes']:,.0f} bytes, a scratchpad holds "
            f"{processor.spm_bytes:,}: requests must be made smaller first"
        )
    content = {"kernel": kernel.name, "double_buffering": saving}
    figure = _chart_kernels([terms])
    present(content, *parts, figure=figure, notes=kernel.notes)


def _present_cpes(
    found: Sequence[Variant],
    refused: Sequence[tuple[int, str]],
    notes: Sequence[str],
    processor: ScratchpadMachine,
) -> None:
    """Present several numbers of active CPEs (the paper's Fig. 9 and 10)."""
    totals_s = [one.terms.t_total_s for one in found]
    best = found[totals_s.index(min(totals_s))]
    own = min((one for one in found if one.number <= processor.cpes_per_group),
              key=lambda one: one.terms.t_total_s, default=None)  # fmt: skip
    kernel = best.terms.kernel
    table = Table.of(found, {
        "CPEs": ("whole", "number"),
        "core groups": ("whole", lambda one: -(-one.number // processor.cpes_per_group)),
        **_STEP_TIMES, "saved": ("s", "saving_s"), "by equation 15": ("s", "equation_s"),
    })  # fmt: skip
    fastest = f"fastest with {best.number} active CPEs"
    if own is not None and own is not best:
        fastest += f"; of one core group with {own.number}"
    marked = {"fastest": best, "fastest of one core group": own}
    counts = [one.number for one in found]
    times = Chart(
        x=Axis("active CPEs"), y=Axis("time", "s"),
        series=(
            make_series("T_total", counts, totals_s, "line"),
            *(
                make_series(f"{label}: {one.number} CPEs", [one.number],
                            [one.terms.t_total_s])
                for label, one in marked.items() if one is not None
            ),
        ),
    )  # fmt: skip
    terms = [one.terms for one in found]
    charts = (times, _chart_times(terms, list(map(str, counts)), "active CPEs"))
    figure = Figure(charts=charts, title=f"{kernel.name}: number of active CPEs", columns=1)
    content = {
        "kernel": kernel.name,
        "best_active_cpes": best.number,
        "best_of_one_group": own and own.number,
        "cpes": variants_to_json(found, CPES, "equation_15_s"),
        "refused": [{CPES: count, "reason": reason} for count, reason in refused],
    }
    title = f"{kernel.name} on {processor.name}: active CPEs"
    present(content, title, table, fastest, figure=figure, notes=(*kernel.notes, *notes))


def _list_times(terms: ScratchpadTerms) -> dict[str, float]:
    """List the parts of a time and their sum; what overlaps is below zero."""
    return {
        "T_comp": terms.t_comp_s, "T_DMA": terms.dma.time_s, "T_gload": terms.gload.time_s,
        "T_overlap": -terms.t_overlap_s, "T_total": terms.t_total_s,
    }  # fmt: skip


def _name_scenario(terms: ScratchpadTerms) -> str:
    if not terms.dma.requests and not terms.gload.requests:
        return "no memory request: nothing overlaps\n"
    if terms.is_fully_overlapped:
        return "scenario 2: all computation overlaps with memory requests\n"
    return "scenario 1: computation overlaps in part, memory idles meanwhile\n"


def _chart_kernels(terms: Sequence[ScratchpadTerms]) -> Figure:
    """Chart the breakdown of kernels (Fig. 6), and of a single one its timeline (Fig. 4)."""
    names = [term.kernel.name for term in terms]
    bars = _chart_times(terms, names, "", is_normalised=len(terms) > 1)
    if len(terms) > 1 or not terms[0].dma.requests:
        return Figure(charts=(bars,))
    times, rounds = plan_timeline(terms[0])
    spans = [
        make_series(
            name, [one[0] for one in own], range(len(own)), "spans", high=[one[1] for one in own]
        )
        for name, own in times.items()
    ]
    # How long memory idles: between the last copy-in and the first copy-out.
    ends, rows = (times["copy in"][-1][1], times["copy out"][0][0]), len(times["compute"])
    is_idle = ends[1] > ends[0]
    if is_idle:
        spans += [
            make_series("memory idles between", (end, end), (-0.5, rows - 0.5), "guide")
            for end in ends
        ]
    cpes = -(-terms[0].kernel.active_cpes // rows)
    scenario = "1, memory idles" if is_idle else "2, memory never idles"
    timeline = Chart(
        title=f"one of {rounds:,.4g} rounds; scenario {scenario}",
        x=Axis("time", "s"),
        y=Axis(f"virtual group, up to {cpes} CPEs each",
               names=tuple(str(row + 1) for row in range(rows))),
        series=tuple(spans),
    )  # fmt: skip
    return Figure(charts=(bars, timeline), columns=1)


def _chart_times(
    terms: Sequence[ScratchpadTerms], labels: Sequence[str], title: str, *,
    is_normalised: bool = False,
) -> Chart:  # fmt: skip
    """Stack the parts of each time above zero, and below what overlaps; mark the total."""
    scales = [1 / term.t_total_s if is_normalised else 1.0 for term in terms]
    times = [_list_times(term) for term in terms]
    parts = {
        name: [one[name] for one in times]
        for name in ("T_gload", "T_DMA", "T_comp", "T_overlap", "T_total")
    }
    return Chart(
        x=Axis(title, names=tuple(labels)),
        y=Axis("time over T_total") if is_normalised else Axis("time", "s"),
        series=tuple(
            make_series(
                name, range(len(scales)),
                [value * scale for value, scale in zip(seconds, scales, strict=True)],
                "points" if name == "T_total" else "stack", is_hollow=name == "T_overlap",
            )
            for name, seconds in parts.items() if any(seconds)
        ),
    )  # fmt: skip
