"""How large what differs within a work-group can become: local ids, and iterations of loops."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.conditions import Condition
from kernelcast.expressions.divisions import FloorMod
from kernelcast.expressions.evaluation import EvaluationError
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.polynomials import Expr, Monomial
from kernelcast.expressions.symbols import Symbol, SymbolKind

_LONGEST_POWER: Final = 60
_MOST_TRIED: Final = 1 << 16


def list_loops(facts: KernelFacts) -> Iterable[LoopFacts]:
    """Give all loops, outer ones first."""
    nests = [*(one.loops for one in facts.reaches), *(one.loops for one in facts.accesses)]
    return dict.fromkeys([*(loop for nest in nests for loop in nest), *facts.loops])


class GroupBounds:
    """Bounds of expressions over a work-group.

    Parameters
    ----------
    local : sequence of int
        Its local size in three dimensions.
    sizes : mapping of Symbol to int
        The same, by symbol.
    """

    def __init__(
        self, facts: KernelFacts, local: Sequence[int], sizes: Mapping[Symbol, int]
    ) -> None:
        self.local = local
        self._most: dict[str, float] = {}
        for loop in list_loops(facts):
            if loop.trip_count is not None:
                most = self._bound_one(loop.trip_count.substitute(sizes)) - 1
            else:
                most = self._bound_one(loop.condition.substitute(sizes), loop.name)
            self._most[loop.name] = max(0.0, most)

    def bound(self, what: Monomial) -> float:
        """Give the largest absolute value of what differs within a work-group."""
        return math.prod(self._bound_one(Expr.atom(one)) for one in what)

    def _bound_one(self, one: Expr | Condition, loop: str = "") -> float:
        """Give an expression's largest absolute value, or the last iteration that may run."""
        own = Symbol(SymbolKind.LOOP, loop) if loop else None
        symbols = [*one.symbols()]
        if isinstance(one, Expr) and len(symbols) == 1 and one == Expr.symbol(symbols[0]):
            return self._bound_symbol(symbols[0])
        atom = one.sole_atom if isinstance(one, Expr) else None
        if isinstance(atom, FloorMod) and not atom.denominator.symbols():
            return abs(atom.denominator.constant_term) - 1
        most = [_LONGEST_POWER if each is own else self._bound_symbol(each) for each in symbols]
        if math.prod(each + 1 for each in most) > _MOST_TRIED:
            return math.inf
        grids = np.ix_(*(np.arange(int(each) + 1) for each in most))
        try:
            found = np.asarray(one.evaluate(dict(zip(symbols, grids, strict=True))))
        except EvaluationError:
            return math.inf
        if own is None:
            return float(np.abs(found).max())
        if own not in symbols or not found.any():
            return math.inf if found.any() else 0.0
        last = int(np.nonzero(found)[symbols.index(own)].max())
        return last if last < _LONGEST_POWER else math.inf

    def _bound_symbol(self, symbol: Symbol) -> float:
        if symbol.kind is SymbolKind.LOCAL_ID:
            return self.local[symbol.axis] - 1
        is_loop = symbol.kind is SymbolKind.LOOP
        return self._most.get(symbol.name, math.inf) if is_loop else math.inf
