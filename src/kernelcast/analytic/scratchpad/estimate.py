"""The scratchpad model's answer in the form that all analytic models share."""

from kernelcast.analytic.scratchpad.machine import ScratchpadMachine
from kernelcast.analytic.scratchpad.model import ScratchpadTerms
from kernelcast.records.analytic_estimate import AnalyticEstimate

MODEL = "scratchpad"


def make_estimate(terms: ScratchpadTerms, machine: ScratchpadMachine) -> AnalyticEstimate:
    """Give the terms of a kernel as an estimate.

    Parameters
    ----------
    terms : ScratchpadTerms
        Of a kernel.
    machine : ScratchpadMachine
        The processor that they were computed for.

    Returns
    -------
    AnalyticEstimate
        Its limiters are computation, DMA and Gload requests; its volumes are transactions, so
        what strides and small requests waste is in them.
    """
    times = {"compute": terms.t_comp_s, "DMA": terms.t_dma_s, "Gload": terms.t_g_s}
    cpes = terms.kernel.active_cpes
    return AnalyticEstimate(
        model=MODEL,
        machine=machine.id,
        seconds=terms.t_total_s,
        limiter=max(times, key=lambda one: times[one]),
        limiters=times,
        volumes={
            "DMA": terms.dma.transactions * machine.transaction_bytes * cpes,
            "Gload": terms.gload.transactions * machine.transaction_bytes * cpes,
        },
        quantities={
            "overlap_s": terms.t_overlap_s,
            "memory_s": terms.t_mem_s,
            "copy_in_s": terms.copy_in_s,
            "active_cpes_count": float(cpes),
            "dma_requests_count": terms.dma.requests,
            "gload_requests_count": terms.gload.requests,
            "dma_transactions_per_request": terms.dma.average_mrt,
            "dma_parallelism_count": terms.dma.parallelism,
            "dma_groups_count": float(terms.dma.groups),
            "gload_groups_count": float(terms.gload.groups),
        },
        notes=terms.kernel.notes,
    )
