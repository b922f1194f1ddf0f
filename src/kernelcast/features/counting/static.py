"""Counts what work-items execute without running them, as far as the source tells.

A launch binds values of arguments, contents of buffers, and the work-groups to look at.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import (
    TRUE,
    And,
    Comparison,
    Condition,
    EvaluationError,
    Or,
    Relation,
    Symbol,
    SymbolKind,
    Value,
)
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.axes import bind_ids, bind_names
from kernelcast.expressions.kernel_facts import CounterReach, KernelFacts
from kernelcast.expressions.symbols import BoolArray, IntArray
from kernelcast.features.ir.values import sources_of
from kernelcast.records.arguments import Argument, ScalarArgument
from kernelcast.records.ndrange import NDRange
from kernelcast.records.software_counters import CounterSample

Numbers = npt.NDArray[np.generic]
FloatArray = npt.NDArray[np.float64]


def bind_scalars(facts: KernelFacts, arguments: Sequence[Argument]) -> dict[str, int]:
    """Bind whole numbers to names; ``name.s0`` of vectors' lanes, ``name.field`` of structures."""
    found: dict[str, int] = {}
    for parameter, argument in zip(facts.parameters, arguments, strict=False):
        if not isinstance(argument, ScalarArgument) or argument.element.dtype.kind == "f":
            continue
        fields = [one for one in facts.fields if one.buffer == parameter.name]
        for one in fields:
            start = one.offset_bytes.constant_term
            content = bytes(map(int, argument.values[start : start + one.element_bytes]))
            found[one.name] = int.from_bytes(content, "little", signed=one.is_signed)
        if not fields and argument.element.lanes == 1:
            found[parameter.name] = int(argument.values[0])
        elif not fields:
            lanes = enumerate(argument.values)
            found |= {f"{parameter.name}.s{lane:x}": int(value) for lane, value in lanes}
    return found


