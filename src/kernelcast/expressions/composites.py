"""Factors that are no symbols: quotients and remainders, extremes, choices, powers."""

from dataclasses import dataclass, replace
from math import gcd
from typing import cast

import numpy as np

from kernelcast.expressions.conditions import FALSE, TRUE, Comparison, Condition, Relation
from kernelcast.expressions.polynomials import Composite, Expr, Monomial, Operand
from kernelcast.expressions.symbols import (
    Bindings,
    EvaluationError,
    Value,
    divide_floor,
    divide_trunc,
    evaluate_where,
)
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True)
class Division(Composite):
    """A quotient or a remainder of two expressions."""

    numerator: Expr
    denominator: Expr

    is_floor: bool
    """Whether the quotient is rounded down; otherwise towards zero, as C's is."""
    is_remainder: bool

    @property
    def text_needs_parentheses(self) -> bool:  # type: ignore[override] # a class's constant above
        return self.is_remainder

    def list_parts(self) -> tuple[Expr, Expr]:
        return self.numerator, self.denominator

    def rebuild(self, numerator: Expr, denominator: Expr) -> Expr:
        if self.is_remainder:
            return (floor_mod if self.is_floor else trunc_mod)(numerator, denominator)
        return (floor_div if self.is_floor else trunc_div)(numerator, denominator)

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
        if isinstance(inner, Division) and inner.is_floor:
            if not inner.is_remainder:
                return quotient + floor_div(inner.numerator, inner.denominator * divisor)
            if 0 < (inner.denominator.constant_value or 0) <= divisor:
                return quotient
    return quotient + Expr.atom(Division(rest, bottom, is_floor=True, is_remainder=False))


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
    if divisor and isinstance(inner, Division) and inner.is_floor and inner.is_remainder:
        modulus = inner.denominator.constant_value or 0
        if 0 < modulus <= divisor:
            return factor * rest
        if modulus and modulus % divisor == 0:
            return factor * floor_mod(inner.numerator, bottom)
    return factor * Expr.atom(Division(rest, bottom, is_floor=True, is_remainder=True))


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
        if isinstance(inner, Division) and not (inner.is_floor or inner.is_remainder):
            return trunc_div(inner.numerator, inner.denominator * divisor)
    return Expr.atom(Division(top, bottom, is_floor=False, is_remainder=False))


def trunc_mod(numerator: Operand, denominator: Operand) -> Expr:
    """Give what remains of a division as C does it: numerator - denominator * quotient."""
    factor, top, bottom = _reduce(numerator, denominator)
    _, rest = _split(top, bottom)
    if rest.is_zero:
        return rest
    value, divisor, inner = top.constant_value, bottom.constant_value, top.sole_atom
    if divisor is not None and value is not None:
        return factor * (top - trunc_div(top, bottom) * bottom)
    remainder = Division(top, bottom, is_floor=False, is_remainder=True)
    if isinstance(inner, Division) and inner == replace(remainder, numerator=inner.numerator):
        return factor * top
    return factor * Expr.atom(remainder)


def _reduce(numerator: Operand, denominator: Operand) -> tuple[int, Expr, Expr]:
    """Cancel the common factor; a denominator that is a number becomes positive."""
    top, bottom = Expr.of(numerator), Expr.of(denominator)
    if bottom.is_zero:
        raise InputError(f"({top}) is divided by zero; give another denominator")
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


@dataclass(frozen=True, slots=True)
class Extremum(Composite):
    """The lesser or the greater of two expressions."""

    left: Expr
    right: Expr
    is_least: bool

    def list_parts(self) -> tuple[Expr, Expr]:
        return self.left, self.right

    def rebuild(self, left: Expr, right: Expr) -> Expr:
        return _choose(left, right, is_least=self.is_least)

    def evaluate(self, bindings: Bindings) -> Value:
        left, right = self.left.evaluate(bindings), self.right.evaluate(bindings)
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right) if self.is_least else max(left, right)
        return np.minimum(left, right) if self.is_least else np.maximum(left, right)

    def __str__(self) -> str:
        return f"{'min' if self.is_least else 'max'}({self.left}, {self.right})"


@dataclass(frozen=True, slots=True)
class Select(Composite):
    """One of two expressions, by a condition: C's ``condition ? then : otherwise``."""

    condition: Condition
    """What decides. Where it depends on data, the value cannot be evaluated."""
    then: Expr
    otherwise: Expr

    def list_parts(self) -> tuple[Condition, Expr, Expr]:
        return self.condition, self.then, self.otherwise

    def rebuild(self, condition: Condition, then: Expr, otherwise: Expr) -> Expr:
        return select(condition, then, otherwise)

    @property
    def is_parameter(self) -> bool:
        return self.condition.is_exact and all(one.is_parameter for one in self.symbols())

    def is_quasi_affine(self) -> bool:
        return self.condition.is_exact and all(one.is_quasi_affine() for one in self.list_parts())

    def evaluate(self, bindings: Bindings) -> Value:
        if not self.condition.is_exact:
            raise EvaluationError(f"{self} depends on data; no values of symbols decide it")
        chosen = self.condition.evaluate(bindings)
        if not isinstance(chosen, np.ndarray):
            return (self.then if chosen else self.otherwise).evaluate(bindings)
        return np.where(
            chosen,
            evaluate_where(self.then, chosen, bindings),
            evaluate_where(self.otherwise, ~chosen, bindings),
        )

    def __str__(self) -> str:
        return f"({self.then} if {self.condition} else {self.otherwise})"


