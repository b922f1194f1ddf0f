"""Python that says between which values expressions lie: written once, run for each launch.

It computes what `kernelcast.expressions.intervals` does, without a look at any expression. Symbols
are taken as never negative: ids and sizes are not, and who runs the code sees to it of scalars.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kernelcast.expressions.choices import Maximum, Minimum, Select
from kernelcast.expressions.comparisons import Comparison, Relation
from kernelcast.expressions.conditions import Always, Condition
from kernelcast.expressions.divisions import Division
from kernelcast.expressions.evaluation import EvaluationError
from kernelcast.expressions.intervals import divide_intervals
from kernelcast.expressions.junctions import And, Or
from kernelcast.expressions.polynomials import Composite, Expr, Monomial
from kernelcast.expressions.symbols import Symbol, SymbolKind


class Bound(NamedTuple):
    """Python that gives the least and the greatest value of an expression.

    Parameters
    ----------
    low, high : str
        The same text where there is one value.
    is_natural : bool
        Whether it is never negative.
    """

    low: str
    high: str
    is_natural: bool = True


@dataclass(slots=True, kw_only=True)
class IntervalCode:
    """The lines of a function that are written so far.

    Parameters
    ----------
    known : dict
        What symbols and expressions are called already.
    lines : list of str
        The lines, shared with those of inner blocks.
    scope : dict
        What the lines name besides, shared too.
    depth : int
        How deep they stand.
    values : dict
        What the values of symbols, expressions and conditions are called for all work-items.
    """

    known: dict[Symbol | Composite | Expr, Bound]
    lines: list[str] = field(default_factory=list)
    scope: dict[str, Any] = field(default_factory=dict)
    depth: int = 1
    values: dict[Symbol | Expr | Condition, str] = field(default_factory=dict)

    def write(self, line: str) -> None:
        """Add a line."""
        self.lines.append(" " * self.depth + line)

    def open_block(self, head: str) -> "IntervalCode":
        """Begin a block; what is named in it is known nowhere else."""
        self.write(f"{head}:")
        return replace(self, known=dict(self.known), values=dict(self.values), depth=self.depth + 1)

    def open_loop(self, name: str, trip_count: Expr | None) -> "IntervalCode":
        """Begin what is done if a loop runs at all.

        Raises
        ------
        EvaluationError
            If nobody knows how often it runs.
        """
        if trip_count is None:
            msg = f"loop {name}: nobody knows how often it runs"
            raise EvaluationError(msg)
        most = self.bound(trip_count).high
        inner = self.open_block(f"if {most} > 0")
        iteration = inner._name(Bound("0", f"{most} - 1"))
        inner.known[Symbol(SymbolKind.LOOP, name)] = iteration
        return inner

    def make(self, name: str, parameters: str) -> Callable[..., Any]:
        """Make the function."""
        scope = {
            **self.scope, "multiply": _multiply, "divide": divide_intervals, "nan": math.nan,
        }  # fmt: skip
        text = "\n".join([f"def {name}({parameters}):", *self.lines])
        exec(compile(text, f"<{name}>", "exec"), scope)
        made: Callable[..., Any] = scope[name]
        return made

    def bound(self, expr: Expr) -> Bound:
        """Name the bounds of an expression.

        Raises
        ------
        EvaluationError
            If nothing is known of a symbol.
        """
        return self._look_up(expr, lambda: self._add(expr))

    def evaluate(self, expr: Expr) -> str:
        """Name the values of an expression for all work-items: one number where all have it.

        Raises
        ------
        EvaluationError
            If a symbol has several values, and nobody knows which work-item has which.
        """
        low, high, _ = self.bound(expr)
        if low == high:
            return low
        return self._tell_all(expr, low, f"{low} != {high}")

    def evaluate_condition(self, condition: Condition) -> str:
        """Name whether a condition holds for each work-item; see `evaluate`."""
        holds, fails = self.decide(condition)
        return self._tell_all(condition, holds, f"not ({holds} or {fails})")

    def _tell_all(self, what: Expr | Condition, plain: str, differs: str) -> str:
        found = self.values.get(what)
        if found is None:
            given = ", ".join(
                f"{self.hold(one)}: {self._name_value(one)}" for one in what.symbols()
            )
            found = self.values[what] = f"a{len(self.lines)}"
            self.write(f"{found} = {plain}")
            self.write(f"if {differs}: {found} = {self.hold(what)}.evaluate({{{given}}})")
        return found

    def hold(self, thing: object) -> str:
        """Name an object that lines use."""
        name = f"o{len(self.scope)}"
        self.scope[name] = thing
        return name

    def _name_value(self, symbol: Symbol) -> str:
        low, high, _ = self._bound_atom(symbol)
        found = self.values.get(symbol, low if low == high else None)
        if found is None:
            msg = f"{symbol}: nobody knows which work-item has which value"
            raise EvaluationError(msg)
        return found

    def decide(self, condition: Condition) -> tuple[str, str]:
        """Give Python that tells whether a condition holds everywhere, and whether nowhere.

        Raises
        ------
        EvaluationError
            If nothing is known of a symbol.
        """
        if isinstance(condition, Always):
            return str(condition.holds), str(not condition.holds)
        if isinstance(condition, And | Or):
            found = [self.decide(one) for one in condition.parts]
            words = (" and ", " or ") if isinstance(condition, And) else (" or ", " and ")
            holds, fails = (
                word.join(f"({one[place]})" for one in found) for place, word in enumerate(words)
            )
            return holds, fails
        if not isinstance(condition, Comparison):
            return "False", "False"
        low, high, _ = self.bound(condition.expr)
        if condition.relation is Relation.NOT_NEGATIVE:
            return f"{low} >= 0", f"{high} < 0"
        is_zero, is_other = f"{low} == 0 == {high}", f"{low} > 0 or {high} < 0"
        return (is_zero, is_other) if condition.relation is Relation.ZERO else (is_other, is_zero)

    def _look_up(self, what: Symbol | Composite | Expr, find: Callable[[], Bound]) -> Bound:
        found = self.known.get(what)
        if found is None:
            found = self.known[what] = self._name(find())
        return found

    def _name(self, one: Bound) -> Bound:
        """Give values a name, unless they are as short as one."""
        low, high, is_natural = one
        names = f"l{len(self.lines)}", f"h{len(self.lines)}"
        if low == high:
            if low.isidentifier() or low.isdigit():
                return one
            self.write(f"{names[0]} = {low}")
            return Bound(names[0], names[0], is_natural)
        self.write(f"{names[0]} = {low}; {names[1]} = {high}")
        return Bound(*names, is_natural)

    def _add(self, expr: Expr) -> Bound:
        lows, highs, is_natural = [], [], True
        for monomial, factor in expr.products:
            low, high, natural = self._multiply(monomial)
            if factor < 0:
                low, high = high, low
            lows.append(f"{factor}*{low}" if monomial else f"{factor}")
            highs.append(f"{factor}*{high}" if monomial else f"{factor}")
            is_natural &= natural and factor > 0
        return Bound(" + ".join(lows) or "0", " + ".join(highs) or "0", is_natural)

    def _multiply(self, monomial: Monomial) -> Bound:
        factors = [self._bound_atom(one) for one in monomial]
        are_natural = all(one.is_natural for one in factors)
        if are_natural or all(one.low == one.high for one in factors):
            low = "*".join(one.low for one in factors)
            high = "*".join(one.high for one in factors)
            return Bound(low or "1", high or "1", are_natural)
        found = factors[0]
        for one in factors[1:]:
            ends = f"multiply({found.low}, {found.high}, {one.low}, {one.high})"
            found = self._take_both(ends, is_natural=False)
        return found

    def _bound_atom(self, atom: Symbol | Composite) -> Bound:
        return self._look_up(atom, lambda: self._find_atom(atom))

    def _find_atom(self, atom: Symbol | Composite) -> Bound:
        if isinstance(atom, Division):
            return self._divide(atom)
        if isinstance(atom, Minimum | Maximum):
            left, right = self.bound(atom.left), self.bound(atom.right)
            word = "min" if isinstance(atom, Minimum) else "max"
            one_suffices = isinstance(atom, Maximum)
            is_natural = (any if one_suffices else all)([left.is_natural, right.is_natural])
            low, high = f"{word}({left.low}, {right.low})", f"{word}({left.high}, {right.high})"
            return Bound(low, high, is_natural)
        if isinstance(atom, Select):
            left, right = self.bound(atom.then), self.bound(atom.otherwise)
            is_natural = left.is_natural and right.is_natural
            low, high = f"min({left.low}, {right.low})", f"max({left.high}, {right.high})"
            return Bound(low, high, is_natural)
        msg = f"{atom}: nothing is known of its values"
        raise EvaluationError(msg)

    def _divide(self, one: Division) -> Bound:
        top, bottom = self.bound(one.numerator), self.bound(one.denominator)
        is_natural = top.is_natural and bottom.is_natural
        if is_natural and bottom.low == bottom.high:
            # Nothing is rounded below zero; a divisor of 0 raises what is asked for as well.
            if not one.is_remainder:
                return Bound(f"{top.low}//{bottom.low}", f"{top.high}//{bottom.low}")
            if top.low == top.high:
                return Bound(f"{top.low}%{bottom.low}", f"{top.low}%{bottom.low}")
        ends = f"({top.low}, {top.high}), ({bottom.low}, {bottom.high})"
        call = f"divide({ends}, is_floor={one.is_floor}, is_remainder={one.is_remainder})"
        return self._take_both(call, is_natural=is_natural)

    def _take_both(self, call: str, *, is_natural: bool) -> Bound:
        place = len(self.lines)
        self.write(f"l{place}, h{place} = {call}")
        return Bound(f"l{place}", f"h{place}", is_natural)


def _multiply(low: int, high: int, least: int, most: int) -> tuple[int, int]:
    corners = (low * least, low * most, high * least, high * most)
    return min(corners), max(corners)
