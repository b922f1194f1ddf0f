"""Reuse distances as polynomials in the constants, and the conditions under which they hold."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from itertools import pairwise
from math import lcm

from kernelcast.analytic.cpu.layer_conditions.affine import AffineAccess, read_accesses
from kernelcast.expressions import Expr, Symbol
from kernelcast.expressions.loop_nest import LoopNest, NestLoop


class NotPolynomialError(Exception):
    """Is raised inside this package where only a full evaluation can tell; never leaves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolynomialNest:
    """What every access reuses, over constants.

    Parameters
    ----------
    slopes : dict of Expr to int
        Bytes per iteration of all streams that have a reuse distance, by that distance, in units
        of 1/`scale` iterations.
    endless_slope : int
        Bytes per iteration of streams that reuse nothing.
    scale : int
        Makes all distances whole numbers.
    guards : tuple of Expr
        Must not be negative; where one is, distances are not what is said here.
    total_bytes : Expr
        Of all arrays.
    work_bytes : int
        Bytes of results per iteration.
    stored_chains : tuple of StoredChain
        Chains with a store in them.
    """

    slopes: dict[Expr, int]
    endless_slope: int
    scale: int
    guards: tuple[Expr, ...]
    total_bytes: Expr
    work_bytes: int
    stored_chains: tuple["StoredChain", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChain:
    """Accesses to the same lines with a store among them, in the order in which they reach a line.

    Parameters
    ----------
    stride : int
        Bytes per iteration.
    distances : tuple of Expr or None
        What each access reuses, a key of `PolynomialNest.slopes`; None if it reuses nothing.
    stores : tuple of bool
        Which accesses are stores.
    """

    stride: int
    distances: tuple[Expr | None, ...]
    stores: tuple[bool, ...]


def read_polynomial_nest(nest: LoopNest, line_bytes: int) -> PolynomialNest:
    """Find the reuse distances of a nest that passes its arrays row by row.

    Raises
    ------
    NotPolynomialError
        If strides are not numbers, exceed the line or go backwards, outer loops skip rows,
        bounds are not polynomials, or loops depend on each other.
    """
    guards = [length - 1 for length in _lengths(nest)]
    accesses = read_accesses(nest)
    chains = [_read_chain(nest, chain, line_bytes, guards) for chain in _group(accesses)]
    scale = lcm(*(one.stride for one in chains))
    chains = [_rescale(one, scale) for one in chains]
    slopes: dict[Expr, int] = defaultdict(int)
    endless = 0
    for chain in chains:
        for distance in chain.distances:
            if distance is None:
                endless += chain.stride
            else:
                slopes[distance] += chain.stride
    return PolynomialNest(
        slopes=dict(slopes),
        endless_slope=endless,
        scale=scale,
        guards=_open_guards((*guards, *slopes)),
        total_bytes=_total_bytes(nest),
        work_bytes=_work_bytes(nest, accesses),
        stored_chains=tuple(one for one in chains if any(one.stores)),
    )


def _work_bytes(nest: LoopNest, accesses: Sequence[AffineAccess]) -> int:
    """Give the bytes of what is stored per iteration, else of what is loaded."""
    strides = [(one.access.is_store, one.strides[-1].constant_value or 0) for one in accesses]
    moving = [one for one in strides if one[1]]
    chosen = [one for one in moving if one[0]] or moving
    if chosen:
        return max(stride for _, stride in chosen)
    return max((one.bytes for one in nest.accesses), default=1)


def _group(accesses: Iterable[AffineAccess]) -> list[list[AffineAccess]]:
    found: dict[tuple[str, tuple[Expr, ...]], list[AffineAccess]] = defaultdict(list)
    for one in accesses:
        if not one.strides[-1].is_zero:
            found[one.access.array, one.strides].append(one)
    return list(found.values())


def _read_chain(
    nest: LoopNest, chain: Sequence[AffineAccess], line_bytes: int, guards: list[Expr]
) -> StoredChain:
    """Read a chain with distances in bytes, but in iterations for its first access."""
    stride = chain[0].strides[-1].constant_value
    if stride is None or not 0 < stride <= line_bytes or _skips_rows(nest, chain[0]):
        raise NotPolynomialError
    _guard_order(nest, chain[0].strides, guards)
    ordered = sorted(chain, key=cmp_to_key(_compare), reverse=True)
    between = (_polynomial(ahead.offset - behind.offset) for ahead, behind in pairwise(ordered))
    return StoredChain(
        stride=stride,
        distances=(_return(nest, chain[0].strides, guards), *between),
        stores=tuple(one.access.is_store for one in ordered),
    )


def _rescale(chain: StoredChain, scale: int) -> StoredChain:
    """Turn all distances into units of 1/scale iterations."""
    first, *others = chain.distances
    factor = scale // chain.stride
    return replace(
        chain,
        distances=(
            first and first * scale,
            *(one * factor for one in others if one is not None),
        ),
    )


def _skips_rows(nest: LoopNest, access: AffineAccess) -> bool:
    return any(
        abs(loop.step) > 1 and not stride.is_zero
        for loop, stride in zip(nest.loops[:-1], access.strides[:-1], strict=True)
    )


def _guard_order(nest: LoopNest, strides: Sequence[Expr], guards: list[Expr]) -> None:
    """Ask that each loop moves on by more than all that its inner loops reach."""
    moving = [place for place, stride in enumerate(strides) if not stride.is_zero]
    lengths = _lengths(nest)
    for outer, inner in pairwise(moving):
        step = abs(nest.loops[inner].step)
        reach = strides[inner] * (lengths[inner] + (step - 1))
        guards.extend((
            _polynomial(strides[outer] - strides[inner] - 1),
            _polynomial(strides[outer] * step - reach),
        ))  # fmt: skip


def _return(nest: LoopNest, strides: Sequence[Expr], guards: list[Expr]) -> Expr | None:
    """Give after how many iterations an outer loop passes the same lines once more."""
    lengths = _lengths(nest)
    for place in range(len(strides) - 2, -1, -1):
        if strides[place].is_zero:
            after = Expr.constant(1)
            for loop, length in zip(nest.loops[place + 1 :], lengths[place + 1 :], strict=True):
                if abs(loop.step) != 1:
                    raise NotPolynomialError
                after = after * length
            guards.append(lengths[place] - (abs(nest.loops[place].step) + 1))
            return after
    return None


def _lengths(nest: LoopNest) -> list[Expr]:
    return [_polynomial(_length(loop)) for loop in nest.loops]


def _length(loop: NestLoop) -> Expr:
    return loop.stop - loop.start if loop.step > 0 else loop.start - loop.stop


def _total_bytes(nest: LoopNest) -> Expr:
    touched = {one.array for one in nest.accesses}
    total = Expr.constant(0)
    for array in nest.arrays:
        if array.name not in touched:
            continue
        touched.remove(array.name)
        if not array.dimensions:
            raise NotPolynomialError
        size = Expr.constant(array.element_bytes)
        for dimension in array.dimensions:
            size = size * dimension
        total = total + size
    if touched:
        raise NotPolynomialError
    return _polynomial(total)


def _polynomial(expression: Expr) -> Expr:
    for symbol in expression.symbols():
        if not symbol.is_parameter:
            raise NotPolynomialError
    for monomial, _ in expression.products:
        if not all(isinstance(atom, Symbol) for atom in monomial):
            raise NotPolynomialError
    return expression


def _compare(one: AffineAccess, other: AffineAccess) -> int:
    """Compare addresses for large sizes: the product of most constants decides."""
    difference = one.offset - other.offset
    if difference.is_zero:
        return 0
    leading = max(difference.terms, key=lambda term: (len(term[0]), str(term[0])))
    return leading[1]


def _open_guards(guards: Iterable[Expr]) -> tuple[Expr, ...]:
    """Leave out what holds for all sizes: constants are at least 1."""
    return tuple(dict.fromkeys(one for one in guards if not _is_never_negative(one)))


def _is_never_negative(expression: Expr) -> bool:
    coefficients = [coefficient for _, coefficient in expression.products]
    return sum(coefficients) >= 0 and all(
        coefficient >= 0 for monomial, coefficient in expression.products if monomial
    )
