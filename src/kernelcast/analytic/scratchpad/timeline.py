"""When virtual groups copy and compute (Fig. 4): one round of copy-in, computation, copy-out."""

from dataclasses import dataclass

from kernelcast.analytic.scratchpad.model import ScratchpadTerms
from kernelcast.records.errors import InputError


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
    """Lay out one round.

    Parameters
    ----------
    groups : int
        ``NG``.
    latency_s : float
        ``Req_Latency``: of one virtual group's requests.
    compute_s : float
        Of one round, at least 0.
    rounds : float
        Is passed on.

    Returns
    -------
    Timeline
        Memory serves one virtual group at a time, copy-ins first.

    Examples
    --------
    >>> plan_round(4, 1.0, 5.0).end_s, plan_round(4, 1.0, 2.0).end_s
    (10.0, 8.0)
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
