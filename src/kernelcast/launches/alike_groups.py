"""Whether all work-groups of a launch do the same: a function of its sizes that is written once."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from kernelcast.expressions import Condition, Symbol, SymbolKind
from kernelcast.expressions.interval_code import IntervalCode
from kernelcast.expressions.junctions import And
from kernelcast.expressions.kernel_facts import CounterReach, KernelFacts
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.trips import find_loops
from kernelcast.launches.reach_code import depends_on_data
from kernelcast.launches.size_program import begin_code, find_scalars, list_numbers, write_guess
from kernelcast.records.arguments import Argument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

_PLACES = frozenset({SymbolKind.GLOBAL_ID, SymbolKind.GROUP_ID})
Alike = Callable[[Sequence[int], Sequence[float]], float | None]


def are_alike(kernel: Kernel, ndrange: NDRange, arguments: Sequence[Argument]) -> bool | None:
    """Tell whether the source proves that all work-groups of a launch do the same.

    Parameters
    ----------
    ndrange : NDRange
        The launch; the local size is chosen.

    Returns
    -------
    bool or None
        None where data certainly decide what they do: a closer look at the source tells no more.
    """
    if not ndrange.is_uniform:
        return False
    local, offset = ndrange.known_local_size, ndrange.global_offset
    tell = _write(kernel, local, offset, find_scalars(arguments))
    try:
        found = None if tell is None else tell(ndrange.global_size, list_numbers(arguments))
    except (ValueError, ZeroDivisionError):  # of EvaluationError, and of too few arguments
        return False
    return None if found is not None and math.isnan(found) else bool(found)


@lru_cache(maxsize=256)
def _write(
    kernel: Kernel, local_size: tuple[int, ...], offset: tuple[int, ...], scalars: frozenset[int]
) -> Alike | None:
    """Write the function; None where the source cannot be followed."""
    try:
        facts = analyse(kernel).facts
        code = begin_code(facts, local_size, offset, scalars)
        for reach in facts.reaches:
            write_guess(code, facts, reach)
        may_be = not facts.gaps and all(_write_reach(code, facts, one) for one in facts.reaches)
        code.write(f"return {may_be}")
        made: Alike = code.make("alike", "sizes, values")
    except (KernelcastError, RecursionError):
        return None
    return made


def _write_reach(code: IntervalCode, facts: KernelFacts, reach: CounterReach) -> bool:
    """Write where work-groups reach a counter unlike each other; tell if they may not anywhere."""
    for loop in find_loops(facts, reach.loops):
        trips = loop.facts.trip_count
        is_known = loop.facts.is_exact and (trips is not None or loop.facts.condition.is_exact)
        if not is_known or depends_on_data(loop.symbols):
            return False
        if _tells_place(loop.symbols):
            if trips is None:
                return False
            low, high, _ = code.bound(trips)
            code.write(f"if {low} != {high}: return False")
    parts = reach.guard.parts if isinstance(reach.guard, And) else (reach.guard,)
    return all(_write_part(code, one) for one in parts)


def _write_part(code: IntervalCode, part: Condition) -> bool:
    """Write that a part of a guard holds in all work-groups or in none; tell if it may."""
    if not part.is_exact or depends_on_data(part.symbols()):
        return False
    if _tells_place(part.symbols()):
        holds, fails = code.decide(part)
        code.write(f"if not ({holds} or {fails}): return False")
    return True


def _tells_place(symbols: Iterable[Symbol]) -> bool:
    return not _PLACES.isdisjoint(one.kind for one in symbols)
