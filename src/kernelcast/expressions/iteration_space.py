"""In what share of a loop nest's iterations a condition holds, counted exactly as sets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import islpy

from kernelcast.expressions.comparisons import less, less_equal
from kernelcast.expressions.conditions import FALSE, TRUE, Condition
from kernelcast.expressions.isl import IslSpace, NotKnownError, answering, make_context
from kernelcast.expressions.junctions import conjunction, disjunction
from kernelcast.expressions.loop_nest import NestLoop
from kernelcast.expressions.polynomials import Expr
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.records.errors import InputError

_MOST_OPERATIONS = 20_000_000
"""Steps of the solver for one count; it takes some 3 ms for the rows of a square of 4000."""


class IterationSpace:
    """The iterations of a nest of one size.

    Parameters
    ----------
    loops : sequence of NestLoop
        Outermost first.
    values : mapping of Symbol to int
        Of constants.
    taken : float or None
        Share of iterations in which each decision on data holds, independently of all else; None
        if both its sides are executed.

    Examples
    --------
    >>> from kernelcast.expressions import equal, floor_mod
    >>> i, j = (Symbol(SymbolKind.LOOP, name) for name in "ij")
    >>> square = [
    ...     NestLoop(name=name, start=Expr.constant(0), stop=Expr.constant(80)) for name in "ji"
    ... ]
    >>> space = IterationSpace(square, {})
    >>> space.share(less(i, j)), space.share(equal(floor_mod(i, 4), 0))
    (0.49375, 0.25)

    Every line of 8 elements holds one whose place is a multiple of 4:

    >>> space.share_of_lines(equal(floor_mod(i, 4), 0), 8, 64)
    1.0
    """

    def __init__(
        self,
        loops: Sequence[NestLoop],
        values: Mapping[Symbol, int],
        taken: float | None = None,
    ) -> None:
        self._values = values
        self._taken = taken
        self._context = make_context(_MOST_OPERATIONS)
        self._shares: dict[tuple[Condition, tuple[int, int] | None], float] = {}
        self._own = [Symbol(SymbolKind.LOOP, loop.name) for loop in loops]
        # Sets have a point per iteration, whatever a loop starts from and steps by.
        self._replaced: dict[Symbol, Expr] = {}
        self._inside: list[Condition] = []
        self._reaches: list[frozenset[Symbol]] = []
        for loop, own in zip(loops, self._own, strict=True):
            start, stop = (self._bind(one) for one in (loop.start, loop.stop))
            value = start + loop.step * Expr.symbol(own)
            ahead = less(value, stop) if loop.step > 0 else less(stop, value)
            self._inside.append(conjunction(less_equal(0, own), ahead))
            self._reaches.append(self._inside[-1].symbols())
            self._replaced[own] = value

    def share(self, condition: Condition) -> float:
        """Give the share of iterations in which a condition holds.

        Raises
        ------
        InputError
            If it cannot be counted: it is not quasi-affine.
        """
        return sum(
            chance * self._share(case, lambda one: one)
            for case, chance in self._list_cases(condition)
        )

    def share_of_rows(self, condition: Condition) -> float:
        """Give the share of the innermost loop's runs in which a condition holds at least once."""
        return self._share(unite(condition), _find_rows, key=(0, 0), keeps_inner=True)

    def share_of_lines(self, condition: Condition, stride: int, line_bytes: int) -> float:
        """Give the share of lines, of all that an access passes, that it touches.

        Parameters
        ----------
        condition : Condition
            In which iterations it is executed.
        stride : int
            Bytes by which the innermost loop moves it, above 0.
        line_bytes : int
            Of a cache line.
        """
        if stride >= line_bytes:
            return self.share(condition)
        possible = unite(condition)
        lines = self._share(
            possible,
            lambda one: self._to_lines(one, stride, line_bytes),
            key=(stride, line_bytes),
            keeps_inner=True,
        )
        if possible == condition or not lines:
            return lines
        chance = self.share(condition) / self.share(possible)
        missed: float = (1 - chance) ** (line_bytes / stride)
        return lines * (1 - missed)

    def _list_cases(self, condition: Condition) -> Iterator[tuple[Condition, float]]:
        """Give what a condition is for all outcomes of its decisions, and how likely each is."""
        decisions = find_decisions(condition)
        if self._taken is None or not decisions:
            yield unite(condition), 1.0
            return
        for sides in product((0, 1), repeat=len(decisions)):
            chance = 1.0
            for side in sides:
                chance *= self._taken if side else 1 - self._taken
            yield condition.substitute(dict(zip(decisions, sides, strict=True))), chance

    def _share(
        self,
        condition: Condition,
        view: Callable[[islpy.Set], islpy.Set],
        *,
        key: tuple[int, int] | None = None,
        keeps_inner: bool = False,
    ) -> float:
        """Give the share of points that are left, as iterations, rows or lines."""
        if condition in (TRUE, FALSE):
            return float(condition == TRUE)
        found = self._shares.get((condition, key))
        if found is None:
            bound = condition.substitute(self._values).substitute(self._replaced)
            found = self._shares[condition, key] = self._count(bound, view, keeps_inner)
        return found

    def _count(
        self, condition: Condition, view: Callable[[islpy.Set], islpy.Set], keeps_inner: bool
    ) -> float:
        symbols = set(condition.symbols())
        if keeps_inner:
            symbols.add(self._own[-1])
        known = self._connect(symbols)
        try:
            space = IslSpace(known, self._context)
            with answering(self._context):
                inside = conjunction(
                    *(one for own, one in zip(self._own, self._inside, strict=True) if own in known)
                )
                domain = space.to_isl_set(inside)
                met = domain.intersect(space.to_isl_set(condition))
                total, left = (_size(view(one)) for one in (domain, met))
        except NotKnownError as error:
            msg = (
                f"the iterations in which {condition} holds cannot be counted; expected "
                "comparisons of sums of loop variables times constants"
            )
            raise InputError(msg) from error
        return left / total if total else 0.0

    def _connect(self, symbols: set[Symbol]) -> list[Symbol]:
        """Give the loops whose lengths bear on some, themselves included, outermost first."""
        size = -1
        while size < len(symbols):
            size = len(symbols)
            for own, reach in zip(self._own, self._reaches, strict=True):
                if own in symbols or (reach - {own}) & symbols:
                    symbols |= reach
        return [own for own in self._own if own in symbols]

    def _bind(self, expr: Expr) -> Expr:
        return expr.substitute(self._values).substitute(self._replaced)

    def _to_lines(self, points: islpy.Set, stride: int, line_bytes: int) -> islpy.Set:
        """Put the number of its line in the place of the innermost loop's iteration."""
        outer = "".join(f"o{place}," for place in range(points.dim(islpy.dim_type.set) - 1))
        text = (
            f"{{ [{outer} i] -> [{outer} line] : "
            f"{line_bytes} line <= {stride} i < {line_bytes} line + {line_bytes} }}"
        )
        return points.apply(islpy.Map.read_from_str(self._context, text))


def find_decisions(condition: Condition) -> tuple[Symbol, ...]:
    """Give the conditions on data that a condition is made of."""
    found = [one for one in condition.symbols() if one.kind is SymbolKind.CONTENT]
    return tuple(sorted(found, key=lambda one: one.name))


def unite(condition: Condition) -> Condition:
    """Give the iterations in which a condition holds if data have it so: a mask may be set.

    Examples
    --------
    >>> from kernelcast.expressions import equal
    >>> i, found = Symbol(SymbolKind.LOOP, "i"), Symbol(SymbolKind.CONTENT, "a[i] > 0")
    >>> print(unite(conjunction(less(i, 5), equal(found, 1))))
    iteration(i) < 5
    """
    for one in find_decisions(condition):
        condition = disjunction(*(condition.substitute({one: side}) for side in (0, 1)))
    return condition


def _find_rows(points: islpy.Set) -> islpy.Set:
    return points.project_out(islpy.dim_type.set, points.dim(islpy.dim_type.set) - 1, 1)


def _size(points: islpy.Set) -> int:
    size: int = points.coalesce().count_val().to_python()
    return size