def minimum(left: Operand, right: Operand) -> Expr:
    return _choose(left, right, is_least=True)


def maximum(left: Operand, right: Operand) -> Expr:
    return _choose(left, right, is_least=False)


def select(condition: Condition, then: Operand, otherwise: Operand) -> Expr:
    one, other = Expr.of(then), Expr.of(otherwise)
    if condition == TRUE or one == other:
        return one
    if isinstance(condition, Comparison) and condition.relation is Relation.NOT_NEGATIVE:
        # ``a < b ? a : b`` and its like; which of two equal ones is taken does not matter.
        if (condition.expr - (other - one)).constant_value in (0, -1):
            return minimum(one, other)
        if (condition.expr - (one - other)).constant_value in (0, -1):
            return maximum(one, other)
    return other if condition == FALSE else Expr.atom(Select(condition, one, other))


def _choose(left: Operand, right: Operand, *, is_least: bool) -> Expr:
    # One order, numbers last, so that min(a, b) is min(b, a).
    one, other = sorted(
        (Expr.of(left), Expr.of(right)),
        key=lambda each: (each.constant_value is not None, str(each)),
    )
    gap = (one - other).constant_value
    if gap is None:
        return Expr.atom(Extremum(one, other, is_least))
    return one if gap == 0 or (gap < 0) == is_least else other


@dataclass(frozen=True, slots=True)
class Geometric(Composite):
    """A value multiplied, or divided towards zero, by a number at each iteration of a loop."""

    start: Expr
    factor: int
    is_division: bool
    iteration: Expr
    """How often: usually a loop's symbol."""

    @property
    def text_needs_parentheses(self) -> bool:  # type: ignore[override] # a class's constant above
        return not self.is_division and self.start != Expr.constant(1)

    def list_parts(self) -> tuple[Expr, Expr]:
        return self.start, self.iteration

    def rebuild(self, start: Expr, iteration: Expr) -> Expr:
        return geometric(start, self.factor, iteration, is_division=self.is_division)

    def is_quasi_affine(self) -> bool:
        return self.start.is_parameter and all(one.is_quasi_affine() for one in self.list_parts())

    def evaluate(self, bindings: Bindings) -> Value:
        start, iteration = self.start.evaluate(bindings), self.iteration.evaluate(bindings)
        if np.any(np.less(iteration, 0)):
            raise EvaluationError(f"{self}: an iteration is below 0; iterations count from 0")
        longest = _count_powers(self.factor)
        if self.is_division:
            # One more division than a power of 64 bits allows leaves nothing.
            times = min(iteration, longest) if isinstance(iteration, int) else (
                np.minimum(iteration, longest))  # fmt: skip
            quotient = divide_trunc(start, self.factor**times)
            return cast("Value", quotient * (iteration <= longest))
        if np.any(np.greater(iteration, longest)):
            msg = f"{self}: a power exceeds 64 bits; give at most {longest} as iteration"
            raise EvaluationError(msg)
        return cast("Value", start * self.factor**iteration)

    def __str__(self) -> str:
        base = str(self.factor) if self.factor >= 0 else f"({self.factor})"
        power = f"{base}^{self.iteration.operand_text(as_factor=True)}"
        start = self.start.operand_text()
        if self.is_division:
            return f"trunc({start} / {power})"
        return power if start == "1" else f"{start}*{power}"


def geometric(start: Operand, factor: int, iteration: Operand, *, is_division: bool) -> Expr:
    """Multiply a start by a factor at each iteration of a loop, or divide it as C does."""
    value, times = Expr.of(start), Expr.of(iteration)
    count = times.constant_value
    if is_division and not factor:
        raise InputError(f"({value}) is divided by zero each iteration; give another factor")
    if count is not None and count < 0:
        raise InputError(f"iteration {count} of ({value}) is asked for; iterations count from 0")
    if factor == 1 or value.is_zero:
        return value
    if count is not None and count <= _count_powers(factor):
        power = factor**count
        return trunc_div(value, power) if is_division else value * power
    return Expr.atom(Geometric(value, factor, is_division, times))


def _count_powers(factor: int) -> int:
    """Give the largest exponent whose power fits 64 bits."""
    if abs(factor) < 2:
        return 2**32
    exponent, power = 0, abs(factor)
    while power <= 2**63 - 1:
        exponent, power = exponent + 1, power * abs(factor)
    return exponent
