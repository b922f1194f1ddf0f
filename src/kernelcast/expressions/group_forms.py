"""Expressions by how they move from one work-group to the next, and how they differ within one."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kernelcast.expressions.choices import Maximum, Minimum
from kernelcast.expressions.divisions import FloorMod
from kernelcast.expressions.polynomials import Atom, Expr, Monomial
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.records.ndrange import MAX_DIMENSIONS

CONSTANT, START, GROUP, PLACES = 0, 1, 1 + MAX_DIMENSIONS, 1 + 2 * MAX_DIMENSIONS
"""What forms multiply: 1, the first global ids of a work-group, its group ids; their number."""
_OF_GROUPS = frozenset({SymbolKind.GLOBAL_ID, SymbolKind.GROUP_ID, SymbolKind.CONTENT})

Sizes: TypeAlias = Monomial
"""A product of what is fixed for a launch."""


class NotAffineError(Exception):
    """An expression that work-groups do not move as a whole; never leaves this room."""


@dataclass(slots=True)
class Form:
    """A sum of sizes times places, and of sizes times what differs within a work-group.

    What is clamped to bounds counts as if it was not.

    Parameters
    ----------
    places, inner : dict
        The factors.
    clamps : dict of Expr to None
        Those that are negative where something is clamped.
    clamped : list of (sizes, int)
        By what it is multiplied.
    """

    places: dict[tuple[int, Sizes], int] = field(default_factory=lambda: defaultdict(int))
    inner: dict[tuple[Monomial, Sizes], int] = field(default_factory=lambda: defaultdict(int))
    clamps: dict[Expr, None] = field(default_factory=dict)
    clamped: list[tuple[Sizes, int]] = field(default_factory=list)

    @classmethod
    def of(cls, expr: Expr, local: Mapping[Symbol, int]) -> "Form":
        """Take an expression apart; sizes of work-groups have their values."""
        found = cls()
        for product, factor in expr.substitute(local).products:
            if any(not one.is_parameter and not isinstance(one, Symbol) for one in product):
                term = found._unclamp(_fix_remainders(Expr({product: factor}), local))
                for part, times in term.products:
                    found._add(part, times)
            else:
                found._add(product, factor)
        return found

    def _unclamp(self, expr: Expr) -> Expr:
        """Put what moves with work-groups in the place of its minimum or maximum with a bound."""
        found = Expr.constant(0)
        for product, factor in expr.products:
            clamps = [one for one in product if _is_clamp(one)]
            rest = tuple(one for one in product if one not in clamps)
            inner = Expr.constant(1)
            if clamps:
                [clamp, *more] = clamps
                if more or not all(one.is_parameter for one in rest):
                    raise NotAffineError
                inner, _ = self._open(clamp)
                self.clamped.append((rest, factor))
            found += Expr({rest: factor}) * inner
        return found

    def _open(self, clamp: Atom) -> tuple[Expr, list[Expr]]:
        """Give what is clamped, and its bounds."""
        assert isinstance(clamp, Minimum | Maximum)
        inner, bound = clamp.left, clamp.right
        if not _moves(inner):
            inner, bound = bound, inner
        bounds: list[Expr] = []
        if inner.sole_atom is not None and _is_clamp(inner.sole_atom):
            inner, bounds = self._open(inner.sole_atom)
        if _moves(bound) or any(_is_clamp(one) for product, _ in inner.products for one in product):
            raise NotAffineError
        for one in (inner, *bounds):  # bounds in the wrong order decide by themselves
            apart = one - bound if isinstance(clamp, Maximum) else bound - one
            if apart.symbols():
                self.clamps[apart] = None
            elif apart.constant_term < 0:
                raise NotAffineError
        return inner, [*bounds, bound]

    def _add(self, product: Monomial, factor: int) -> None:
        sizes = tuple(one for one in product if one.is_parameter)
        others = tuple(one for one in product if not one.is_parameter)
        kinds = {symbol.kind for one in others for symbol in symbols_of(one)}
        if not others:
            self.places[CONSTANT, sizes] += factor
        elif kinds.isdisjoint(_OF_GROUPS):
            self.inner[others, sizes] += factor
        else:
            self._move(others, sizes, factor)

    def _move(self, others: Monomial, sizes: Sizes, factor: int) -> None:
        [symbol, *more] = others
        if more or not isinstance(symbol, Symbol) or symbol.kind is SymbolKind.CONTENT:
            raise NotAffineError
        if symbol.kind is SymbolKind.GROUP_ID:
            self.places[GROUP + symbol.axis, sizes] += factor
            return
        self.places[START + symbol.axis, sizes] += factor
        self.inner[(Symbol(SymbolKind.LOCAL_ID, axis=symbol.axis),), sizes] += factor

    def sizes(self) -> set[Sizes]:
        """Give the products of sizes in it."""
        return {sizes for _, sizes in (*self.places, *self.inner)}

    def pinned(self) -> set[Symbol]:
        """Give the sizes that decide more than how far it moves."""
        every = (symbol for what, _ in self.inner for one in what for symbol in symbols_of(one))
        return {one for one in every if one.is_parameter}

    @property
    def moves(self) -> dict[tuple[int, Sizes], int]:
        """How it moves from one work-group to another."""
        return {key: factor for key, factor in self.places.items() if key[0] and factor}

    @property
    def stretches(self) -> bool:
        """Whether what differs within a work-group is multiplied by a size."""
        return any(sizes and factor for (_, sizes), factor in self.inner.items())


def symbols_of(atom: Atom) -> frozenset[Symbol]:
    """Give the symbols in a factor."""
    return frozenset({atom}) if isinstance(atom, Symbol) else atom.symbols()


def _fix_remainders(expr: Expr, local: Mapping[Symbol, int]) -> Expr:
    """Leave work-groups out of remainders where whole work-groups are multiples of the divisor."""
    found = Expr.constant(0)
    for product, factor in expr.products:
        term = Expr.constant(factor)
        for one in product:
            inner = Expr.atom(one)
            if isinstance(one, FloorMod) and _moves(inner):
                inner = one.substitute({
                    Symbol(SymbolKind.GLOBAL_ID, axis=size.axis): (
                        count * Expr.symbol(Symbol(SymbolKind.GROUP_ID, axis=size.axis))
                        + Symbol(SymbolKind.LOCAL_ID, axis=size.axis)
                        + Symbol(SymbolKind.GLOBAL_OFFSET, axis=size.axis)
                    )
                    for size, count in local.items()
                })  # fmt: skip
            term = term * inner
        found += term
    return found


def _moves(expr: Expr) -> bool:
    return any(one.kind in _OF_GROUPS for one in expr.symbols())


def _is_clamp(atom: Atom) -> bool:
    return isinstance(atom, Minimum | Maximum) and (_moves(atom.left) or _moves(atom.right))
