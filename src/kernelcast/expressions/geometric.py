"""Values that a loop multiplies or divides each time: strides of reductions, blocks of sorts."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from kernelcast.expressions.divisions import trunc_div
from kernelcast.expressions.evaluation import (
    Bindings,
    EvaluationError,
    Value,
    divide_trunc,
)
from kernelcast.expressions.polynomials import (
    Composite,
    Expr,
    Operand,
)
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True)
class Geometric(Composite):
    """A value multiplied, or divided towards zero, by a number at each iteration of a loop."""

    start: Expr
    """The value at iteration 0."""
    factor: int
    """By what it is multiplied or divided each time."""
    is_division: bool
    """Whether it is divided."""
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
            msg = f"{self}: an iteration is below 0; iterations count from 0"
            raise EvaluationError(msg)
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
        msg = f"({value}) is divided by zero each iteration; give another factor"
        raise InputError(msg)
    if count is not None and count < 0:
        msg = f"iteration {count} of ({value}) is asked for; iterations count from 0"
        raise InputError(msg)
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
