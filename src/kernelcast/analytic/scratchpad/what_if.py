"""What if (Section IV): smaller requests, double buffering, other CPEs; a timeline (Fig. 4)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from kernelcast.analytic.scratchpad.kernel import ScratchpadKernel, ScratchpadMachine
from kernelcast.analytic.scratchpad.model import (
    ScratchpadTerms,
    double_buffer_saving,
    fewer_cpes_saving,
    model_kernel,
    smaller_dma_saving,
)
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class GranularityStep:
    """A kernel with smaller DMA requests (Fig. 7)."""

    parts: int
    """Into how many each request is divided."""
    smallest_bytes: float
    """Bytes of the smallest request."""
    terms: ScratchpadTerms
    """Of the whole model."""
    saving_s: float
    """What the whole model says is saved against the kernel as given."""
    equation_13_s: float
    """What equation 13 says: it leaves the number of virtual groups as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleBuffering:
    """What double buffering would save (Fig. 5 and 8)."""

    terms: ScratchpadTerms
    """Of the kernel as it is."""
    saving_s: float
    """Equation 14 with the time of copy-in requests, as Fig. 5 and the paper's N-body have it."""
    equation_14_s: float
    """Equation 14 as it is printed, with all of ``T_DMA``: an upper bound."""
    needed_bytes: float
    """Scratchpad for two of the largest copy-in requests."""
    fits: bool
    """Whether the scratchpad holds that."""

    @property
    def t_total_s(self) -> float:
        """Time with double buffering."""
        return self.terms.t_total_s - self.saving_s


