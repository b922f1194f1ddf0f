"""The static model of SW26010, cores with scratchpads for caches (Xu et al., IPDPS 2018).

Machines, kernels, every term of a kernel, and what if. Terms are named as in the paper's Table I.
Latencies are core cycles, as are the times that equations 3 to 6 add up; `Freq` turns them into
seconds.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import NamedTuple

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchpadMachine:
    """A processor whose cores fill scratchpads themselves, in the numbers of Table I."""

    id: str
    name: str
    clock_hz: float
    """``Freq``."""
    bandwidth_bytes_per_s: float
    """``mem_bw``: of memory, per core group."""
    transaction_bytes: int
    """``Trans_size``: bytes of a transaction with memory."""
    delay_cycles: float
    """Delta delay: what each further transaction of a request adds to its latency."""
    base_latency_cycles: float
    """``L_base``: of a request that meets no other."""
    latencies_cycles: Mapping[str, float]
    """``L_t``: of each type of compute instruction."""
    cpes_per_group: int
    core_groups: int
    """Computing elements of a core group, and core groups."""
    spm_bytes: int
    gload_bytes: int

    def __post_init__(self) -> None:
        numbers = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, value in numbers.items():
            if isinstance(value, int | float) and not (math.isfinite(value) and value > 0):
                raise InputError(f"machine {self.id}: {name} is {value}; expected a number above 0")
        if not self.latencies_cycles:
            raise InputError(f"machine {self.id}: no latency of a compute instruction is given")

    @property
    def most_cpes(self) -> int:
        return self.cpes_per_group * self.core_groups

    def bandwidth(self, active_cpes: int) -> float:
        """Compute the bandwidth of the core groups that active elements fill (Section V-C3)."""
        if not 1 <= active_cpes <= self.most_cpes:
            raise InputError(
                f"{active_cpes} active CPEs: {self.name} has {self.most_cpes} "
                f"({self.core_groups} core groups of {self.cpes_per_group}); give 1 to "
                f"{self.most_cpes}"
            )
        return -(-active_cpes // self.cpes_per_group) * self.bandwidth_bytes_per_s


class Direction(StrEnum):
    IN = "in"
    """From memory to the scratchpad."""
    OUT = "out"
    """From the scratchpad to memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One array's part of a request."""

    bytes: float
    chunk_bytes: float | None = None
    """Bytes that lie side by side in memory; None if all do. Each chunk takes whole transactions
    (Section III-C, strided transfers)."""

    def __post_init__(self) -> None:
        chunk = self.bytes if self.chunk_bytes is None else self.chunk_bytes
        if not 0 < chunk <= self.bytes:
            raise InputError(
                f"a copy of {self.bytes} bytes in chunks of {chunk}; expected both above 0, and "
                "chunks no larger than the copy"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Requests of one kind, as one CPE issues them: DMA, one for all arrays of a copy intrinsic, or
    Gload, which loads and stores registers around the scratchpad."""

    name: str
    copies: tuple[Copy, ...]
    count: float = 1.0
    """Requests of one CPE."""
    direction: Direction | None = None
    """None for Gloads, of either."""

    def __post_init__(self) -> None:
        if not self.copies or self.count <= 0:
            msg = f"request {self.name}: needs at least one copy and a count above 0"
            raise InputError(msg)

    @property
    def bytes(self) -> float:
        """What one request moves: ``Req_size_DMA``, ``Req_size_g``."""
        return sum(one.bytes for one in self.copies)

    def divided(self, parts: int) -> "Request":
        """Make smaller requests that copy the same in all (Section IV-1)."""
        copies = tuple(
            Copy(
                bytes=one.bytes / parts,
                chunk_bytes=one.chunk_bytes and min(one.chunk_bytes, one.bytes / parts),
            )
            for one in self.copies
        )
        return replace(self, copies=copies, count=self.count * parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchpadKernel:
    """A kernel as one CPE executes it, the longest where they differ."""

    name: str
    active_cpes: int
    """``#active_CPEs``."""
    dma: tuple[Request, ...] = ()
    """``#DMA_reqs`` is the sum of their counts."""
    gloads: tuple[Request, ...] = ()
    """``#g_reqs`` is the sum of their counts."""
    compute: Mapping[str, float] = field(default_factory=dict)
    """``#t``: compute instructions by type; types are those of the machine."""
    average_ilp: float = 1.0
    """``avg_ILP``: compute instructions in flight together, at least 1."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.average_ilp < 1 or self.active_cpes < 1:
            raise InputError(
                f"{self.name}: average ILP {self.average_ilp}, {self.active_cpes} active CPEs; "
                "expected both at least 1"
            )
        if any(count < 0 for count in self.compute.values()):
            raise InputError(f"{self.name}: a number of compute instructions is negative")
        if not self.dma and not self.gloads and not any(self.compute.values()):
            msg = f"{self.name}: no DMA or Gload request and no compute instruction is given"
            raise InputError(msg)

    @property
    def smallest_copy_bytes(self) -> float:
        return min(copy.bytes for one in self.dma for copy in one.copies)


def request_time(
    requests: Sequence[Request], active_cpes: int, machine: ScratchpadMachine
) -> float:
    """Equations 3 and 4: the cycles of all requests, ``sum of max(L_base, L_mem_bw)``.

    Memory serves one request of each active CPE in
    ``L_mem_bw = #active_CPEs * MRT / (mem_bw / Freq / Trans_size)``.
    """
    size = machine.transaction_bytes
    per_cycle = machine.bandwidth(active_cpes) / machine.clock_hz / size
    return sum(
        one.count
        * max(machine.base_latency_cycles, active_cpes * count_transactions(one, size) / per_cycle)
        for one in requests
    )


def count_transactions(request: Request, transaction_bytes: int) -> float:
    """Equation 5, ``MRT = ceil(Req_size / Trans_size)``, for each chunk of a request."""
    total = 0.0
    for one in request.copies:
        chunk = one.bytes if one.chunk_bytes is None else one.chunk_bytes
        whole, rest = divmod(one.bytes, chunk)
        total += whole * math.ceil(chunk / transaction_bytes)
        # What rounding leaves of a mean is no chunk.
        total += math.ceil(rest / transaction_bytes) if rest > 1e-6 * chunk else 0
    return total


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
    """Of both ways to memory; their times are ``T_DMA`` and ``T_g``."""
    copy_in_s: float
    """The part of ``T_DMA`` that copies from memory."""

    @property
    def is_fully_overlapped(self) -> bool:
        """Whether all computation overlaps: Scenario 2 of Section III-A, memory never idles."""
        return self.t_overlap_s >= self.t_comp_s


def model_kernel(kernel: ScratchpadKernel, machine: ScratchpadMachine) -> ScratchpadTerms:
    """Compute every term of a kernel; refuses what the processor cannot do."""
    for one in kernel.dma:
        if one.bytes > machine.spm_bytes:
            raise InputError(
                f"{kernel.name}: a DMA request {one.name} copies {one.bytes:,.0f} bytes; a "
                f"scratchpad of {machine.name} holds {machine.spm_bytes:,}: divide the request"
            )
    for each in kernel.gloads:
        if each.bytes > machine.gload_bytes:
            raise InputError(
                f"{kernel.name}: a Gload request {each.name} moves {each.bytes:g} bytes; "
                f"{machine.name} moves at most {machine.gload_bytes}: count more requests"
            )
    unknown = sorted(set(kernel.compute) - set(machine.latencies_cycles))
    if unknown:
        raise InputError(
            f"compute instructions {', '.join(unknown)}: {machine.name} has no such type; it has "
            f"{', '.join(machine.latencies_cycles)}"
        )
    cpes = kernel.active_cpes
    copy_in = [one for one in kernel.dma if one.direction is Direction.IN]
    dma, gload = (_collect(one, cpes, machine) for one in (kernel.dma, kernel.gloads))
    cycles = sum(machine.latencies_cycles[kind] * count for kind, count in kernel.compute.items())
    t_comp = cycles / kernel.average_ilp / machine.clock_hz  # equation 6
    t_overlap = min(t_comp, dma.overlap_s + gload.overlap_s)  # equation 7
    t_mem = gload.time_s + dma.time_s  # equation 2
    return ScratchpadTerms(
        kernel=kernel,
        t_total_s=t_mem + t_comp - t_overlap,  # equation 1
        t_mem_s=t_mem,
        t_comp_s=t_comp,
        t_overlap_s=t_overlap,
        dma=dma,
        gload=gload,
        copy_in_s=request_time(copy_in, cpes, machine) / machine.clock_hz,
    )


def _collect(requests: Sequence[Request], cpes: int, machine: ScratchpadMachine) -> RequestTerms:
    size = machine.transaction_bytes
    number = sum(one.count for one in requests)
    transactions = sum(count_transactions(one, size) * one.count for one in requests)
    average = parallelism = cycles = 0.0
    groups = 1
    if number:
        average = transactions / number  # equation 12
        # Equation 11: cycles of a request, ``L_avg = L_base + (avg_MRT - 1) * Delta_delay``.
        cycles = machine.base_latency_cycles + (average - 1) * machine.delay_cycles
        # Equation 10: CPEs whose requests together use the whole bandwidth during one latency,
        # ``MRP = L_avg * mem_bw / (Freq * Trans_size * avg_MRT)``, of all core groups.
        volume = machine.clock_hz * machine.transaction_bytes * average
        parallelism = cycles * machine.bandwidth(cpes) / volume
        # Equation 9: virtual groups, ``NG = ceil(active_CPEs / MRP)``, at least one. The paper
        # writes no rounding of MRP, but only with whole CPEs do equations 9 to 11 give the 16
        # groups that it states for 64 CPEs and large blocks
        # (docs/explanation/analytic-scratchpad.md).
        groups = math.ceil(cpes / max(1, math.floor(parallelism)))
    time = request_time(requests, cpes, machine) / machine.clock_hz
    # Equation 8: the first virtual group and the last request overlap with nothing.
    overlap = (1 - 1 / groups) * (1 - 1 / number) * time if number > 1 else 0.0
    return RequestTerms(
        requests=number,
        transactions=transactions,
        average_mrt=average,
        latency_s=cycles / machine.clock_hz,
        parallelism=parallelism,
        groups=groups,
        time_s=time,
        overlap_s=overlap,
    )


class Variant(NamedTuple):
    """A kernel with smaller DMA requests (Fig. 7), or on another number of CPEs (Fig. 9 and 10)."""

    number: int
    """Parts into which each request is divided, or active CPEs."""
    terms: ScratchpadTerms
    saving_s: float
    """What the whole model says is saved against the kernel as given."""
    equation_s: float | None
    """What the paper's equation says of that, 13 or 15; None where it says nothing."""


def vary_granularity(kernel: ScratchpadKernel, machine: ScratchpadMachine) -> list[Variant]:
    """Divide DMA requests by 1, 2, 4 and so on, as long as none gets below a transaction."""
    if not kernel.dma:
        raise InputError(f"{kernel.name}: no DMA request is given, so none can be made smaller")
    given = model_kernel(kernel, machine)
    steps: list[Variant] = []
    parts = 1
    while True:
        smaller = replace(kernel, dma=tuple(one.divided(parts) for one in kernel.dma))
        if parts > 1 and smaller.smallest_copy_bytes < machine.transaction_bytes:
            return steps
        terms = model_kernel(smaller, machine)
        # Equation 13, ``(1/#DMA_1 - 1/#DMA_2) * T_DMA``, leaves the number of virtual groups as it
        # was.
        saved = (1 / given.dma.requests - 1 / terms.dma.requests) * given.dma.time_s
        steps.append(Variant(parts, terms, given.t_total_s - terms.t_total_s, saved))
        parts *= 2


def buffer_doubly(kernel: ScratchpadKernel, machine: ScratchpadMachine) -> dict[str, float]:
    """Compute what double buffering would save (Fig. 5 and 8), and what it needs.

    ``saving_s`` is equation 14, ``min(T_DMA / NG_DMA, T_comp - T_overlap)``, with the time of
    copy-in requests for ``T_DMA``, as Fig. 5 and the paper's N-body have it; ``equation_14_s`` as
    it is printed, with all of ``T_DMA``, is an upper bound. ``needed_bytes`` of scratchpad hold two
    of the largest copy-in requests.
    """
    copied = [one for one in kernel.dma if one.direction is Direction.IN]
    if not copied:
        msg = f"{kernel.name}: no DMA request copies in, so there is nothing to buffer doubly"
        raise InputError(msg)
    terms = model_kernel(kernel, machine)
    needed = 2 * max(one.bytes for one in copied)
    groups, most = terms.dma.groups, terms.t_comp_s - terms.t_overlap_s
    saved = min(terms.copy_in_s / groups, most)
    return {
        "saving_s": saved, "equation_14_s": min(terms.dma.time_s / groups, most),
        "t_total_s": terms.t_total_s - saved, "needed_bytes": needed,
        "fits": needed <= machine.spm_bytes, "groups": groups,
    }  # fmt: skip


def vary_cpes(
    make_kernel: Callable[[int], ScratchpadKernel],
    given: int,
    counts: Iterable[int],
    machine: ScratchpadMachine,
) -> tuple[list[Variant], list[tuple[int, str]]]:
    """Model a kernel on several numbers of CPEs, against the one given: those that are possible,
    at least one, in the order asked for; and the others, each with the reason."""
    base = model_kernel(make_kernel(given), machine)
    found: list[Variant] = []
    refused: list[tuple[int, str]] = []
    for count in counts:
        try:
            terms = model_kernel(make_kernel(count), machine)
        except InputError as error:
            refused.append((count, str(error)))
            continue
        # Equation 15, ``Delta_active_CPEs * max(0, T_DMA - T_comp)``, where the first is the share
        # of the CPEs left idle; it says nothing of more CPEs than given.
        idle = (given - count) / given
        saved = None if idle < 0 else idle * max(0.0, base.dma.time_s - base.t_comp_s)
        found.append(Variant(count, terms, base.t_total_s - terms.t_total_s, saved))
    if not found:
        reason = refused[0][1] if refused else "none is asked for"
        raise InputError(f"no number of active CPEs is possible: {reason}")
    return found, refused


def list_cpe_counts(machine: ScratchpadMachine) -> list[int]:
    """List numbers of CPEs worth trying: eighths of a core group, then halves of the others."""
    group = machine.cpes_per_group
    within = {max(1, group * part // 8) for part in range(1, 9)}
    beyond = {group * part // 2 for part in range(3, 2 * machine.core_groups + 1)}
    return sorted(within | beyond)


def plan_timeline(terms: ScratchpadTerms) -> tuple[dict[str, list[tuple[float, float]]], float]:
    """Lay out one round of a kernel: two DMA requests of average size, and their computation.

    Begin and end of the three blocks of Fig. 4, in seconds, of each virtual group in the order in
    which they win the memory; and how many such rounds the kernel makes.
    """
    rounds = max(1.0, terms.dma.requests / 2)
    groups, latency, compute = terms.dma.groups, terms.dma.latency_s, terms.t_comp_s / rounds
    spans: dict[str, list[tuple[float, float]]] = {"copy in": [], "compute": [], "copy out": []}
    free = groups * latency
    for number in range(groups):
        begin = (number + 1) * latency
        out = max(begin + compute, free)
        free = out + latency
        spans["copy in"].append((number * latency, begin))
        spans["compute"].append((begin, begin + compute))
        spans["copy out"].append((out, free))
    return spans, rounds
