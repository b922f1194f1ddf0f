"""Python that counts how often work-items reach a counter: written once, run for each launch.

It counts the work-items of sampled work-groups as `kernelcast.features.counting.static` does. What
sizes decide is one number wherever it is the same for all of them, and an array where it is not;
what sizes do not decide is counted when the code is written.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np

from kernelcast.expressions import Condition, conjunction
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.comparisons import Comparison, Relation
from kernelcast.expressions.conditions import TRUE, Unknown
from kernelcast.expressions.evaluation import EvaluationError, IntArray, Value
from kernelcast.expressions.interval_code import IntervalCode
from kernelcast.expressions.junctions import And
from kernelcast.expressions.kernel_facts import CounterReach, KernelFacts
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.features.counting.bindings import bind_ids
from kernelcast.features.counting.sampled_groups import choose_numbers
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.trips import Loop, find_loops, known_part
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange

SAMPLED = 8
"""Work-groups that are counted, at most; see `choose_work_groups`."""
_OF_GROUPS = frozenset({SymbolKind.GROUP_ID, SymbolKind.GLOBAL_ID})
_INNER = frozenset({SymbolKind.LOCAL_ID, SymbolKind.LOCAL_SIZE, SymbolKind.LOOP})


@dataclass(slots=True)
class _Part:
    """Loops and conditions that depend on each other's iterations, and on nobody else's."""

    loops: list[LoopFacts] = field(default_factory=list)
    guards: list[Condition] = field(default_factory=list)

    def symbols(self) -> frozenset[Symbol]:
        """Give all symbols in it, those of iterations as well."""
        every = [_symbols_of(one) for one in self.loops] + [one.symbols() for one in self.guards]
        return frozenset().union(*every)

    def is_fixed(self) -> bool:
        """Tell whether it is a loop that makes the same number of iterations everywhere."""
        trips = [one.trip_count for one in self.loops]
        return (
            not self.guards and len(trips) == 1 and trips[0] is not None and not trips[0].symbols()
        )

    def iterations(self) -> frozenset[Symbol]:
        """Give those of iterations alone."""
        return frozenset(one for one in self.symbols() if one.kind is SymbolKind.LOOP)


@dataclass(slots=True)
class _Factors:
    """What a number of iterations is a product of: numbers, and what may differ by work-item."""

    numbers: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)

    def multiply(self) -> str:
        """Give Python that adds the product up over work-items."""
        if not self.arrays:
            return "*".join([*self.numbers, "n"])
        return f"count({'*'.join([*self.numbers, *self.arrays])}, n)"


def _symbols_of(loop: LoopFacts) -> frozenset[Symbol]:
    return Loop(loop).symbols | {Symbol(SymbolKind.LOOP, loop.name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachWriter:
    """Writes what adds up counters ``n0``, ``n1``, ... over ``n`` work-items.

    Parameters
    ----------
    facts : KernelFacts
        The kernel.
    local_size, offset : tuple of int
        Of the launches.
    """

    facts: KernelFacts
    local_size: tuple[int, ...]
    offset: tuple[int, ...]

    def begin(self, code: IntervalCode) -> None:
        """Write how many work-items are counted, and hold their local ids."""
        code.scope |= {"count": _count, "most": _take_most, "turns": _count_turns,
                       "places": _choose_places}  # fmt: skip
        whole = NDRange(global_size=self.local_size, local_size=self.local_size)
        for symbol, value in bind_ids(whole, (0,)).bindings.items():
            if symbol.kind is SymbolKind.LOCAL_ID and isinstance(value, np.ndarray):
                code.values[symbol] = code.hold(value)
        groups = " * ".join(f"c{axis}" for axis in range(MAX_DIMENSIONS))
        code.write(f"n = {math.prod(self.local_size)} * min({SAMPLED}, {groups})")

    def write(self, code: IntervalCode, reach: CounterReach) -> None:
        """Write how often a counter is reached on one way; or that it is guessed, or not known."""
        loops = find_loops(self.facts, reach.loops)
        sure = [*takewhile(lambda one: not is_guessed(one), loops)]
        known, is_counted = split_guard(reach.guard)
        is_counted &= len(sure) == len(loops)
        factors = _Factors()
        try:
            for part in _divide(reach.loops[: len(sure)], known if is_counted else TRUE):
                code = self._write_part(code, part, factors)
            if is_counted:
                code.write(f"n{reach.counter} += {factors.multiply()}")
            else:
                holds, fails = code.decide(known) if len(sure) == len(loops) else ("True", "False")
                # Nobody knows here which of the sampled work-items come so far.
                found = "None" if factors.arrays else f"nan if {holds} else None"
                code.write(f"if not ({fails}): return {found}")
        except EvaluationError:
            code.write("return None")

    def _write_part(self, code: IntervalCode, part: _Part, factors: _Factors) -> IntervalCode:
        """Write the factor of one part; what comes after stands where it is not zero."""
        if not part.is_fixed() and {one.kind for one in part.symbols()} <= _INNER:
            counts = self._count_inner(part)
            if (counts == counts.flat[0]).all():
                factors.numbers.append(str(counts.flat[0]))
            else:
                factors.arrays.append(code.hold(counts))
            return code
        if any(one.kind in _OF_GROUPS for one in part.symbols()):
            self._bind_groups(code)
        if not part.loops:
            code = code.open_block(f"if not ({code.decide(*part.guards)[1]})")
            factors.arrays.append(code.evaluate_condition(*part.guards))
            return code
        loop, *others = find_loops(self.facts, tuple(part.loops))
        trips = loop.facts.trip_count
        if others or trips is None:
            msg = f"loop {loop.facts.name}: others depend on its iterations"
            raise EvaluationError(msg)
        low, high, _ = code.bound(trips)
        if part.guards:
            factors.numbers.append(_write_turns(code, loop, part.guards))
        elif low == high:
            factors.numbers.append(f"(max({low}, 0) + {loop.extra})")
        else:
            factors.arrays.append(f"(most({code.evaluate(trips)}, 0) + {loop.extra})")
        return code.open_block("if True" if loop.extra else f"if {high} > 0")

    def _bind_groups(self, code: IntervalCode) -> None:
        """Write what the ids of sampled work-groups are."""
        if Symbol(SymbolKind.GROUP_ID) in code.values:
            return
        place = len(code.lines)
        code.write(f"k{place} = places(c0, c1, c2)")
        for axis, symbol in enumerate(Symbol(SymbolKind.GROUP_ID, axis=one) for one in range(3)):
            code.values[symbol] = f"k{place}[{axis}]"
        for axis, (local, begin) in enumerate(zip(self.local_size, self.offset, strict=True)):
            inner = code.values.get(Symbol(SymbolKind.LOCAL_ID, axis=axis), "0")
            name = code.values[Symbol(SymbolKind.GLOBAL_ID, axis=axis)] = f"i{place}_{axis}"
            code.write(f"{name} = k{place}[{axis}] * {local} + {inner} + {begin}")

    def _count_inner(self, part: _Part) -> IntArray:
        """Count what no size decides, per work-item of a work-group."""
        guard = conjunction(*part.guards)
        reach = CounterReach(counter=0, guard=guard, loops=tuple(part.loops))
        facts = replace(self.facts, reaches=(reach,), counter_count=1)
        whole = NDRange(global_size=self.local_size, local_size=self.local_size)
        sample = count_statically(facts, whole, {}, (0,))
        if not sample.is_exact[0]:
            msg = "more iterations than may be counted"
            raise EvaluationError(msg)
        return sample.counts[..., 0].astype(np.int64)


def _divide(loops: tuple[LoopFacts, ...], guard: Condition) -> list[_Part]:
    """Put together what depends on the same iterations; the product of all parts counts."""
    parts = [_Part(loops=[one]) for one in loops]
    guards = guard.parts if isinstance(guard, And) else () if guard == TRUE else (guard,)
    parts += [_Part(guards=[one]) for one in guards]
    found: list[_Part] = []
    for part in parts:
        near = [one for one in found if not part.iterations().isdisjoint(one.iterations())]
        for one in near:
            found.remove(one)
        loops_of = [loop for one in (*near, part) for loop in one.loops]
        guards_of = [guard for one in (*near, part) for guard in one.guards]
        found.append(_Part(loops_of, guards_of))
    return found


def _write_turns(code: IntervalCode, loop: Loop, guards: list[Condition]) -> str:
    """Write of a loop that is as long for all work-items in how many iterations a guard holds."""
    split, trips = None, loop.facts.trip_count
    for guard in guards if len(guards) == 1 and not loop.extra else ():
        if isinstance(guard, Comparison) and guard.relation is Relation.NOT_NEGATIVE:
            split = guard.expr.split(loop.symbol)
    if split is None or trips is None:
        msg = f"loop {loop.facts.name}: conditions on its iterations are to be counted"
        raise EvaluationError(msg)
    values = [code.bound(one) for one in (*split, trips)]
    for one in values:
        if one.low != one.high:
            code.write(f"if {one.low} != {one.high}: return None")
    return f"turns({', '.join(one.low for one in values)})"


def _count_turns(start: int, slope: int, trips: int) -> int:
    """Count the iterations k for which start + slope k is not negative."""
    if not slope:
        return max(trips, 0) if start >= 0 else 0
    if slope > 0:
        return max(trips - max(-(start // slope), 0), 0)
    return max(min(start // -slope + 1, trips), 0)


def _count(times: Value, items: int) -> int:
    """Add up over so many work-items what is the same for all, or for those of each work-group."""
    if isinstance(times, np.ndarray):
        return int(times.sum()) * (items // times.size)
    return times * items


def _take_most(value: Value, least: int) -> Value:
    return np.maximum(value, least) if isinstance(value, np.ndarray) else max(value, least)


def _choose_places(x: int, y: int, z: int) -> list[IntArray]:
    """Give ids of work-groups that are sampled, each of shape (work-groups, 1)."""
    chosen = np.array(choose_numbers(x * y * z), dtype=np.int64)[:, None]
    return [chosen % x, chosen // x % y, chosen // (x * y)]


def split_guard(guard: Condition) -> tuple[Condition, bool]:
    """Give what of a guard does not depend on data, and whether that is all."""
    parts = guard.parts if isinstance(guard, And) else (guard,)
    known = [one for one in parts if not _is_of_data(one)]
    return conjunction(*known), len(known) == len(parts)


def is_guessed(loop: Loop) -> bool:
    """Tell of a loop that its iterations are certainly guessed where it is met."""
    trips, condition = loop.facts.trip_count, known_part(loop.facts.condition)
    if trips is not None:
        return not loop.facts.is_exact or depends_on_data(trips.symbols())
    is_open = condition == TRUE or depends_on_data(condition.symbols())
    return not loop.facts.is_exact or is_open


def _is_of_data(part: Condition) -> bool:
    return isinstance(part, Unknown) or (
        isinstance(part, Comparison) and depends_on_data(part.symbols())
    )


def depends_on_data(symbols: Iterable[Symbol]) -> bool:
    """Tell whether contents of buffers are among the symbols."""
    return any(one.kind is SymbolKind.CONTENT for one in symbols)
