"""The static model of SW26010 (Xu et al., IPDPS 2018): its equations, and every term of a kernel.

Each equation is a function that names its terms as the paper does. Latencies are core cycles as in
Table I, as are the times that equations 3 to 6 add up; `Freq` turns them into seconds. Equations
1, 2, 7, 8 and 13 to 15 hold in any unit of time.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelcast.analytic.scratchpad.kernel import (
    Direction,
    DmaRequest,
    ScratchpadKernel,
    ScratchpadMachine,
)
from kernelcast.records.errors import InputError

Requests = Iterable[tuple[float, float]]
"""Transactions of one request, and how many such requests one CPE issues."""


def total_time(t_mem: float, t_comp: float, t_overlap: float) -> float:
    """Equation 1: ``T_total = T_mem + T_comp - T_overlap``."""
    return t_mem + t_comp - t_overlap


def memory_time(t_g: float, t_dma: float) -> float:
    """Equation 2: ``T_mem = T_g + T_DMA``."""
    return t_g + t_dma


def request_time(requests: Requests, active_cpes: int, machine: ScratchpadMachine) -> float:
    """Equation 3: the cycles of all Gload or DMA requests, ``sum of max(L_base, L_mem_bw)``."""
    return sum(
        count * max(machine.base_latency_cycles, bandwidth_latency(mrt, active_cpes, machine))
        for mrt, count in requests
    )


def bandwidth_latency(mrt: float, active_cpes: int, machine: ScratchpadMachine) -> float:
    """Equation 4: cycles in which memory serves one request of each active CPE.

    ``L_mem_bw = #active_CPEs * MRT / (mem_bw / Freq / Trans_size)``.
    """
    per_cycle = machine.bandwidth(active_cpes) / machine.clock_hz / machine.transaction_bytes
    return active_cpes * mrt / per_cycle


def count_transactions(request_bytes: float, transaction_bytes: int) -> int:
    """Equation 5: ``MRT = ceil(Req_size / Trans_size)``."""
    return math.ceil(request_bytes / transaction_bytes)


def count_dma_transactions(request: DmaRequest, transaction_bytes: int) -> float:
    """Equation 5 for each contiguous chunk of a request: strided copies take more transactions."""
    total = 0.0
    for one in request.copies:
        chunk = one.bytes if one.chunk_bytes is None else one.chunk_bytes
        whole, rest = divmod(one.bytes, chunk)
        total += whole * count_transactions(chunk, transaction_bytes)
        # What rounding leaves of a mean is no chunk.
        total += count_transactions(rest, transaction_bytes) if rest > 1e-6 * chunk else 0
    return total


def computation_time(
    counts: Mapping[str, float], average_ilp: float, machine: ScratchpadMachine
) -> float:
    """Equation 6: the cycles of compute instructions, ``sum of L_t * #t, over avg_ILP``.

    Raises
    ------
    InputError
        If the machine knows no instruction of a type; names those it knows.
    """
    unknown = sorted(set(counts) - set(machine.latencies_cycles))
    if unknown:
        msg = (
            f"compute instructions {', '.join(unknown)}: {machine.name} has no such type; it has "
            f"{', '.join(machine.latencies_cycles)}"
        )
        raise InputError(msg)
    cycles = sum(machine.latencies_cycles[kind] * count for kind, count in counts.items())
    return cycles / average_ilp


def overlap_time(t_comp: float, t_dma_overlap: float, t_g_overlap: float) -> float:
    """Equation 7: ``T_overlap = min(T_comp, T_DMA_overlap + T_g_overlap)``."""
    return min(t_comp, t_dma_overlap + t_g_overlap)


def request_overlap(groups: float, requests: float, time: float) -> float:
    """Equation 8: what of the requests can overlap, ``(1 - 1/NG) * (1 - 1/#reqs) * T``.

    The first virtual group and the last request overlap with nothing; a single request does not.
    """
    if requests <= 1 or groups <= 1:
        return 0.0
    return (1 - 1 / groups) * (1 - 1 / requests) * time


def count_groups(active_cpes: int, parallelism: float) -> int:
    """Equation 9: virtual groups, ``NG = ceil(active_CPEs / MRP)``, at least one.

    A virtual group is a number of CPEs, so whole CPEs of `parallelism` (``MRP``) count, and at
    least one. The paper writes no rounding of MRP, but only with whole CPEs do equations 9 to 11
    give the 16 groups that it states for 64 CPEs and large blocks: MRP tends to 4.31, and
    64 / 4.31 would be 15 groups. For N-body's eight groups see
    docs/explanation/analytic-scratchpad.md.
    """
    return math.ceil(active_cpes / max(1, math.floor(parallelism)))


def request_parallelism(average_mrt: float, active_cpes: int, machine: ScratchpadMachine) -> float:
    """Equation 10: CPEs whose requests together use the whole bandwidth during one latency.

    ``MRP = L_avg * mem_bw / (Freq * Trans_size * avg_MRT)``; active CPEs say how many core groups
    there are.
    """
    latency = average_latency(average_mrt, machine)
    volume = machine.clock_hz * machine.transaction_bytes * average_mrt
    return latency * machine.bandwidth(active_cpes) / volume


def average_latency(average_mrt: float, machine: ScratchpadMachine) -> float:
    """Equation 11: cycles of a request, ``L_avg = L_base + (avg_MRT - 1) * Delta_delay``."""
    return machine.base_latency_cycles + (average_mrt - 1) * machine.delay_cycles


def average_transactions(requests: Requests) -> float:
    """Equation 12: ``avg_MRT_DMA = sum of MRT_DMA over requests / #DMA_reqs``; 0 without any."""
    listed = list(requests)
    count = sum(times for _, times in listed)
    return sum(mrt * times for mrt, times in listed) / count if count else 0.0


def smaller_dma_saving(requests_1: float, requests_2: float, t_dma: float) -> float:
    """Equation 13: time saved by more and smaller requests, ``(1/#DMA_1 - 1/#DMA_2) * T_DMA``."""
    return (1 / requests_1 - 1 / requests_2) * t_dma


def double_buffer_saving(groups: float, t_dma: float, t_comp: float, t_overlap: float) -> float:
    """Equation 14: time saved at most, ``min(T_DMA / NG_DMA, T_comp - T_overlap)``.

    `t_dma` is ``T_DMA``, or the time of copy-in requests alone: Fig. 5 and the paper's N-body count
    the copy-in of one virtual group.
    """
    return min(t_dma / groups, t_comp - t_overlap)


def fewer_cpes_saving(reduction: float, t_dma: float, t_comp: float) -> float:
    """Equation 15: time saved by a fraction of CPEs left idle (0.25 for 48 instead of 64).

    ``Delta_active_CPEs * max(0, T_DMA - T_comp)``, times with the larger number.
    """
    return reduction * max(0.0, t_dma - t_comp)


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
    size = machine.transaction_bytes
    dma = [(count_dma_transactions(one, size), one.count) for one in kernel.dma]
    gload = [(float(count_transactions(one.bytes, size)), one.count) for one in kernel.gloads]
    dma_terms, gload_terms = (_collect(one, kernel, machine) for one in (dma, gload))
    copy_in = [
        pair for pair, one in zip(dma, kernel.dma, strict=True) if one.direction is Direction.IN
    ]
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
    average = average_transactions(requests)
    parallelism = latency = 0.0
    groups = 1
    if count:
        parallelism = request_parallelism(average, kernel.active_cpes, machine)
        groups = count_groups(kernel.active_cpes, parallelism)
        latency = average_latency(average, machine) / machine.clock_hz
    time = request_time(requests, kernel.active_cpes, machine) / machine.clock_hz
    return RequestTerms(
        requests=count,
        transactions=sum(mrt * times for mrt, times in requests),
        average_mrt=average,
        latency_s=latency,
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
