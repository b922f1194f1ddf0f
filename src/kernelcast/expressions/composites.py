"""Factors that are no symbols: quotients and remainders, extremes, choices, powers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import gcd
from operator import and_, or_, xor
from typing import Any, Final, cast

import numpy as np

from kernelcast.expressions.conditions import FALSE, TRUE, Comparison, Condition, Relation
from kernelcast.expressions.polynomials import Composite, Expr, Monomial, Operand
from kernelcast.expressions.symbols import Bindings, EvaluationError, Value
from kernelcast.records.errors import InputError


def divide_floor(numerator: Value, denominator: Value) -> Value:
    if np.any(denominator == 0) if isinstance(denominator, np.ndarray) else denominator == 0:
        raise EvaluationError("division by zero; give values for which no denominator is zero")
    return cast("Value", numerator // denominator)


def divide_trunc(numerator: Value, denominator: Value) -> Value:
    """Divide as C does, rounding towards zero."""
    quotient = divide_floor(numerator, denominator)
    inexact = quotient * denominator != numerator
    # The floor lies one too low where the exact quotient is negative and no whole number.
    return cast("Value", quotient + (inexact & ((numerator < 0) != (denominator < 0))))


@dataclass(frozen=True, slots=True)
class Division(Composite):
    numerator: Expr
    denominator: Expr

    is_floor: bool
    """Whether the quotient is rounded down; otherwise towards zero, as C's is."""
    is_remainder: bool

    @staticmethod
    def make(numerator: Operand, denominator: Operand, is_floor: bool, is_remainder: bool) -> Expr:
        """Divide; of quotients rounded down, multiples of the denominator leave the division."""
        top, bottom = Expr.of(numerator), Expr.of(denominator)
        if bottom.is_zero:
            raise InputError(f"({top}) is divided by zero; give another denominator")
        # The common factor is cancelled; a denominator that is a number becomes positive.
        factor = gcd(*(coefficient for _, coefficient in (*top.products, *bottom.products)))
        if (bottom.constant_value or 0) < 0:
            factor = -factor
        top, bottom = top.divide_terms(factor), bottom.divide_terms(factor)
        quotient, rest = _split(top, bottom)
        if not (is_floor or rest.is_zero):  # what is rounded towards zero cannot be split
            quotient, rest = Expr({}), top

        def again(numerator: Expr, denominator: Expr = bottom, added: int = 0) -> Expr:
            inner = Division.make(numerator, denominator, is_floor, is_remainder)
            return factor * (inner + added) if is_remainder else quotient + inner

        nothing = Expr({}) if is_remainder else quotient
        if rest.is_zero:
            return nothing
        value, divisor, inner = rest.constant_value, bottom.constant_value, rest.sole_atom
        if divisor is not None and value is not None:
            whole = int((divide_floor if is_floor else divide_trunc)(value, divisor))
            return factor * Expr.of(value - whole * divisor) if is_remainder else quotient + whole
        if divisor is not None and is_floor:
            # The numerator moves by a grain: floor((4*x + 3) / 32) = floor((4*x) / 32).
            grain = gcd(divisor, *(one for monomial, one in rest.products if monomial))
            surplus = rest.constant_term % grain
            if surplus:
                return again(rest - surplus, added=surplus)
        if isinstance(inner, Division) and inner.is_floor == is_floor:
            modulus = inner.denominator.constant_value or 0
            if not inner.is_remainder:
                if divisor and not is_remainder:
                    return again(inner.numerator, inner.denominator * divisor)
            elif inner.denominator == bottom or 0 < modulus <= (divisor or 0):
                return factor * rest if is_remainder else nothing
            elif is_remainder and modulus and divisor and modulus % divisor == 0:
                return again(inner.numerator)
        atom = Expr({(Division(rest, bottom, is_floor, is_remainder),): 1})
        return factor * atom if is_remainder else quotient + atom

    @property
    def text_needs_parentheses(self) -> bool:  # type: ignore[override] # a class's constant above
        return self.is_remainder

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


floor_div = partial(Division.make, is_floor=True, is_remainder=False)
floor_mod = partial(Division.make, is_floor=True, is_remainder=True)
trunc_div = partial(Division.make, is_floor=False, is_remainder=False)
"""Divides as C does, towards zero."""
trunc_mod = partial(Division.make, is_floor=False, is_remainder=True)
"""Gives what remains of it: numerator - denominator * quotient."""


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
    left: Expr
    right: Expr
    is_least: bool

    @staticmethod
    def make(left: Operand, right: Operand, is_least: bool) -> Expr:
        # One order, numbers last, so that min(a, b) is min(b, a).
        one, other = sorted(
            (Expr.of(left), Expr.of(right)),
            key=lambda each: (each.constant_value is not None, str(each)),
        )
        gap = (one - other).constant_value
        if gap is None:
            return Expr({(Extremum(one, other, is_least),): 1})
        return one if gap == 0 or (gap < 0) == is_least else other

    def evaluate(self, bindings: Bindings) -> Value:
        left, right = self.left.evaluate(bindings), self.right.evaluate(bindings)
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right) if self.is_least else max(left, right)
        return np.minimum(left, right) if self.is_least else np.maximum(left, right)

    def __str__(self) -> str:
        return f"{'min' if self.is_least else 'max'}({self.left}, {self.right})"


