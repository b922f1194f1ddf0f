"""How far counts can be off that were derived from loops whose ends depend on data."""

import math
from dataclasses import dataclass

from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.summary import count_instructions
from kernelcast.features.counting.trips import ASSUMED_TRIPS, has_bound
from kernelcast.records.software_counters import SoftwareCounters

_LEFT_EARLY = 2.9
"""Logarithm of bounds over what loops really do that data may end earlier: what 9 of 10 counts of
the corpus stay below (1.2 to 26 times as many; they are never too few)."""
_ENDLESS = math.log(1000.0)
"""The same of loops without any bound, either way: one element of a list, or a search of ten
thousands, where `ASSUMED_TRIPS` are assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """What is not known of counts derived from the source."""

    half_width: float = 0.0
    """By how much the logarithm of the work may be off; 0 where the source tells all loops."""
    notes: tuple[str, ...] = ()
    """The loops, and what is assumed of them."""


def doubt_counts(facts: KernelFacts, counters: SoftwareCounters) -> Doubt:
    """Tell how far counts can be off, by the share of the work within loops that data end."""
    unsure = {one.name: one for one in facts.loops if not one.is_exact}
    if counters.is_exact or not unsure:
        return Doubt()
    endless = {name for name, one in unsure.items() if not has_bound(one)}
    work = [
        times * count_instructions(block.operations)
        for block, times in zip(facts.blocks, counters.block_counts, strict=True)
    ]
    every = sum(work)
    half_width = 0.0
    for names, width in ((unsure.keys() - endless, -_LEFT_EARLY), (endless, _ENDLESS)):
        share = _sum_within(facts, work, frozenset(names)) / every if every else 0.0
        half_width += abs(math.log(1.0 - share + share * math.exp(width)))
    notes = [_explain(one, is_endless=one.name in endless) for one in unsure.values()]
    return Doubt(half_width=half_width, notes=tuple(dict.fromkeys(notes)))


def _sum_within(facts: KernelFacts, work: list[float], names: frozenset[str]) -> float:
    """Add up the work of blocks that are reached through one of some loops."""
    counters = {
        one.counter
        for one in facts.reaches
        if not names.isdisjoint(each.name for each in one.loops)
    }
    return sum(
        amount
        for block, amount in zip(facts.blocks, work, strict=True)
        if any(counter in counters for counter, _ in block.count)
    )


def _explain(loop: LoopFacts, *, is_endless: bool) -> str:
    if is_endless:
        assumed = f"{ASSUMED_TRIPS} iterations are assumed, and it may be any number"
    else:
        assumed = "it is taken to run to its bound, and may end much earlier"
    return f"line {loop.line}: loop ends depend on data; {assumed}"
