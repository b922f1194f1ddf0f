"""Tables of ``kernelcast model scratchpad``."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from kernelcast.analytic.scratchpad.machine import ScratchpadMachine
from kernelcast.analytic.scratchpad.model import RequestTerms, ScratchpadTerms
from kernelcast.analytic.scratchpad.what_if import CpePoint, DoubleBuffering, GranularityStep
from kernelcast.cli.terminal import make_table
from kernelcast.reports.numbers import format_seconds, format_share

_TIMES = ("T_total", "T_comp", "T_DMA", "T_gload", "T_overlap")


def make_report(terms: ScratchpadTerms, machine: ScratchpadMachine) -> Iterator[RenderableType]:
    """Lay out every term of one kernel, the paper's names in the paper's order."""
    kernel = terms.kernel
    yield (
        f"{kernel.name} on {machine.name}: {format_seconds(terms.t_total_s)} with "
        f"{kernel.active_cpes} active CPEs"
    )
    yield _tell_scenario(terms)
    yield ""
    yield _make_term_table(terms)
    yield _make_request_table(terms)


def make_kernel_table(found: Sequence[ScratchpadTerms]) -> Table:
    """Lay out the breakdown of several kernels, a row each (Fig. 6)."""
    table = make_table("kernel", "CPEs", *_TIMES, right=("CPEs", *_TIMES))
    for one in found:
        table.add_row(one.kernel.name, str(one.kernel.active_cpes), *_write_times(one))
    return table


def make_granularity_table(steps: Sequence[GranularityStep]) -> Table:
    """Lay out smaller and smaller DMA requests (Fig. 7)."""
    titles = ("parts", "smallest copy", "DMA requests", *_TIMES, "NG", "saved", "by equation 13")
    table = make_table(*titles, right=titles)
    for one in steps:
        table.add_row(
            str(one.parts),
            f"{one.smallest_bytes:,.0f} B",
            f"{one.terms.dma.requests:,g}",
            *_write_times(one.terms),
            str(one.terms.dma.groups),
            _write_saving(one.saving_s),
            _write_saving(one.equation_13_s),
        )
    return table


def make_double_buffer_report(
    found: DoubleBuffering, machine: ScratchpadMachine
) -> Iterator[RenderableType]:
    """Lay out what double buffering would save (Fig. 8)."""
    terms = found.terms
    share = format_share(found.saving_s / terms.t_total_s)
    yield (
        f"{terms.kernel.name} on {machine.name}: double buffering saves "
        f"{format_seconds(found.saving_s)} of {format_seconds(terms.t_total_s)} ({share})"
    )
    yield _tell_scenario(terms)
    yield ""
    table = make_table("term", "value", "what it is", right=("value",))
    for row in (
        ("NG_DMA", str(terms.dma.groups), "virtual groups"),
        ("T_DMA", format_seconds(terms.t_dma_s), "all DMA requests"),
        ("copy-in", format_seconds(terms.copy_in_s), "those from memory to the scratchpad"),
        ("T_comp - T_overlap", format_seconds(terms.t_comp_s - terms.t_overlap_s),
         "computation that overlaps with nothing"),
        ("saved", format_seconds(found.saving_s), "copy-in of one virtual group (Fig. 5)"),
        ("equation 14", format_seconds(found.equation_14_s), "with all of T_DMA: at most this"),
        ("T_total", format_seconds(found.t_total_s), "with double buffering"),
    ):  # fmt: skip
        table.add_row(*row)
    yield table
    if not found.fits:
        yield (
            f"note: two buffers need {found.needed_bytes:,.0f} bytes, a scratchpad holds "
            f"{machine.spm_bytes:,}: requests must be made smaller first"
        )


def make_cpe_table(points: Sequence[CpePoint], machine: ScratchpadMachine) -> Table:
    """Lay out several numbers of active CPEs (Fig. 9 and 10)."""
    titles = ("CPEs", "core groups", *_TIMES, "saved", "by equation 15")
    table = make_table(*titles, right=titles)
    for one in points:
        table.add_row(
            str(one.active_cpes),
            str(-(-one.active_cpes // machine.cpes_per_group)),
            *_write_times(one.terms),
            _write_saving(one.saving_s),
            "" if one.equation_15_s is None else _write_saving(one.equation_15_s),
        )
    return table


def _tell_scenario(terms: ScratchpadTerms) -> str:
    if not terms.dma.requests and not terms.gload.requests:
        return "no memory request: nothing overlaps"
    if terms.is_fully_overlapped:
        return "scenario 2: all computation overlaps with memory requests"
    return "scenario 1: computation overlaps in part, memory idles meanwhile"


def _make_term_table(terms: ScratchpadTerms) -> Table:
    table = make_table("term", "time", "of T_total", "", right=("time", "of T_total"))
    rows = (
        ("T_comp", terms.t_comp_s), ("T_DMA", terms.t_dma_s), ("T_gload", terms.t_g_s),
        ("T_overlap", -terms.t_overlap_s), ("T_total", terms.t_total_s),
    )  # fmt: skip
    for name, seconds in rows:
        share = seconds / terms.t_total_s
        sign = "-" if seconds < 0 else ""
        if not seconds:
            continue
        bar = ("-" if seconds < 0 else "#") * round(20 * abs(share))
        table.add_row(name, f"{sign}{format_seconds(abs(seconds))}", format_share(share), bar)
    return table


def _make_request_table(terms: ScratchpadTerms) -> Table:
    titles = ("requests", "#reqs", "MRT", "avg_MRT", "L_avg", "MRP", "NG", "T", "may overlap")
    table = make_table(*titles, right=titles[1:])
    for name, one in (("DMA", terms.dma), ("Gload", terms.gload)):
        if one.requests:
            table.add_row(name, *_write_requests(one))
    return table


def _write_requests(one: RequestTerms) -> tuple[str, ...]:
    return (
        f"{one.requests:,g}", f"{one.transactions:,g}", f"{one.average_mrt:.4g}",
        format_seconds(one.latency_s), f"{one.parallelism:.4g}", str(one.groups),
        format_seconds(one.time_s), format_seconds(one.overlap_s),
    )  # fmt: skip


def _write_times(terms: ScratchpadTerms) -> tuple[str, ...]:
    return tuple(
        format_seconds(one) if one else "0"
        for one in (
            terms.t_total_s, terms.t_comp_s, terms.t_dma_s, terms.t_g_s, terms.t_overlap_s,
        )
    )  # fmt: skip


def _write_saving(seconds: float) -> str:
    sign = "-" if seconds < 0 else ""
    return f"{sign}{format_seconds(abs(seconds))}" if seconds else "0"