minimum = partial(Extremum.make, is_least=True)
maximum = partial(Extremum.make, is_least=False)


_BITWISE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"&": and_, "|": or_, "^": xor}


@dataclass(frozen=True, slots=True)
class Bitwise(Composite):
    """The bits of two expressions, combined as those of numbers in two's complement."""

    left: Expr
    right: Expr
    operator: str

    text_needs_parentheses = True

    @staticmethod
    def make(left: Operand, right: Operand, operator: str) -> Expr:
        """Combine bits; those that a number selects are remainders."""
        one, two = Expr.of(left), Expr.of(right)
        if one.constant_value is not None:
            one, two = two, one
        value, number = one.constant_value, two.constant_value
        if value is not None and number is not None:
            return Expr.constant(_BITWISE[operator](value, number))
        common = None if number is None else _mask(one, number)
        if number is None or common is None:
            return Expr({(Bitwise(one, two, operator),): 1})
        if operator == "&":
            return common
        return one + number - (common if operator == "|" else 2 * common)

    def is_quasi_affine(self) -> bool:
        return False

    def evaluate(self, bindings: Bindings) -> Value:
        left, right = self.left.evaluate(bindings), self.right.evaluate(bindings)
        return cast("Value", _BITWISE[self.operator](left, right))

    def __str__(self) -> str:
        return f"{self.left.operand_text()} {self.operator} {self.right.operand_text()}"


bitwise = Bitwise.make


def _mask(expr: Expr, number: int) -> Expr | None:
    """Give the bits of an expression that a number selects, by its runs of ones."""
    if number < 0:
        rest = _mask(expr, ~number)
        return None if rest is None else expr - rest
    total = Expr.constant(0)
    # Each run of ones adds a remainder: a mask of more is given up.
    for _ in range(4):
        if not number:
            return total
        low = number & -number
        high = (number + low) & ~number
        total = total + low * floor_mod(floor_div(expr, low), high // low)
        number &= ~(high - 1)
    return None if number else total


@dataclass(frozen=True, slots=True)
class Select(Composite):
    """One of two expressions, by a condition: C's ``condition ? then : otherwise``."""

    condition: Condition
    """What decides. Where it depends on data, the value cannot be evaluated."""
    then: Expr
    otherwise: Expr

    @staticmethod
    def make(condition: Condition, then: Operand, otherwise: Operand) -> Expr:
        one, other = Expr.of(then), Expr.of(otherwise)
        if condition == TRUE or one == other:
            return one
        if isinstance(condition, Comparison) and condition.relation is Relation.NOT_NEGATIVE:
            # ``a < b ? a : b`` and its like; which of two equal ones is taken does not matter.
            if (condition.expr - (other - one)).constant_value in (0, -1):
                return minimum(one, other)
            if (condition.expr - (one - other)).constant_value in (0, -1):
                return maximum(one, other)
        return other if condition == FALSE else Expr({(Select(condition, one, other),): 1})

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
            self.then.evaluate_where(chosen, bindings),
            self.otherwise.evaluate_where(~chosen, bindings),
        )

    def __str__(self) -> str:
        return f"({self.then} if {self.condition} else {self.otherwise})"


select = Select.make


@dataclass(frozen=True, slots=True)
class Geometric(Composite):
    """A value multiplied, or divided towards zero, by a number at each iteration of a loop."""

    start: Expr
    factor: int
    iteration: Expr
    """How often: usually a loop's symbol."""
    is_division: bool

    @staticmethod
    def make(start: Operand, factor: int, iteration: Operand, is_division: bool) -> Expr:
        """Multiply a start by a factor at each iteration of a loop, or divide it as C does."""
        value, times = Expr.of(start), Expr.of(iteration)
        number = times.constant_value
        if is_division and not factor:
            raise InputError(f"({value}) is divided by zero each iteration; give another factor")
        if number is not None and number < 0:
            msg = f"iteration {number} of ({value}) is asked for; iterations count from 0"
            raise InputError(msg)
        if factor == 1 or value.is_zero:
            return value
        if number is not None and number <= _count_powers(factor):
            power = factor**number
            return trunc_div(value, power) if is_division else value * power
        return Expr({(Geometric(value, factor, times, is_division),): 1})

    @property
    def text_needs_parentheses(self) -> bool:  # type: ignore[override] # a class's constant above
        return not self.is_division and self.start != Expr.constant(1)

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


geometric = Geometric.make


def _count_powers(factor: int) -> int:
    """Give the largest exponent whose power fits 64 bits."""
    if abs(factor) < 2:
        return 2**32
    return next(one for one in count() if abs(factor) ** (one + 1) >= 2**63)
