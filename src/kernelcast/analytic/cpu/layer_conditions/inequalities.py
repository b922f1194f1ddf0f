"""Conditions on sizes: as text, and solved for the largest size that meets them."""

from math import gcd

from kernelcast.expressions import Expr, Symbol


def write_polynomial(expression: Expr) -> str:
    """Write a polynomial with powers, highest degree first."""
    terms = sorted(
        (tuple(sorted(str(atom) for atom in monomial)), coefficient)
        for monomial, coefficient in expression.products
    )
    terms.sort(key=lambda term: -len(term[0]))
    text = ""
    for names, coefficient in terms:
        sign = "-" if coefficient < 0 else "+"
        product = _write_product(names, abs(coefficient))
        text += f" {sign} {product}" if text else product if sign == "+" else f"-{product}"
    return text or "0"


def _write_product(names: tuple[str, ...], factor: int) -> str:
    powers = {name: names.count(name) for name in names}
    parts = [name if power == 1 else f"{name}**{power}" for name, power in powers.items()]
    if factor != 1 or not parts:
        parts.insert(0, str(factor))
    return "*".join(parts)


def normalise(left: Expr, right: int) -> tuple[Expr, int]:
    """Bring a condition ``left <= right`` to its shortest form: no constant on the left.

    Returns
    -------
    tuple of Expr and int
        Both sides.
    """
    right -= left.constant_term
    left = left - left.constant_term
    divisor = gcd(right, *(coefficient for _, coefficient in left.products))
    if divisor > 1:
        left = Expr({monomial: value // divisor for monomial, value in left.products})
        right //= divisor
    return left, right


def solve_largest(left: Expr, right: int, symbol: Symbol) -> int:
    """Find the largest whole number for which ``left <= right``; 0 if there is none from 1 on.

    Parameters
    ----------
    left : Expr
        A polynomial in one constant, whose highest power has a positive coefficient.
    right : int
        A number.
    symbol : Symbol
        The constant.

    Examples
    --------
    >>> from kernelcast.expressions import SymbolKind
    >>> n = Symbol(SymbolKind.SCALAR, "N")
    >>> solve_largest(Expr.symbol(n) * n * 11, 3_276_800, n)
    545
    """
    # Beyond Cauchy's bound nothing changes its sign any more.
    high = 2 + abs(right) + max(abs(coefficient) for _, coefficient in left.products)
    low = high
    while low and _value(left, symbol, low) > right:
        high, low = low, low // 2
    if not low:
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        if _value(left, symbol, middle) > right:
            high = middle
        else:
            low = middle
    return low


def _value(expression: Expr, symbol: Symbol, number: int) -> int:
    return int(expression.evaluate({symbol: number}))
