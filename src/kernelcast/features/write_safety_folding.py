"""Puts quotients and remainders of the same number together again.

Kernels over one dimension take a number apart, ``y = i / W`` and ``x = i % W``, and add it up for
the address, ``y * W + x``. Limits of the parts do not tell that the sum is ``i``.
"""

from collections.abc import Iterator

from kernelcast.expressions import (
    Atom,
    Expr,
    FloorDiv,
    FloorMod,
    TruncDiv,
    TruncMod,
    floor_div,
    floor_mod,
    trunc_div,
    trunc_mod,
)

_MOST_ROUNDS = 8
_QUOTIENTS = {FloorMod: floor_div, TruncMod: trunc_div}
_REMAINDERS = {FloorMod: floor_mod, TruncMod: trunc_mod}


def fold(expr: Expr) -> Expr:
    """Put quotients and remainders of the same number together where they add up to it.

    Parameters
    ----------
    expr : Expr
        Sizes and scalars should have been replaced by their values.

    Examples
    --------
    >>> from kernelcast.expressions import Symbol, SymbolKind
    >>> i = Expr.symbol(Symbol(SymbolKind.GLOBAL_ID))
    >>> z, y, x = floor_div(i, 12), floor_mod(floor_div(i, 4), 3), floor_mod(i, 4)
    >>> print(fold(8 * (12 * z + 4 * y + x)))
    8*global_id(0)
    """
    for _ in range(_MOST_ROUNDS):
        folded = _fold_one(expr)
        if folded is None:
            return expr
        expr = folded
    return expr


def _fold_one(expr: Expr) -> Expr | None:
    products = dict(expr.products)
    for monomial, factor in products.items():
        if len(monomial) != 1 or not isinstance(monomial[0], FloorMod | TruncMod):
            continue
        remainder = monomial[0]
        divisor = remainder.denominator.constant_value
        if not divisor:
            continue
        for quotient, whole in _partners(remainder, divisor, products):
            if products.get((quotient,)) == factor * divisor:
                rest = {key: value for key, value in products.items()
                        if key not in (monomial, (quotient,))}  # fmt: skip
                return Expr(rest) + factor * whole
    return None


def _partners(
    remainder: FloorMod | TruncMod, divisor: int, products: dict[tuple[Atom, ...], int]
) -> Iterator[tuple[Atom, Expr]]:
    """Give quotients that make a remainder whole: `divisor * quotient + remainder == whole`."""
    divide, take_rest = _QUOTIENTS[type(remainder)], _REMAINDERS[type(remainder)]
    number = remainder.numerator
    quotient = divide(number, divisor).sole_atom
    if quotient is not None:
        yield quotient, number
    inner = number.sole_atom
    if isinstance(inner, FloorDiv | TruncDiv):
        # i / (e * d) is (i / e) / d
        first = inner.denominator.constant_value
        joined = divide(inner.numerator, first * divisor).sole_atom if first else None
        if joined is not None:
            yield joined, number
    for monomial in products:
        # (i % (k * d)) / d together with i % d is i % (k * d)
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, FloorDiv | TruncDiv) and atom.denominator.constant_value == divisor:
            part = atom.numerator.sole_atom
            if isinstance(part, type(remainder)) and part.numerator == number:
                larger = part.denominator.constant_value
                if larger and larger % divisor == 0:
                    yield atom, take_rest(number, larger)
