"""Answers of the scratchpad model as JSON; times in seconds, sizes in bytes."""

from collections.abc import Sequence
from dataclasses import asdict

from kernelcast.analytic.scratchpad.kernel import ScratchpadMachine
from kernelcast.analytic.scratchpad.model import ScratchpadTerms
from kernelcast.analytic.scratchpad.what_if import CpeSweep, DoubleBuffering, GranularityStep


def terms_to_json(terms: ScratchpadTerms, machine: ScratchpadMachine) -> dict[str, object]:
    """Give every term of a kernel."""
    return {
        "kernel": terms.kernel.name,
        "machine": machine.id,
        "active_cpes": terms.kernel.active_cpes,
        **_times(terms),
        "copy_in_s": terms.copy_in_s,
        "is_fully_overlapped": terms.is_fully_overlapped,
        "dma": asdict(terms.dma),
        "gload": asdict(terms.gload),
        "compute": dict(terms.kernel.compute),
        "average_ilp": terms.kernel.average_ilp,
        "notes": list(terms.kernel.notes),
    }


def granularity_to_json(steps: Sequence[GranularityStep]) -> list[dict[str, object]]:
    """Give a kernel with smaller and smaller DMA requests."""
    return [
        {
            "parts": one.parts,
            "smallest_bytes": one.smallest_bytes,
            "dma_requests": one.terms.dma.requests,
            **_times(one.terms),
            "saving_s": one.saving_s,
            "equation_13_s": one.equation_13_s,
        }
        for one in steps
    ]


def double_buffering_to_json(found: DoubleBuffering) -> dict[str, object]:
    """Give what double buffering would save."""
    return {
        "groups": found.terms.dma.groups,
        "saving_s": found.saving_s,
        "equation_14_s": found.equation_14_s,
        "t_total_s": found.t_total_s,
        "needed_bytes": found.needed_bytes,
        "fits": found.fits,
    }


def cpes_to_json(sweep: CpeSweep) -> dict[str, object]:
    """Give a kernel on several numbers of CPEs."""
    own = sweep.best_of_one_group
    return {
        "best_active_cpes": sweep.best.active_cpes,
        "best_of_one_group": None if own is None else own.active_cpes,
        "cpes": [
            {
                "active_cpes": one.active_cpes,
                **_times(one.terms),
                "saving_s": one.saving_s,
                "equation_15_s": one.equation_15_s,
            }
            for one in sweep.points
        ],
        "refused": [{"active_cpes": count, "reason": reason} for count, reason in sweep.refused],
    }


def _times(terms: ScratchpadTerms) -> dict[str, object]:
    return {
        "t_total_s": terms.t_total_s,
        "t_mem_s": terms.t_mem_s,
        "t_dma_s": terms.t_dma_s,
        "t_g_s": terms.t_g_s,
        "t_comp_s": terms.t_comp_s,
        "t_overlap_s": terms.t_overlap_s,
    }