def bind_contents(
    facts: KernelFacts,
    bindings: Mapping[Symbol, Value],
    contents: Mapping[str, Numbers],
    shape: tuple[int, ...],
) -> dict[Symbol, Value]:
    """Look up what work-items read from known buffers; places beyond a buffer read its end."""
    found: dict[Symbol, Value] = {}
    for one in facts.contents:
        held = contents.get(one.buffer)
        if held is None or held.nbytes < one.element_bytes:
            continue
        try:
            offset = one.offset_bytes.evaluate({**bindings, **found})
        except EvaluationError:
            continue
        elements = held.reshape(-1).view(f"{'i' if one.is_signed else 'u'}{one.element_bytes}")
        places = np.clip(np.asarray(offset) // one.element_bytes, 0, elements.size - 1)
        values = elements[places].astype(np.int64)
        found[Symbol(SymbolKind.CONTENT, one.name)] = np.broadcast_to(values, shape)
    return found


def depends_on_contents(facts: KernelFacts) -> bool:
    """Tell whether what a buffer or a by-value structure holds may decide loops or conditions."""
    conditions = _list_conditions(facts)
    if sources_of(*conditions) & {one.name for one in facts.parameters if one.is_pointer}:
        return True
    given = {one.name for one in facts.parameters}
    members = (one.name.split(".") for condition in conditions for one in condition.symbols())
    return any(len(parts) > 1 and parts[0] in given for parts in members)


def find_index_buffers(facts: KernelFacts) -> frozenset[str]:
    """Find read-only buffers if one of them decides how long loops run or conditions hold."""
    read_only = frozenset(
        one.name
        for one in facts.parameters
        if one.is_pointer and one.is_read and not one.is_written and not one.is_volatile
    )
    return read_only if sources_of(*_list_conditions(facts)) & read_only else frozenset()


def _list_conditions(facts: KernelFacts) -> tuple[Condition, ...]:
    return *(one.guard for one in facts.reaches), *(loop.condition for loop in facts.loops)


def choose_work_groups(ndrange: NDRange, count: int = 8, seed: int = 0) -> tuple[int, ...]:
    """Choose work-groups spread over the index space at random steps, first and last among them."""
    total = ndrange.work_group_count
    if total <= count:
        return tuple(range(total))
    if count < 2:
        return (total // 2,)
    strata = count - 2
    draws = iter(np.random.default_rng(seed).integers(1 << 32, size=strata).tolist())
    found, low = [0], 1
    for place in range(1, strata + 1):
        high = 1 + (total - 2) * place // strata
        found.append(low if high == low + 1 else low + (next(draws) * (high - low) >> 32))
        low = high
    return (*found, total - 1)


LARGEST = 2**62
"""Beyond every address and count; two of them still add up within 64 bits."""


def widen(value: Value | BoolArray, shape: tuple[int, ...]) -> IntArray:
    """Give a value the shape of others, integers beyond 64 bits cut to `LARGEST`."""
    if isinstance(value, int):
        value = np.asarray(max(-LARGEST, min(value, LARGEST)), dtype=np.int64)
    return np.broadcast_to(value.astype(np.int64, copy=False), shape)


UNKNOWN_SHARE = 0.5
"""How often a condition on data is taken to hold."""


def estimate_share(
    guard: Condition, bindings: Mapping[Symbol, Value], shape: tuple[int, ...]
) -> FloatArray:
    """Tell where a condition holds: 0, 1, or in between for parts that are not known."""
    if guard.is_exact and guard.symbols() <= bindings.keys():
        try:
            truth = guard.evaluate(bindings)
        except EvaluationError:
            return np.full(shape, UNKNOWN_SHARE)
        return np.broadcast_to(np.asarray(truth, dtype=np.float64), shape)
    if isinstance(guard, And | Or):
        shares = np.array([estimate_share(part, bindings, shape) for part in guard.parts])
        product: FloatArray = (shares if isinstance(guard, And) else 1 - shares).prod(axis=0)
        return product if isinstance(guard, And) else 1 - product
    return np.full(shape, UNKNOWN_SHARE)


def count_solutions(
    guard: Condition,
    symbol: Symbol,
    bindings: Mapping[Symbol, Value],
    trips: IntArray,
) -> tuple[FloatArray, bool] | None:
    """Count iterations that meet a condition, and tell if exactly; None if not linear."""
    edges = [np.zeros_like(trips), trips]
    parts = [guard]
    while parts:
        part = parts.pop()
        if symbol not in part.symbols():
            continue
        if isinstance(part, And | Or):
            parts += part.parts
            continue
        split = part.expr.split(symbol) if isinstance(part, Comparison) else None
        if split is None or not isinstance(part, Comparison):
            return None
        # Solve `start + slope * k` against zero: the first k at which the answer is another one.
        try:
            start, slope = (widen(one.evaluate(bindings), trips.shape) for one in split)
        except EvaluationError:
            return None
        step = np.where(slope == 0, 1, np.abs(slope))
        falling, rising = start // step + 1, -(start // step)
        if part.relation is Relation.NOT_NEGATIVE:
            turns = [np.where(slope > 0, rising, falling)]
        else:
            place = np.where(slope > 0, rising, falling - 1)
            turns = [place, place + 1]
        edges += [np.clip(turn, 0, trips) for turn in turns]
    ordered = np.sort(np.concatenate(edges, axis=1), axis=1)
    first, length = ordered[:, :-1], np.diff(ordered, axis=1)
    share = estimate_share(guard, {**bindings, symbol: first}, first.shape)
    is_exact = not np.any((share > 0) & (share < 1) & (length > 0))
    return (share * length).sum(axis=1), is_exact


ASSUMED_TRIPS = 16
"""Iterations of a loop of which nothing is known: the usual order of inner loops on data."""

_FIRST_STRIDE, _GROWTH = 32, 4


def count_trips(
    loop: LoopFacts, bindings: Mapping[Symbol, Value], shape: tuple[int, ...], budget: int
) -> tuple[IntArray, bool]:
    """Count iterations of shape (points, lanes), and tell if exactly; else they are a bound."""
    if loop.trip_count is not None:
        try:
            value = loop.trip_count.evaluate(bindings)
        except EvaluationError:
            return np.full(shape, ASSUMED_TRIPS, dtype=np.int64), False
        return np.clip(widen(value, shape), 0, LARGEST), loop.is_exact
    known = known_part(loop.condition)
    if known == TRUE or not known.symbols() - {loop.symbol} <= bindings.keys():
        return np.full(shape, ASSUMED_TRIPS, dtype=np.int64), False
    values: dict[Symbol, Value] = {
        one: widen(value, shape).reshape(-1, 1) if isinstance(value, np.ndarray) else value
        for one, value in bindings.items()
        if one in known.symbols() and one != loop.symbol
    }
    is_same = not any(isinstance(value, np.ndarray) for value in values.values())
    lanes = 1 if is_same else math.prod(shape)
    trips = np.zeros(lanes, dtype=np.int64)
    still, first, length, growth = np.arange(lanes), 0, _FIRST_STRIDE, _GROWTH
    while still.size:
        length = min(length, budget // still.size)
        if length < 1:
            break
        own = {one: value[still] if isinstance(value, np.ndarray) else value
               for one, value in values.items()}  # fmt: skip
        numbers = np.arange(first, first + length)[None, :]
        try:
            truth = known.evaluate({**own, loop.symbol: numbers})
        except EvaluationError:
            # Perhaps only beyond the last iteration: 2**k leaves 64 bits some time.
            length, growth = length // 2, 1
            continue
        holds = np.broadcast_to(np.asarray(truth), (still.size, length))
        is_over = ~holds.all(axis=1)
        trips[still] += np.where(is_over, holds.argmin(axis=1), length)
        budget -= still.size * length
        still, first, length = still[~is_over], first + length, length * growth
    trips = np.broadcast_to(trips, shape) if is_same else trips.reshape(shape)
    return trips, not still.size and loop.is_exact


def known_part(condition: Condition) -> Condition:
    """Give what of a condition does not depend on data: it holds wherever the condition may."""
    if condition.is_exact:
        return condition
    if isinstance(condition, And | Or):
        return condition.make(*map(known_part, condition.parts))
    return TRUE


# Multiples of these, modulo 1, fill a line and a square evenly without any period.
GOLDEN, _PLASTIC = 0.6180339887498949, 0.7548776662466927


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Weighted iterations of lanes in step, arrays of shape (points, lanes) or (points,)."""

    bindings: Mapping[Symbol, Value]
    owners: IntArray
    weights: FloatArray
    is_active: BoolArray
    is_exact: bool = True

    @classmethod
    def start(cls, bindings: Mapping[Symbol, Value], is_active: BoolArray) -> "Points":
        """Give one point per owner: the entry of the kernel."""
        count = is_active.shape[0]
        return cls(
            bindings=bindings,
            owners=np.arange(count),
            weights=np.ones(count),
            is_active=is_active,
        )

    def take(self, index: IntArray) -> "Points":
        return replace(
            self,
            bindings={
                symbol: value[index] if isinstance(value, np.ndarray) else value
                for symbol, value in self.bindings.items()
            },
            owners=self.owners[index],
            weights=self.weights[index],
            is_active=self.is_active[index],
        )

    def keep(self, symbols: frozenset[Symbol]) -> "Points":
        """Give the points with the values of some symbols only: arrays are costly to copy."""
        kept = {one: value for one, value in self.bindings.items() if one in symbols}
        return replace(self, bindings=kept)


def run_loops(
    start: Points, loops: Sequence[LoopFacts], wanted: frozenset[Symbol], budget: int, *,
    is_sampled: bool = False,
) -> Points:  # fmt: skip
    """Enumerate iterations that symbols depend on, some if all are too many; others are weights."""
    points = start
    for place, loop in enumerate(loops):
        inner = loops[place + 1 :]
        needed = wanted.union(*(one.count_symbols() for one in inner))
        trips, is_exact = count_trips(loop, points.bindings, points.is_active.shape, budget)
        trips = np.where(points.is_active, trips, 0)
        most, is_exact = trips.max(axis=1), is_exact or not trips.size
        # Lanes of a point that make equally many iterations stay in step.
        is_alike = ((trips == most[:, None]) | ~points.is_active).all()
        chosen: IntArray = most
        if loop.symbol not in needed and is_alike:
            chosen = np.minimum(most, 1)
        elif is_sampled:
            ahead = sum(one.symbol in needed for one in inner) + 1
            room = max(1.0, budget / max(1, trips.size)) ** (1 / ahead)
            chosen = np.minimum(most, max(1, int(room)))
            is_exact = is_exact and bool((chosen == most).all())
        elif float(most.astype(np.float64).sum()) * trips.shape[1] > budget:
            return run_loops(start, loops, wanted, budget, is_sampled=True)
        index = np.repeat(np.arange(most.size), chosen)
        iteration = np.arange(index.size) - np.repeat(np.cumsum(chosen) - chosen, chosen)
        times = most[index] / chosen[index]
        if is_sampled:
            # They are placed one to a stratum, without a period that loops could have too.
            shift = (iteration * GOLDEN + index * _PLASTIC) % 1.0
            placed = np.minimum(((iteration + shift) * times).astype(np.int64), most[index] - 1)
            iteration = np.where(times == 1, iteration, placed)
        points = points.keep(needed).take(index)
        own = {loop.symbol: iteration[:, None]} if loop.symbol in needed else {}
        points = replace(
            points,
            bindings={**points.bindings, **own},
            weights=points.weights * times,
            is_active=points.is_active & (iteration[:, None] < trips[index]),
            is_exact=points.is_exact and is_exact,
        )
    return points


def run_guarded(
    start: Points, guard: Condition, loops: Sequence[LoopFacts], wanted: frozenset[Symbol],
    budget: int,
) -> tuple[Points, FloatArray]:  # fmt: skip
    """Enumerate iterations with a share of each lane that meets a guard, and drop those of none."""
    wanted = wanted | guard.symbols()
    used = wanted.union(*(loop.count_symbols() for loop in loops))
    points = run_loops(start.keep(used), loops, wanted, budget)
    share = estimate_share(guard, points.bindings, points.is_active.shape) * points.is_active
    some = np.flatnonzero(share.any(axis=1))
    return points.take(some), share[some]


BUDGET = 400_000
"""Iterations enumerated per way on which a counter is reached, at most: about 20 ms."""

Counts = tuple[FloatArray, bool]


def count_statically(
    facts: KernelFacts,
    ndrange: NDRange,
    scalars: Mapping[str, int],
    work_groups: Sequence[int],
    *,
    budget: int = BUDGET,
    contents: Mapping[str, Numbers] = {},
) -> CounterSample:
    """Count from the source: conditions on data hold half the time, loops run as assumed."""
    ids, is_present = bind_ids(ndrange, work_groups)
    shape, named = is_present.shape, bind_names(scalars)
    bindings = {**ids, **bind_contents(facts, {**ids, **named}, contents, shape)}
    fixed: dict[Symbol, Value] = {
        **{one: value for one, value in bindings.items() if isinstance(value, int)}, **named,
    }  # fmt: skip

    @cache
    def classify(symbols: frozenset[Symbol]) -> tuple[IntArray, IntArray]:
        """Choose a work-item for each combination of values, and tell whose each is."""
        ordered = sorted(symbols, key=lambda one: one.sort_key)
        columns = [np.zeros(is_present.size, dtype=np.int64), *(bindings[one] for one in ordered)]
        places = [np.reshape(one, -1) - np.min(one) for one in columns]
        try:
            key = np.ravel_multi_index(places, [int(one.max()) + 1 for one in places])
        except ValueError:  # there are more combinations than numbers
            return np.arange(is_present.size), np.arange(is_present.size)
        _, chosen, place = np.unique(key, return_index=True, return_inverse=True)
        return chosen, place.reshape(-1)

    @cache
    def count(reach: CounterReach) -> Counts:
        used = reach.guard.symbols().union(*(loop.count_symbols() for loop in reach.loops))
        own = frozenset(one for one in used if one not in fixed and one in bindings)
        chosen, place = classify(own)
        values = {one: np.asarray(bindings[one]).reshape(-1, 1)[chosen] for one in own}
        points = Points.start(fixed | values, np.ones((chosen.size, 1), dtype=np.bool_))
        found, is_exact = _count_points(points.keep(used), reach, budget)
        return found[place].reshape(shape), is_exact

    counts, is_exact = np.zeros((*shape, len(facts.reaches))), []
    for counter, reach in enumerate(facts.reaches):
        counts[..., counter], is_known = count(reach)
        is_exact.append(is_known)
    counts[~is_present] = 0
    return CounterSample(
        work_groups=tuple(int(group) for group in work_groups),
        counts=counts,
        is_exact=tuple(is_exact),
        work_items=tuple(is_present.sum(axis=1).tolist()),
    )


def _count_points(points: Points, reach: CounterReach, budget: int) -> Counts:
    """Count per owner; the innermost loop that the guard names is solved, not enumerated."""
    total, guard, loops = points.owners.size, reach.guard, reach.loops
    needed = guard.symbols()
    names = [
        place
        for place, loop in enumerate(loops)
        if loop.symbol in needed.union(*(one.count_symbols() for one in loops[place + 1 :]))
    ]
    if names and not any(loops[names[-1]].symbol in one.count_symbols() for one in loops):
        last = names[-1]
        # Loops whose iterations nothing depends on may stand in any order.
        others = loops[:last] + loops[last + 1 :]
        ahead = run_loops(points, others, needed | loops[last].count_symbols(), budget)
        shape = ahead.is_active.shape
        trips, is_exact = count_trips(loops[last], ahead.bindings, shape, budget)
        found = count_solutions(guard, loops[last].symbol, ahead.bindings, trips)
        if found is not None:
            counts = np.bincount(ahead.owners, ahead.weights * found[0], total).astype(np.float64)
            return counts, ahead.is_exact and found[1] and (is_exact or not trips.size)
    ahead, share = run_guarded(points, guard, loops, needed, budget)
    counts = np.bincount(ahead.owners, ahead.weights * share[:, 0], total).astype(np.float64)
    return counts, ahead.is_exact and not np.any((share > 0) & (share < 1))
