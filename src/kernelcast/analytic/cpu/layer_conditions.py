"""Layer conditions: what caches hold of a loop nest, from reuse distances alone.

`predict_by_layers` evaluates sizes, `list_transitions` solves for those at which traffic changes
(paper, Listing 5), `advise_blocking` says how to keep it low.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, gcd, inf, lcm
from operator import itemgetter

from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.analytic.cpu.streams import bind, profile_nest
from kernelcast.expressions import TRUE, Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestAccess
from kernelcast.records.cache_volumes import MEMORY, CacheVolumes, LevelVolume
from kernelcast.records.errors import InputError


def predict_by_layers(
    nest: LoopNest, machine: CpuMachine, constants: Mapping[str, int], cores: int = 1
) -> CacheVolumes:
    """Predict traffic without simulating it (paper, section 2.4.2), for one of the busy cores."""
    bound = bind(nest, constants)
    profile = profile_nest(bound, machine.line_bytes)
    levels = []
    loads = stores = None
    for cache, capacity in zip(machine.caches, machine.shares(cores), strict=True):
        horizon = profile.remembered(capacity)
        misses, evicts = profile.missed_lines(horizon), profile.evicted_lines(horizon)
        levels.append(
            LevelVolume(
                name=cache.name, hits=profile.accessed_lines() - misses, misses=misses,
                evicts=evicts, loads=loads, stores=stores,
            )
        )  # fmt: skip
        loads, stores = misses, evicts
    memory = LevelVolume(
        name=MEMORY, hits=loads or 0.0, misses=0.0, evicts=0.0, loads=loads, stores=stores
    )
    # Say what is assumed.
    order = ", ".join(loop.name for loop in nest.loops)
    jumping = (one.array for one in bound.accesses if one.strides[-1] and not one.is_sequential)
    still = (one.array for one in nest.accesses if one.strides[-1].is_zero)
    notes = [
        f"{array}: the loops ({order}) do not pass it in the order of its memory; reuse is "
        "estimated per line, the simulator sees it exactly"
        for array in dict.fromkeys(jumping)
    ]
    notes += (*nest.notes, *note_decisions(nest))
    notes += [
        f"{array}: the innermost loop does not move it; its few lines are not counted"
        for array in dict.fromkeys(still)
    ]
    notes += [
        f"loop over {loop.name}: its length changes; reuse is that of a middle iteration"
        for loop in nest.loops
        if not loop.trips.is_parameter
    ]
    notes += [
        f"{cache.name} is a victim cache: it is judged by its own size, without lines that only "
        "the nearer cache holds"
        for cache in machine.caches
        if cache.is_victim
    ]
    return CacheVolumes(
        predictor="lc", levels=(*levels, memory), line_bytes=machine.line_bytes,
        iterations=profile.iterations, notes=tuple(notes),
    )  # fmt: skip


def list_conflicts(
    nest: LoopNest, machine: CpuMachine, constants: Mapping[str, int]
) -> tuple[str, ...]:
    """Name arrays of which one iteration needs more lines in one set than a cache has ways."""
    moving = [one for one in bind(nest, constants).accesses if one.strides[-1]]
    notes = []
    for cache in machine.caches:
        for array in dict.fromkeys(one.array for one in moving):
            lines = {one.offset // cache.line_bytes for one in moving if one.array == array}
            crowd = max(Counter(line % cache.sets for line in lines).values())
            if crowd > cache.ways:
                notes.append(
                    f"{array}: {crowd} of its lines at a time fall into one set of "
                    f"{cache.name}, which holds {cache.ways}; pad the rows, or simulate"
                )
    return tuple(notes)


def note_decisions(nest: LoopNest) -> tuple[str, ...]:
    """Say how often conditions on data are taken to hold."""
    if not nest.decisions:
        return ()
    asked = "; ".join(one.name for one in nest.decisions)
    taken = "both sides are executed, under a mask"
    if nest.taken is not None:
        taken = f"they are taken to hold in {100 * nest.taken:g} % of the iterations, at random"
    return (f"conditions on data ({asked}): {taken}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingAdvice:
    """Cut a loop into blocks, over which a new loop goes outside of all others."""

    level: str
    loop: str
    block: int
    trip: int
    """Iterations of a block, the largest that gains as much, and of the loop as it is."""
    misses_before: float
    misses_after: float
    """Lines per cache line of work, edges of blocks not counted."""

    def __str__(self) -> str:
        return (
            f"block {self.loop} at {self.block} (now {self.trip}) to keep {self.level}: it misses "
            f"{self.misses_after:g} lines instead of {self.misses_before:g}"
        )


def advise_blocking(
    nest: LoopNest, machine: CpuMachine, constants: Mapping[str, int], cores: int = 1
) -> tuple[BlockingAdvice, ...]:
    """Find blocks that fit: for each cache, the loops that help, nearest cache first."""
    # Let each loop run over whole rows, edges that a stencil leaves out included.
    bound = bind(nest, constants)
    wide = list(bound.trips)
    for one in bound.accesses:
        moving = [place for place, stride in enumerate(one.strides) if stride]
        for outer, inner in pairwise(moving):
            if inner == outer + 1 and one.strides[outer] % one.strides[inner] == 0:
                wide[inner] = max(wide[inner], one.strides[outer] // one.strides[inner])
    rows = replace(bound, trips=tuple(wide), is_blocked=True)
    # A block of less than a line of work costs more at its edges than it saves.
    smallest = ceil(profile_nest(rows, machine.line_bytes).iterations)
    found: list[BlockingAdvice] = []
    levels = predict_by_layers(nest, machine, constants, cores).levels[:-1]
    for level, capacity in zip(levels, machine.shares(cores), strict=True):
        for place in range(1, len(nest.loops)) if level.misses else ():

            def count_misses(block: int, place: int = place, capacity: int = capacity) -> float:
                trips = (*rows.trips[:place], block, *rows.trips[place + 1 :])
                profile = profile_nest(replace(rows, trips=trips), machine.line_bytes)
                return profile.missed_lines(profile.remembered(capacity))

            trip = rows.trips[place]
            first = min(smallest, trip)
            best = count_misses(first)
            blocks = range(trip + 1)
            low = bisect_left(blocks, True, lo=first + 1, key=lambda n: count_misses(n) > best) - 1
            # Advice saves at least one line in a hundred.
            if best < 0.99 * level.misses and smallest < low < trip:
                found.append(
                    BlockingAdvice(
                        level=level.name, loop=nest.loops[place].name, block=low, trip=trip,
                        misses_before=level.misses, misses_after=best,
                    )
                )  # fmt: skip
    return tuple(found)


ALL_ARRAYS = "oo"
"""Stands for the distance beyond all: the cache holds all arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A condition under which a cache misses no more than so much."""

    level: str
    condition: str
    """In the constants, like ``11*N**2 <= 3276800``."""
    variables: tuple[str, ...]
    largest: int | None
    """The largest value that meets it, if there is one variable."""
    tail_bytes: str
    """The longest reuse distance that is met, in bytes; `ALL_ARRAYS` if there is no limit."""
    hits: float
    misses: float
    evicts: float
    """Lines per cache line of work where it holds, and no condition before it does."""


def list_transitions(
    nest: LoopNest,
    machine: CpuMachine,
    *,
    constants: Mapping[str, int] | None = None,
    size: str | None = None,
    cores: int = 1,
) -> tuple[Transition, ...]:
    """List the conditions of every cache that not all sizes meet, the most demanding first.

    Constants are put in but for the `size` to solve for; branches count as always taken.
    """
    accesses = tuple(replace(one, condition=TRUE) for one in nest.accesses)
    nest = replace(nest, accesses=accesses, branches=())
    names = nest.name_constants()
    put_in = dict(constants or {})
    if size is not None:
        if size not in names:
            msg = f"{nest.name} has no size {size}; it has {', '.join(sorted(names)) or 'none'}"
            raise InputError(msg)
        put_in = {name: one for name, one in {**nest.constants, **put_in}.items() if name != size}
    values = {Symbol(SymbolKind.SCALAR, name): value for name, value in put_in.items()}
    solver = _Solver(nest, machine.line_bytes)
    return tuple(
        transition
        for cache, capacity in zip(machine.caches, machine.shares(cores), strict=True)
        for transition in solver.list_level(cache.name, capacity, values)
    )


class _Solver:
    """Reuse distances as polynomials, in the order that they have for all large sizes."""

    def __init__(self, nest: LoopNest, line_bytes: int) -> None:
        # A size at which reuse distances stand in the order that they have for all large sizes.
        sample = {name: 100_003 + at for at, name in enumerate(sorted(nest.name_constants()))}
        self._profile = profile_nest(bind(nest, sample), line_bytes)
        # Add up the bytes of all arrays that are touched.
        touched = {one.array for one in nest.accesses}
        sizes = (size for name, size in nest.arrays.items() if name in touched)
        self._total_bytes = _check(nest, sum(sizes, Expr.constant(0)))
        chains = defaultdict(list)
        for one in nest.accesses:
            if not one.strides[-1].is_zero:
                chains[one.array, one.strides].append(one)
        numbers = {Symbol(SymbolKind.SCALAR, name): value for name, value in sample.items()}
        read = [_read_chain(nest, chain, line_bytes, numbers) for chain in chains.values()]
        # Distances are whole numbers in units of 1/scale iterations, and bytes per iteration of
        # streams with that distance, or with none at all.
        self._scale = lcm(*(stride for stride, _, _ in read))
        self._endless = sum(stride for stride, first, _ in read if first is None)
        slopes: dict[Expr, int] = defaultdict(int)
        for stride, first, others in read:
            if first is not None:
                slopes[first * self._scale] += stride
            for distance in others:
                slopes[distance * (self._scale // stride)] += stride
        self._distances = sorted(
            ((int(one.evaluate(numbers)), one, slope) for one, slope in slopes.items()),
            key=itemgetter(0), reverse=True,
        )  # fmt: skip

    def list_level(
        self, level: str, capacity: int, values: Mapping[Symbol, int]
    ) -> Iterator[Transition]:
        """List the conditions of a cache of so many bytes, constants put in."""
        total = self._total_bytes.substitute(values)
        yield from self._make(level, total, "<", capacity, ALL_ARRAYS, inf)
        seen = set()
        for place, (sample, distance, _) in enumerate(self._distances):
            if sample not in seen:
                seen.add(sample)
                tail = _write(distance.substitute(values))
                # The paper's C_req of a distance, in bytes times the scale.
                needed = distance * self._endless
                for rank, (_, other, slope) in enumerate(self._distances):
                    needed += (distance if rank < place else other) * slope
                needed = needed.substitute(values)
                limit = capacity * self._scale
                yield from self._make(level, needed, "<=", limit, tail, sample / self._scale)

    def _make(
        self, level: str, left: Expr, relation: str, right: int, tail: str, horizon: float
    ) -> Iterator[Transition]:
        """Make the transition of a condition, brought to its shortest form."""
        right -= left.constant_term
        left = left - left.constant_term
        divisor = gcd(right, *(coefficient for _, coefficient in left.products))
        left, right = left.divide_terms(divisor), right // divisor
        symbols = sorted(left.symbols(), key=str)
        if symbols:
            misses = self._profile.missed_lines(horizon)
            largest = None
            if len(symbols) == 1:
                # The largest number from 1 on that meets it; 0 if there is none. Beyond Cauchy's
                # bound nothing changes its sign any more.
                most = right - (relation == "<")

                def is_missed(number: int) -> bool:
                    return int(left.evaluate({symbols[0]: number})) > most

                high = 2 + abs(most) + max(abs(coefficient) for _, coefficient in left.products)
                low = high
                while low and is_missed(low):
                    high, low = low, low // 2
                largest = low and bisect_left(range(high), True, lo=low + 1, key=is_missed) - 1
            yield Transition(
                level=level,
                condition=f"{_write(left)} {relation} {right}",
                variables=tuple(str(one) for one in symbols),
                largest=largest,
                tail_bytes=tail,
                hits=self._profile.accessed_lines() - misses,
                misses=misses,
                evicts=self._profile.evicted_lines(horizon),
            )


_UNIT = (Expr.constant(1), Expr.constant(-1))


def _read_chain(
    nest: LoopNest, chain: Sequence[NestAccess], line_bytes: int, sample: Mapping[Symbol, int]
) -> tuple[int, Expr | None, list[Expr]]:
    """Read stride, the first access's return in iterations, and the others' distances in bytes."""
    strides = chain[0].strides
    stride = strides[-1].constant_value
    if stride is None or not 0 < stride <= line_bytes:
        raise _refuse(nest)
    for loop, outer in zip(nest.loops[:-1], strides[:-1], strict=True):
        if loop.step not in _UNIT and not outer.is_zero:
            raise _refuse(nest)
    ordered = sorted(chain, key=lambda one: int(one.offset.evaluate(sample)), reverse=True)
    others = [_check(nest, one.offset - behind.offset) for one, behind in pairwise(ordered)]
    # After how many iterations an outer loop passes the same lines once more.
    for place in range(len(strides) - 2, -1, -1):
        if strides[place].is_zero:
            after = Expr.constant(1)
            for loop in nest.loops[place + 1 :]:
                after = after * _check(nest, loop.trips)
            return stride, after, others
    return stride, None, others


def _check(nest: LoopNest, expression: Expr) -> Expr:
    """Refuse what is no polynomial in the constants."""
    if expression.is_parameter and all(
        isinstance(atom, Symbol) for monomial, _ in expression.products for atom in monomial
    ):
        return expression
    raise _refuse(nest)


def _refuse(nest: LoopNest) -> InputError:
    msg = (
        f"{nest.name}: its loops do not pass all arrays row by row with steps and strides that are "
        "numbers, so there is no formula for its layer conditions; evaluate sizes one by one"
    )
    return InputError(msg)


def _write(expression: Expr) -> str:
    """Write a polynomial with powers, highest degree first."""
    terms = sorted(
        (-len(monomial), sorted(str(atom) for atom in monomial), coefficient)
        for monomial, coefficient in expression.products
    )
    text = ""
    for _, names, coefficient in terms:
        powers = {name: names.count(name) for name in names}
        parts = [name if power == 1 else f"{name}**{power}" for name, power in powers.items()]
        if abs(coefficient) != 1 or not parts:
            parts.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        product = "*".join(parts)
        text += f" {sign} {product}" if text else product if sign == "+" else f"-{product}"
    return text or "0"