@dataclass(frozen=True, slots=True, kw_only=True)
class CpePoint:
    """A kernel on another number of CPEs (Fig. 9 and 10)."""

    active_cpes: int
    terms: ScratchpadTerms
    """Of the whole model."""
    saving_s: float
    """What the whole model says is saved against the number given."""
    equation_15_s: float | None
    """What equation 15 says; None for more CPEs than given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpeSweep:
    """A kernel on several numbers of CPEs."""

    points: tuple[CpePoint, ...]
    """Those that are possible, at least one, in the order asked for."""
    cpes_per_group: int
    """CPEs of a core group."""
    refused: tuple[tuple[int, str], ...] = ()
    """Numbers that are not, and why."""

    @property
    def best(self) -> CpePoint:
        """The fastest."""
        return min(self.points, key=lambda one: one.terms.t_total_s)

    @property
    def best_of_one_group(self) -> CpePoint | None:
        """The fastest within one core group; None if no such number was tried."""
        within = [one for one in self.points if one.active_cpes <= self.cpes_per_group]
        return min(within, key=lambda one: one.terms.t_total_s, default=None)


def vary_granularity(
    kernel: ScratchpadKernel, machine: ScratchpadMachine
) -> tuple[GranularityStep, ...]:
    """Divide DMA requests by 1, 2, 4 and so on, as long as none gets below a transaction.

    Raises
    ------
    InputError
        If the kernel has no DMA requests.
    """
    if not kernel.dma:
        msg = f"{kernel.name}: no DMA request is given, so none can be made smaller"
        raise InputError(msg)
    given = model_kernel(kernel, machine)
    return tuple(_divide(kernel, machine, given))


def _divide(
    kernel: ScratchpadKernel, machine: ScratchpadMachine, given: ScratchpadTerms
) -> Iterator[GranularityStep]:
    parts = 1
    while True:
        smaller = replace(kernel, dma=tuple(one.divided(parts) for one in kernel.dma))
        least = min(copy.bytes for one in smaller.dma for copy in one.copies)
        if parts > 1 and least < machine.transaction_bytes:
            return
        terms = model_kernel(smaller, machine)
        yield GranularityStep(
            parts=parts,
            smallest_bytes=least,
            terms=terms,
            saving_s=given.t_total_s - terms.t_total_s,
            equation_13_s=smaller_dma_saving(given.dma.requests, terms.dma.requests, given.t_dma_s),
        )
        parts *= 2


def buffer_doubly(kernel: ScratchpadKernel, machine: ScratchpadMachine) -> DoubleBuffering:
    """Ask what double buffering would save.

    Raises
    ------
    InputError
        If the kernel has no DMA request that copies in.
    """
    copied = [one for one in kernel.dma if one.direction == "in"]
    if not copied:
        msg = f"{kernel.name}: no DMA request copies in, so there is nothing to buffer doubly"
        raise InputError(msg)
    terms = model_kernel(kernel, machine)
    needed = 2 * max(one.bytes for one in copied)
    rest = (terms.t_comp_s, terms.t_overlap_s)
    return DoubleBuffering(
        terms=terms,
        saving_s=double_buffer_saving(terms.dma.groups, terms.copy_in_s, *rest),
        equation_14_s=double_buffer_saving(terms.dma.groups, terms.t_dma_s, *rest),
        needed_bytes=needed,
        fits=needed <= machine.spm_bytes,
    )


def vary_cpes(
    make_kernel: Callable[[int], ScratchpadKernel],
    given: int,
    counts: Iterable[int],
    machine: ScratchpadMachine,
) -> CpeSweep:
    """Model a kernel on several numbers of CPEs.

    Parameters
    ----------
    make_kernel : callable
        Gives the kernel for a number of CPEs: what each of them does depends on it.
    given : int
        The number that the others are compared with.
    counts : iterable of int
        Numbers to try. A number is refused if it exceeds the processor's, or a request of so few
        CPEs a scratchpad.

    Raises
    ------
    InputError
        If the kernel as given is not possible, or none of the numbers is.
    """
    base = model_kernel(make_kernel(given), machine)
    found: list[CpePoint] = []
    refused: list[tuple[int, str]] = []
    for count in counts:
        try:
            terms = model_kernel(make_kernel(count), machine)
        except InputError as error:
            refused.append((count, str(error)))
            continue
        reduction = (given - count) / given
        found.append(
            CpePoint(
                active_cpes=count,
                terms=terms,
                saving_s=base.t_total_s - terms.t_total_s,
                equation_15_s=None
                if reduction < 0
                else fewer_cpes_saving(reduction, base.t_dma_s, base.t_comp_s),
            )
        )
    if not found:
        reason = refused[0][1] if refused else "none is asked for"
        msg = f"no number of active CPEs is possible: {reason}"
        raise InputError(msg)
    return CpeSweep(
        points=tuple(found), refused=tuple(refused), cpes_per_group=machine.cpes_per_group
    )


def list_cpe_counts(machine: ScratchpadMachine) -> list[int]:
    """List numbers of CPEs worth trying: eighths of a core group, then halves of the others."""
    group = machine.cpes_per_group
    within = {max(1, group * part // 8) for part in range(1, 9)}
    beyond = {group * part // 2 for part in range(3, 2 * machine.core_groups + 1)}
    return sorted(within | beyond)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimes:
    """When one virtual group does what; each pair is begin and end in seconds."""

    copy_in: tuple[float, float]
    compute: tuple[float, float]
    copy_out: tuple[float, float]
    """The three blocks of Fig. 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One round of all virtual groups."""

    groups: tuple[GroupTimes, ...]
    """In the order in which they win the memory."""
    rounds: float
    """How many such rounds the kernel makes: two DMA requests each."""
    is_fully_overlapped: bool
    """Scenario 2: memory never idles."""

    @property
    def end_s(self) -> float:
        """When the last group has copied its results out."""
        return self.groups[-1].copy_out[1]

    @property
    def idle_s(self) -> float:
        """How long memory idles between the last copy-in and the first copy-out."""
        return self.groups[0].copy_out[0] - self.groups[-1].copy_in[1]


def plan_round(groups: int, latency_s: float, compute_s: float, rounds: float = 1.0) -> Timeline:
    """Lay out one round: memory serves one virtual group at a time, copy-ins first.

    `latency_s` is ``Req_Latency``, of one virtual group's requests.
    """
    found: list[GroupTimes] = []
    free = groups * latency_s
    for number in range(groups):
        begin = (number + 1) * latency_s
        end = begin + compute_s
        out = max(end, free)
        free = out + latency_s
        found.append(
            GroupTimes(
                copy_in=(number * latency_s, begin), compute=(begin, end), copy_out=(out, free)
            )
        )
    return Timeline(
        groups=tuple(found),
        rounds=rounds,
        is_fully_overlapped=(groups - 1) * latency_s >= compute_s,
    )


def plan_timeline(terms: ScratchpadTerms) -> Timeline:
    """Lay out one round of a kernel: two DMA requests of average size, and their computation.

    Raises
    ------
    InputError
        If the kernel has no DMA requests.
    """
    if not terms.dma.requests:
        msg = f"{terms.kernel.name}: no DMA request is given, so there is no timeline to draw"
        raise InputError(msg)
    rounds = max(1.0, terms.dma.requests / 2)
    return plan_round(terms.dma.groups, terms.dma.latency_s, terms.t_comp_s / rounds, rounds=rounds)
