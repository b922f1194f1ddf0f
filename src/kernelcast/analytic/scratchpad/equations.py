"""Equations 1 to 15 of the static model of SW26010 (Xu et al., IPDPS 2018).

Each function is one equation and names its terms as the paper does. Latencies are core cycles as in
Table I, as are the times that equations 3 to 6 add up; `Freq` turns them into seconds. Equations
1, 2, 7, 8 and 13 to 15 hold in any unit of time.
"""

import math
from collections.abc import Iterable, Mapping

from kernelcast.analytic.scratchpad.kernel import DmaRequest
from kernelcast.analytic.scratchpad.machine import ScratchpadMachine
from kernelcast.records.errors import InputError

Requests = Iterable[tuple[float, float]]
"""Transactions of one request, and how many such requests one CPE issues."""


def total_time(t_mem: float, t_comp: float, t_overlap: float) -> float:
    """Equation 1: ``T_total = T_mem + T_comp - T_overlap``.

    Examples
    --------
    The paper's N-body, in microseconds:

    >>> round(total_time(memory_time(0, 695), 975, 571.4), 1)
    1098.6
    """
    return t_mem + t_comp - t_overlap


def memory_time(t_g: float, t_dma: float) -> float:
    """Equation 2: ``T_mem = T_g + T_DMA``."""
    return t_g + t_dma


def request_time(requests: Requests, active_cpes: int, machine: ScratchpadMachine) -> float:
    """Equation 3: the cycles of all Gload or DMA requests, ``sum of max(L_base, L_mem_bw)``.

    Parameters
    ----------
    requests : iterable of (float, float)
        Transactions of a request, and the number of such requests of one CPE.
    active_cpes : int
        ``#active_CPEs``.
    """
    return sum(
        count * max(machine.base_latency_cycles, bandwidth_latency(mrt, active_cpes, machine))
        for mrt, count in requests
    )


def bandwidth_latency(mrt: float, active_cpes: int, machine: ScratchpadMachine) -> float:
    """Equation 4: cycles in which memory serves one request of each active CPE.

    ``L_mem_bw = #active_CPEs * MRT / (mem_bw / Freq / Trans_size)``.

    Examples
    --------
    64 CPEs ask for one transaction each: 64 * 256 bytes at 32 GB/s are 512 ns.

    >>> from kernelcast.launches.modelling.scratchpad_machines import find_scratchpad
    >>> SW26010 = find_scratchpad("sw26010")
    >>> round(bandwidth_latency(1, 64, SW26010) / SW26010.clock_hz * 1e9)
    512
    """
    per_cycle = machine.bandwidth(active_cpes) / machine.clock_hz / machine.transaction_bytes
    return active_cpes * mrt / per_cycle


def count_transactions(request_bytes: float, transaction_bytes: int) -> int:
    """Equation 5: ``MRT = ceil(Req_size / Trans_size)``.

    Examples
    --------
    >>> count_transactions(32, 256), count_transactions(256, 256), count_transactions(257, 256)
    (1, 1, 2)
    """
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

    Examples
    --------
    >>> request_overlap(16, 2, 100.0)
    46.875
    """
    if requests <= 1 or groups <= 1:
        return 0.0
    return (1 - 1 / groups) * (1 - 1 / requests) * time


def count_groups(active_cpes: int, parallelism: float) -> int:
    """Equation 9: virtual groups, ``NG = ceil(active_CPEs / MRP)``, at least one.

    Parameters
    ----------
    active_cpes : int
        ``#active_CPEs``.
    parallelism : float
        ``MRP`` as equation 10 gives it. A virtual group is a number of CPEs, so whole CPEs count,
        and at least one.

    Notes
    -----
    The paper writes no rounding of MRP, but only with whole CPEs do equations 9 to 11 give the 16
    groups that it states for 64 CPEs and large blocks: MRP tends to 4.31, and 64 / 4.31 would be
    15 groups. For N-body's eight groups see docs/explanation/analytic-scratchpad.md.

    Examples
    --------
    >>> count_groups(64, 4.31)
    16
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
    """Equation 11: cycles of a request, ``L_avg = L_base + (avg_MRT - 1) * Delta_delay``.

    Examples
    --------
    >>> from kernelcast.launches.modelling.scratchpad_machines import find_scratchpad
    >>> SW26010 = find_scratchpad("sw26010")
    >>> average_latency(1, SW26010), average_latency(16, SW26010)
    (220.0, 970.0)
    """
    return machine.base_latency_cycles + (average_mrt - 1) * machine.delay_cycles


def average_transactions(requests: Requests) -> float:
    """Equation 12: ``avg_MRT_DMA = sum of MRT_DMA over requests / #DMA_reqs``; 0 without any.

    Examples
    --------
    >>> average_transactions([(4, 1), (1, 2)])
    2.0
    """
    listed = list(requests)
    count = sum(times for _, times in listed)
    return sum(mrt * times for mrt, times in listed) / count if count else 0.0


def smaller_dma_saving(requests_1: float, requests_2: float, t_dma: float) -> float:
    """Equation 13: time saved by more and smaller requests, ``(1/#DMA_1 - 1/#DMA_2) * T_DMA``.

    Examples
    --------
    >>> smaller_dma_saving(2, 16, 100.0)
    43.75
    """
    return (1 / requests_1 - 1 / requests_2) * t_dma


def double_buffer_saving(groups: float, t_dma: float, t_comp: float, t_overlap: float) -> float:
    """Equation 14: time saved at most, ``min(T_DMA / NG_DMA, T_comp - T_overlap)``.

    Parameters
    ----------
    groups : float
        ``NG_DMA``.
    t_dma : float
        ``T_DMA``, or the time of copy-in requests alone: Fig. 5 and the paper's N-body count the
        copy-in of one virtual group.
    t_comp, t_overlap : float
        Of the kernel as it is.

    Examples
    --------
    The paper's N-body, in microseconds; half of its DMA time is copy-in:

    >>> round(double_buffer_saving(8, 695 / 2, 975, 571.4), 1)
    43.4
    """
    return min(t_dma / groups, t_comp - t_overlap)


def fewer_cpes_saving(reduction: float, t_dma: float, t_comp: float) -> float:
    """Equation 15: time saved by leaving CPEs idle.

    ``Delta_active_CPEs * max(0, T_DMA - T_comp)``.

    Parameters
    ----------
    reduction : float
        By which fraction the active CPEs become fewer; 0.25 for 48 instead of 64.
    t_dma, t_comp : float
        With the larger number.

    Examples
    --------
    >>> fewer_cpes_saving(0.25, 120.0, 80.0), fewer_cpes_saving(0.25, 80.0, 120.0)
    (10.0, 0.0)
    """
    return reduction * max(0.0, t_dma - t_comp)
