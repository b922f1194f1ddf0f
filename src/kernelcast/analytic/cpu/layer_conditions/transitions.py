"""Where cache traffic changes: layer conditions solved for a size (paper, Listing 5)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise
from math import gcd, inf, lcm

from kernelcast.analytic.cpu.layer_conditions.streams import (
    AffineAccess,
    bind,
    profile_nest,
    read_accesses,
)
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestLoop
from kernelcast.records.errors import InputError

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
    """List the conditions of every cache, the most demanding first.

    Constants are put in, the nest's own as well, but for the `size` to solve for. Conditions that
    hold for all sizes are left out; branches count as if all iterations took them.
    """
    nest = nest.without_branches()
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
        accesses = read_accesses(nest)
        self._profile = profile_nest(bind(nest, accesses, sample), line_bytes)
        # Add up the bytes of all arrays that are touched.
        touched = {one.array for one in nest.accesses}
        arrays = [one for one in nest.arrays if one.name in touched]
        if len(arrays) < len(touched) or not all(one.dimensions for one in arrays):
            raise _refuse(nest)
        total = Expr.constant(0)
        for array in arrays:
            size = Expr.constant(array.element_bytes)
            for dimension in array.dimensions:
                size = size * dimension
            total = total + size
        self._total_bytes = _check(nest, total)
        chains = defaultdict(list)
        for one in accesses:
            if not one.strides[-1].is_zero:
                chains[one.access.array, one.strides].append(one)
        read = [_read_chain(nest, chain, line_bytes) for chain in chains.values()]
        # Distances are whole numbers in units of 1/scale iterations, and bytes per iteration of
        # streams with that distance; None is no distance at all.
        self._scale = lcm(*(stride for stride, _, _ in read))
        slopes: dict[Expr | None, int] = defaultdict(int)
        for stride, first, others in read:
            slopes[None if first is None else first * self._scale] += stride
            for distance in others:
                slopes[distance * (self._scale // stride)] += stride
        self._endless = slopes.pop(None, 0)
        numbers = {Symbol(SymbolKind.SCALAR, name): value for name, value in sample.items()}
        self._distances = sorted(
            (
                (int(one.evaluate(numbers)), one, slope)
                for one, slope in slopes.items()
                if one is not None
            ),
            key=lambda found: -found[0],
        )

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
                needed = self._require(place).substitute(values)
                limit = capacity * self._scale
                yield from self._make(level, needed, "<=", limit, tail, sample / self._scale)

    def _require(self, place: int) -> Expr:
        """Compute the paper's C_req of a distance, in bytes times the scale."""
        horizon = self._distances[place][1]
        total = horizon * self._endless
        for rank, (_, distance, slope) in enumerate(self._distances):
            total += (horizon if rank < place else distance) * slope
        return total

    def _make(
        self, level: str, left: Expr, relation: str, right: int, tail: str, horizon: float
    ) -> Iterator[Transition]:
        """Make the transition of a condition, brought to its shortest form."""
        right -= left.constant_term
        left = left - left.constant_term
        divisor = gcd(right, *(coefficient for _, coefficient in left.products))
        left = Expr({monomial: value // divisor for monomial, value in left.products})
        right //= divisor
        symbols = sorted(left.symbols(), key=str)
        if symbols:
            misses = self._profile.missed_lines(horizon)
            most = right - (relation == "<")
            yield Transition(
                level=level,
                condition=f"{_write(left)} {relation} {right}",
                variables=tuple(str(one) for one in symbols),
                largest=_solve_largest(left, most, symbols[0]) if len(symbols) == 1 else None,
                tail_bytes=tail,
                hits=self._profile.accessed_lines() - misses,
                misses=misses,
                evicts=self._profile.evicted_lines(horizon),
            )


def _read_chain(
    nest: LoopNest, chain: Sequence[AffineAccess], line_bytes: int
) -> tuple[int, Expr | None, list[Expr]]:
    """Read stride, the first access's return in iterations, and the others' distances in bytes."""
    strides = chain[0].strides
    stride = strides[-1].constant_value
    if stride is None or not 0 < stride <= line_bytes:
        raise _refuse(nest)
    for loop, outer in zip(nest.loops[:-1], strides[:-1], strict=True):
        if abs(loop.step) > 1 and not outer.is_zero:
            raise _refuse(nest)
    ordered = sorted(chain, key=cmp_to_key(_compare), reverse=True)
    others = [_check(nest, one.offset - behind.offset) for one, behind in pairwise(ordered)]
    return stride, _find_return(nest, strides), others


def _find_return(nest: LoopNest, strides: Sequence[Expr]) -> Expr | None:
    """Find after how many iterations an outer loop passes the same lines once more."""
    for place in range(len(strides) - 2, -1, -1):
        if strides[place].is_zero:
            after = Expr.constant(1)
            for loop in nest.loops[place + 1 :]:
                if abs(loop.step) != 1:
                    raise _refuse(nest)
                after = after * _check(nest, _length(loop))
            return after
    return None


def _length(loop: NestLoop) -> Expr:
    return loop.stop - loop.start if loop.step > 0 else loop.start - loop.stop


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


def _compare(one: AffineAccess, other: AffineAccess) -> int:
    """Compare addresses for large sizes: the product of most constants decides."""
    terms = (one.offset - other.offset).terms
    return max(terms, key=lambda term: (len(term[0]), str(term[0])))[1] if terms else 0


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


def _solve_largest(left: Expr, right: int, symbol: Symbol) -> int:
    """Find the largest number from 1 on for which ``left <= right``; 0 if there is none."""

    def is_met(number: int) -> bool:
        return int(left.evaluate({symbol: number})) <= right

    # Beyond Cauchy's bound nothing changes its sign any more.
    high = 2 + abs(right) + max(abs(coefficient) for _, coefficient in left.products)
    low = high
    while low and not is_met(low):
        high, low = low, low // 2
    while low and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_met(middle) else (low, middle)
    return low
