"""Division and remainder: rounding down, as on a grid, and towards zero, as in C."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import ClassVar

from kernelcast.expressions.evaluation import (
    Bindings,
    Value,
    divide_floor,
    divide_trunc,
)
from kernelcast.expressions.polynomials import (
    Composite,
    Expr,
    Monomial,
    Operand,
)
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True)
class Division(Composite):
    """A quotient or a remainder of two expressions."""

    numerator: Expr
    denominator: Expr

    is_floor: ClassVar[bool]
    """Whether the quotient is rounded down; otherwise towards zero."""
    is_remainder: ClassVar[bool]

    def list_parts(self) -> tuple[Expr, Expr]:
        return self.numerator, self.denominator

    def rebuild(self, numerator: Expr, denominator: Expr) -> Expr:
        return _FACTORIES[type(self)](numerator, denominator)

    def is_quasi_affine(self) -> bool:
        return self.denominator.is_parameter and all(
            one.is_quasi_affine() for one in self.list_parts()
        )

    def evaluate(self, bindings: Bindings) -> Value:
        top, bottom = self.numerator.evaluate(bindings), self.denominator.evaluate(bindings)
        quotient = (divide_floor if self.is_floor else divide_trunc)(top, bottom)
        return top - quotient * bottom if self.is_remainder else quotient

    def __str__(self) -> str:
        sign = "/" if not self.is_remainder else "mod" if self.is_floor else "rem"
        bottom = self.denominator.operand_text(as_factor=True)
        text = f"{self.numerator.operand_text()} {sign} {bottom}"
        return text if self.is_remainder else f"{'floor' if self.is_floor else 'trunc'}({text})"


class FloorDiv(Division):
    """A quotient rounded down."""

    __slots__ = ()
    is_floor, is_remainder = True, False


class FloorMod(Division):
    """What remains of a division rounded down: never of the other sign than the denominator."""

    __slots__ = ()
    is_floor, is_remainder, text_needs_parentheses = True, True, True


class TruncDiv(Division):
    """A quotient rounded towards zero: C's ``/``."""

    __slots__ = ()
    is_floor, is_remainder = False, False


class TruncMod(Division):
    """What remains of a division rounded towards zero: C's ``%``."""

    __slots__ = ()
    is_floor, is_remainder, text_needs_parentheses = False, True, True


def floor_div(numerator: Operand, denominator: Operand) -> Expr:
    """Divide, rounding down; multiples of the denominator leave the division."""
    _, top, bottom = _reduce(numerator, denominator)
    quotient, rest = _split(top, bottom)
    if rest.is_zero:
        return quotient
    divisor, inner = bottom.constant_value, rest.sole_atom
    if divisor is not None:
        surplus = _find_surplus(rest, divisor)
        if surplus:
            return quotient + floor_div(rest - surplus, bottom)
        if isinstance(inner, FloorDiv):
            return quotient + floor_div(inner.numerator, inner.denominator * divisor)
        if isinstance(inner, FloorMod) and 0 < (inner.denominator.constant_value or 0) <= divisor:
            return quotient
    return quotient + Expr.atom(FloorDiv(rest, bottom))


def floor_mod(numerator: Operand, denominator: Operand) -> Expr:
    """Give what remains of a division rounded down; multiples of the denominator are dropped."""
    factor, top, bottom = _reduce(numerator, denominator)
    _, rest = _split(top, bottom)
    if rest.is_zero:
        return rest
    divisor, inner = bottom.constant_value, rest.sole_atom
    surplus = 0 if divisor is None else _find_surplus(rest, divisor)
    if surplus:
        return factor * (floor_mod(rest - surplus, bottom) + surplus)
    if divisor is not None and isinstance(inner, FloorMod):
        modulus = inner.denominator.constant_value or 0
        if 0 < modulus <= divisor:
            return factor * rest
        if modulus and modulus % divisor == 0:
            return factor * floor_mod(inner.numerator, bottom)
    return factor * Expr.atom(FloorMod(rest, bottom))


