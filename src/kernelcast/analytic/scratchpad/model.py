"""Puts the equations together: every term of a kernel on a scratchpad processor."""

from dataclasses import dataclass

from kernelcast.analytic.scratchpad.equations import (
    average_latency,
    average_transactions,
    computation_time,
    count_dma_transactions,
    count_groups,
    count_transactions,
    memory_time,
    overlap_time,
    request_overlap,
    request_parallelism,
    request_time,
    total_time,
)
from kernelcast.analytic.scratchpad.kernel import Direction, ScratchpadKernel
from kernelcast.analytic.scratchpad.machine import ScratchpadMachine
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTerms:
    """Terms of all Gload requests, or of all DMA requests, of one CPE."""

    requests: float
    """``#g_reqs`` or ``#DMA_reqs``."""
    transactions: float
    """``MRT``, all requests together."""
    average_mrt: float
    """``avg_MRT``, equation 12; 0 without requests."""
    latency_s: float
    """``L_avg``, equation 11: the blue block of Fig. 4."""
    parallelism: float
    """``MRP``, equation 10."""
    groups: int
    """``NG``, equation 9."""
    time_s: float
    """``T_g`` or ``T_DMA``, equation 3."""
    overlap_s: float
    """``T_g_overlap`` or ``T_DMA_overlap``, equation 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchpadTerms:
    """Every term of Table I's second half, in seconds."""

    kernel: ScratchpadKernel
    t_total_s: float
    t_mem_s: float
    t_comp_s: float
    t_overlap_s: float
    """Equations 1, 2, 6 and 7."""
    dma: RequestTerms
    gload: RequestTerms
    """Of both ways to memory."""
    copy_in_s: float
    """The part of ``T_DMA`` that copies from memory."""

    @property
    def t_dma_s(self) -> float:
        """``T_DMA``."""
        return self.dma.time_s

    @property
    def t_g_s(self) -> float:
        """``T_g``."""
        return self.gload.time_s

    @property
    def is_fully_overlapped(self) -> bool:
        """Whether all computation overlaps: Scenario 2 of Section III-A, memory never idles."""
        return self.t_overlap_s >= self.t_comp_s


def model_kernel(kernel: ScratchpadKernel, machine: ScratchpadMachine) -> ScratchpadTerms:
    """Compute every term of a kernel.

    Raises
    ------
    InputError
        If a request is larger than the processor takes, it has fewer CPEs, or no instruction of a
        type that is counted.
    """
    _check(kernel, machine)
    dma = [
        (count_dma_transactions(one, machine.transaction_bytes), one.count, one.direction)
        for one in kernel.dma
    ]
    gload = [
        (float(count_transactions(one.bytes, machine.transaction_bytes)), one.count)
        for one in kernel.gloads
    ]
    dma_terms = _collect([(mrt, count) for mrt, count, _ in dma], kernel, machine)
    gload_terms = _collect(gload, kernel, machine)
    copy_in = [(mrt, count) for mrt, count, direction in dma if direction is Direction.IN]
    t_comp = computation_time(kernel.compute, kernel.average_ilp, machine) / machine.clock_hz
    t_overlap = overlap_time(t_comp, dma_terms.overlap_s, gload_terms.overlap_s)
    t_mem = memory_time(gload_terms.time_s, dma_terms.time_s)
    return ScratchpadTerms(
        kernel=kernel,
        t_total_s=total_time(t_mem, t_comp, t_overlap),
        t_mem_s=t_mem,
        t_comp_s=t_comp,
        t_overlap_s=t_overlap,
        dma=dma_terms,
        gload=gload_terms,
        copy_in_s=request_time(copy_in, kernel.active_cpes, machine) / machine.clock_hz,
    )


def _collect(
    requests: list[tuple[float, float]], kernel: ScratchpadKernel, machine: ScratchpadMachine
) -> RequestTerms:
    count = sum(times for _, times in requests)
    if not count:
        return RequestTerms(
            requests=0.0, transactions=0.0, average_mrt=0.0, latency_s=0.0, parallelism=0.0,
            groups=1, time_s=0.0, overlap_s=0.0,
        )  # fmt: skip
    average = average_transactions(requests)
    parallelism = request_parallelism(average, kernel.active_cpes, machine)
    groups = count_groups(kernel.active_cpes, parallelism)
    time = request_time(requests, kernel.active_cpes, machine) / machine.clock_hz
    return RequestTerms(
        requests=count,
        transactions=sum(mrt * times for mrt, times in requests),
        average_mrt=average,
        latency_s=average_latency(average, machine) / machine.clock_hz,
        parallelism=parallelism,
        groups=groups,
        time_s=time,
        overlap_s=request_overlap(groups, count, time),
    )


def _check(kernel: ScratchpadKernel, machine: ScratchpadMachine) -> None:
    """Refuse requests that the processor cannot make."""
    machine.bandwidth(kernel.active_cpes)
    for dma in kernel.dma:
        if dma.bytes > machine.spm_bytes:
            msg = (
                f"{kernel.name}: a DMA request {dma.name} copies {dma.bytes:,.0f} bytes; a "
                f"scratchpad of {machine.name} holds {machine.spm_bytes:,}: divide the request"
            )
            raise InputError(msg)
    for gload in kernel.gloads:
        if gload.bytes > machine.gload_bytes:
            msg = (
                f"{kernel.name}: a Gload request {gload.name} moves {gload.bytes:g} bytes; "
                f"{machine.name} moves at most {machine.gload_bytes}: count more requests"
            )
            raise InputError(msg)
