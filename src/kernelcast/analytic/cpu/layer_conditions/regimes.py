"""A fast way to tell which layer conditions hold, for nests whose distances are polynomials.

Evaluating a nest from scratch takes some 0.1 ms. But which accesses hit depends only on the order
of the reuse distances and on how many of them each cache remembers: its *regime*. Where all
distances are polynomials in the constants, a few products and sums tell the regime, a few more the
lines, and the answer of a regime that was seen before is there already.
"""

from collections.abc import Iterable, Mapping, Sequence

from kernelcast.analytic.cpu.layer_conditions.polynomial_chains import PolynomialNest
from kernelcast.expressions import Expr

Regime = tuple[tuple[int, ...], tuple[int, ...]]
"""The order of the distances, and per cache how many of them it remembers; -1: all arrays."""

_Terms = tuple[tuple[int, int], ...]
"""Places in the table of products, and coefficients."""


class RegimeFinder:
    """Tells the regime of a nest for given constants and cache sizes.

    Parameters
    ----------
    nest : PolynomialNest
        Reuse distances and what must hold for them.
    """

    __slots__ = ("_factors", "_guards", "_known", "_names", "_scale", "_slopes", "_terms", "_total")

    def __init__(self, nest: PolynomialNest) -> None:
        distances = tuple(nest.slopes)
        table = _ProductTable((*distances, *nest.guards, nest.total_bytes))
        self._scale = nest.scale
        self._slopes = (*nest.slopes.values(), nest.endless_slope)
        self._known = tuple(one.constant_value for one in distances)
        self._terms = tuple(table.place(one) for one in distances)
        self._guards = tuple(table.place(one) for one in nest.guards)
        self._total = table.place(nest.total_bytes)
        self._names = table.names
        self._factors = tuple(table.factors)

    def find(self, constants: Mapping[str, int], capacities: Sequence[int]) -> Regime | None:
        """Give the regime; None where it takes a full evaluation to tell."""
        products = self._multiply(constants)
        if products is None:
            return None
        for terms in self._guards:
            value = 0
            for place, coefficient in terms:
                value += coefficient * products[place]
            if value < 0:
                return None
        distances = self._measure(products)
        total = 0
        for place, coefficient in self._total:
            total += coefficient * products[place]
        order = sorted(range(len(distances)), key=distances.__getitem__)
        return tuple(order), self._count_remembered(distances, order, total, capacities)

    def _multiply(self, constants: Mapping[str, int]) -> list[int] | None:
        products = [1]
        for name in self._names:
            value = constants.get(name, 0)
            if value < 1:
                return None
            products.append(value)
        for one, other in self._factors:
            products.append(products[one] * products[other])
        return products

    def _measure(self, products: Sequence[int]) -> list[int]:
        distances = []
        for known, terms in zip(self._known, self._terms, strict=True):
            value = known
            if value is None:
                value = 0
                for place, coefficient in terms:
                    value += coefficient * products[place]
            distances.append(value)
        return distances

    def _count_remembered(
        self,
        distances: Sequence[int],
        order: Sequence[int],
        total: int,
        capacities: Sequence[int],
    ) -> tuple[int, ...]:
        """Compare the paper's C_req of each distance with each cache."""
        slopes = self._slopes
        beyond = sum(slopes)
        within = 0
        required = []
        for place in order:
            distance, slope = distances[place], slopes[place]
            within += distance * slope
            beyond -= slope
            required.append(within + distance * beyond)
        scale = self._scale
        remembered = []
        for capacity in capacities:
            if total < capacity:
                remembered.append(-1)
                continue
            count = len(required)
            while count and required[count - 1] > capacity * scale:
                count -= 1
            remembered.append(count)
        return tuple(remembered)


class _ProductTable:
    """The products of constants that some polynomials are made of, each made of two others.

    Place 0 is the number 1, then come the constants, then the products.
    """

    def __init__(self, expressions: Iterable[Expr]) -> None:
        symbols = frozenset().union(*(one.symbols() for one in expressions))
        self.names = tuple(sorted(one.name for one in symbols))
        self.factors: list[tuple[int, int]] = []
        self._places: dict[tuple[str, ...], int] = {(): 0}
        for name in self.names:
            self._places[name,] = len(self._places)

    def place(self, expression: Expr) -> _Terms:
        """Give a polynomial's places and coefficients."""
        return tuple(
            (self._find(tuple(str(atom) for atom in monomial)), coefficient)
            for monomial, coefficient in expression.terms
        )

    def _find(self, product: tuple[str, ...]) -> int:
        if product not in self._places:
            self.factors.append((self._find(product[:-1]), self._find(product[-1:])))
            self._places[product] = len(self._places)
        return self._places[product]