def trunc_div(numerator: Operand, denominator: Operand) -> Expr:
    """Divide as C does; only what divides without remainder is simplified."""
    _, top, bottom = _reduce(numerator, denominator)
    quotient, rest = _split(top, bottom)
    if rest.is_zero:
        return quotient
    value, divisor, inner = top.constant_value, bottom.constant_value, top.sole_atom
    if divisor is not None:
        if value is not None:
            return Expr.of(divide_trunc(value, divisor))  # type: ignore[arg-type] # of integers
        if isinstance(inner, TruncDiv):
            return trunc_div(inner.numerator, inner.denominator * divisor)
    return Expr.atom(TruncDiv(top, bottom))


def trunc_mod(numerator: Operand, denominator: Operand) -> Expr:
    """Give what remains of a division as C does it: numerator - denominator * quotient."""
    factor, top, bottom = _reduce(numerator, denominator)
    _, rest = _split(top, bottom)
    if rest.is_zero:
        return rest
    value, divisor, inner = top.constant_value, bottom.constant_value, top.sole_atom
    if divisor is not None and value is not None:
        return factor * (top - trunc_div(top, bottom) * bottom)
    if isinstance(inner, TruncMod) and inner.denominator == bottom:
        return factor * top
    return factor * Expr.atom(TruncMod(top, bottom))


_FACTORIES: Mapping[type[Division], Callable[[Expr, Expr], Expr]] = {
    FloorDiv: floor_div,
    FloorMod: floor_mod,
    TruncDiv: trunc_div,
    TruncMod: trunc_mod,
}


def _reduce(numerator: Operand, denominator: Operand) -> tuple[int, Expr, Expr]:
    """Cancel the common factor; a denominator that is a number becomes positive."""
    top, bottom = Expr.of(numerator), Expr.of(denominator)
    if bottom.is_zero:
        msg = f"({top}) is divided by zero; give another denominator"
        raise InputError(msg)
    factor = gcd(*(coefficient for _, coefficient in (*top.products, *bottom.products)))
    if (bottom.constant_value or 0) < 0:
        factor = -factor
    return factor, top.divide_terms(factor), bottom.divide_terms(factor)


def _find_surplus(rest: Expr, divisor: int) -> int:
    """Give by how much the constant exceeds a multiple of what divides all other coefficients.

    Within that grain the numerator moves no further: floor((4*x + 3) / 32) = floor((4*x) / 32).
    """
    grain = gcd(divisor, *(coefficient for monomial, coefficient in rest.products if monomial))
    return rest.constant_term % grain


def _split(top: Expr, bottom: Expr) -> tuple[Expr, Expr]:
    """Give quotient and rest with top = quotient * bottom + rest, the rest as small as it gets.

    The rest is zero where the division is exact as far as this sees.
    """
    [(product, divisor), *others] = bottom.products
    if others:  # split only where the numerator is a multiple of the denominator
        (term, factor), *_ = bottom.terms
        times = dict(top.products).get(term, 0) // factor
        return (Expr.constant(times), Expr({})) if top == bottom * times else (Expr({}), top)
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in top.products:
        cofactor = _take_out(monomial, product)
        # Towards zero, to keep the sign of what remains; constants end up in [0, divisor).
        whole = 0 if cofactor is None else coefficient // divisor
        if monomial and whole < 0:
            whole = -(-coefficient // divisor)
        if cofactor is not None and whole:
            quotient[cofactor] = whole
        if coefficient != whole * divisor:
            rest[monomial] = coefficient - whole * divisor
    return Expr(quotient), Expr(rest)


def _take_out(monomial: Monomial, product: Monomial) -> Monomial | None:
    """Take a product's factors out of a monomial; None if it lacks one."""
    kept = list(monomial)
    for atom in product:
        if atom not in kept:
            return None
        kept.remove(atom)
    return tuple(kept)
