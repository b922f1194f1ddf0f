"""How often loops run, and what their numbers are at the start of each iteration."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from functools import reduce
from typing import Final

from kernelcast.expressions import (
    FALSE,
    And,
    Comparison,
    Condition,
    Division,
    Expr,
    Geometric,
    Relation,
    Symbol,
    disjunction,
    equal,
    floor_div,
    geometric,
    less,
    maximum,
    minimum,
    select,
)
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.features.ir.values import (
    Leaf,
    Opaque,
    as_number,
    blur,
    is_non_negative,
    put_in,
    range_of,
    sources_of,
)

_MOST_TRIED = 4096
_ONE = Expr.constant(1)


def describe_test(facts: LoopFacts) -> LoopFacts:
    """Describe how often a loop's test runs: once more than its body."""
    symbol, total = facts.symbol, None if facts.trip_count is None else facts.trip_count + 1
    if facts.is_exact and total is not None:
        return replace(facts, condition=less(symbol, total), trip_count=total)
    earlier = facts.condition.substitute({symbol: Expr.symbol(symbol) - 1})
    condition = disjunction(equal(symbol, 0), earlier)
    return replace(facts, condition=condition, trip_count=total)


def count_iterations(
    condition: Condition, symbol: Symbol, limits: Mapping[str, int]
) -> tuple[Expr | None, bool]:
    """Count iterations that meet a condition, or bound them, and tell if it is the count."""
    if condition == FALSE:
        return Expr.constant(0), True
    if condition.is_exact and condition.symbols() == {symbol}:
        # Nothing but the iteration matters: the loop is run.
        linear = condition.expr.as_linear() if isinstance(condition, Comparison) else None
        tried: Iterable[int] = range(_MOST_TRIED)
        if linear is not None:
            # The answer changes where the sum passes zero: at most three places are in question.
            turn = max(0, -linear[1] // linear[0][symbol])
            tried = (0, turn, turn + 1)
        for number in tried:
            if number < _MOST_TRIED and not condition.evaluate({symbol: number}):
                return Expr.constant(number), True
    if isinstance(condition, Comparison):
        count = _count_comparison(condition, symbol) or _count_narrow(condition, symbol, limits)
        return count, count is not None
    if isinstance(condition, And):
        counts = [count_iterations(part, symbol, limits)[0] for part in condition.parts
                  if not part.is_exact or symbol in part.symbols()]  # fmt: skip
        known = [count for count in counts if count is not None]
        if not known:
            return None, False
        return reduce(minimum, known), len(known) == len(condition.parts) and condition.is_exact
    return None, False


def ends_for_good(condition: Condition, symbol: Symbol) -> bool:
    """Tell whether a condition on the iteration number stays false once it is false."""
    if isinstance(condition, And):
        return all(ends_for_good(part, symbol) for part in condition.parts)
    if symbol not in condition.symbols():
        return condition.is_exact
    if not isinstance(condition, Comparison) or condition.relation is not Relation.NOT_NEGATIVE:
        return False
    for monomial, factor in condition.expr.products:
        # Each product may only fall as the iterations go on.
        atom = next((one for one in monomial if symbol in one.symbols()), None)
        if atom is None or (factor < 0 and monomial == (symbol,)):
            continue
        if len(monomial) > 1 or not isinstance(atom, Geometric) or atom.factor < 1:
            return False
        steps = atom.iteration.split(symbol)
        is_known = is_non_negative(atom.start) or atom.start.is_parameter
        if not is_known or steps is None or steps[1] != _ONE or symbol in atom.start.symbols():
            return False
        if (factor > 0) != atom.is_division:
            return False
    return True


def _count_comparison(condition: Comparison, symbol: Symbol) -> Expr | None:
    """Solve `start - step * k >= 0` or `!= 0` for the number of iterations."""
    start, slope = condition.expr.split(symbol) or (None, None)
    if start is None or slope is None or slope.is_zero:
        return None
    is_upwards = _is_positive(-slope)
    if condition.relation is Relation.NOT_NEGATIVE:
        return maximum(floor_div(start, -slope) + 1, 0) if is_upwards else None
    if condition.relation is not Relation.NOT_ZERO or not (is_upwards or _is_positive(slope)):
        return None
    return floor_div(start, -slope) if is_upwards else floor_div(-start, slope)


def _count_narrow(condition: Comparison, symbol: Symbol, limits: Mapping[str, int]) -> Expr | None:
    """Count with a counter of 8 or 16 bits that comes to its end before it wraps around."""
    wrapped = [
        atom for monomial, _ in condition.expr.products for atom in monomial
        if isinstance(atom, Division) and atom.is_floor and atom.is_remainder
        and symbol in atom.symbols()
    ]  # fmt: skip
    if len(wrapped) != 1 or condition.relation is not Relation.NOT_NEGATIVE:
        return None
    size, value = wrapped[0].denominator.constant_value, wrapped[0].numerator
    plain = Expr.constant(0)
    for monomial, factor in condition.expr.products:
        plain = plain + factor * (value if monomial == (wrapped[0],) else Expr({monomial: 1}))
    count = _count_comparison(Comparison(plain, condition.relation), symbol)
    start, slope = value.split(symbol) or (None, None)
    if count is None or size is None or start is None or slope is None:
        return None
    most = range_of(value.substitute({symbol: count - 1}), limits)[1]
    is_upwards = _is_positive(slope) and is_non_negative(start, limits)
    return count if is_upwards and most < size else None


def _is_positive(expr: Expr) -> bool:
    constant = expr.constant_value
    if constant is not None:
        return constant > 0
    return all(factor > 0 for _, factor in expr.products) and expr.is_parameter


REASON: Final = "changes from iteration to iteration in a way that is not followed"


def solve_numbers(
    starts: Mapping[Symbol, Leaf], afters: Mapping[Symbol, Leaf], symbol: Symbol
) -> dict[Symbol, Leaf]:
    """Find numbers at the start of each iteration from what they are at first and after one."""
    found: dict[Symbol, Leaf] = {}
    solved: dict[Symbol, Expr] = {}
    for _ in range(len(starts) + 1):
        count = len(solved)
        for before, start in starts.items():
            if before in solved:
                continue
            after = as_number(put_in(afters[before], solved))
            number = _solve_number(start, before, after, symbol, starts.keys())
            if number is not None:
                found[before] = number
            if isinstance(number, Expr):
                solved[before] = number
        if len(solved) == count:
            break
    # What is not solved has the buffers that it depends on, by way of others too.
    sources = {
        one: sources_of(start, afters[one]) for one, start in starts.items() if one not in found
    }
    earlier: dict[Symbol, frozenset[str]] = {}
    while earlier != sources:
        earlier = dict(sources)
        for one in sources:
            after = afters[one]
            if isinstance(after, Expr):
                others = (sources[each] for each in after.symbols() & sources.keys())
                sources[one] = sources[one].union(*others)
    return found | {one: Opaque(own, "" if own else REASON) for one, own in sources.items()}


def _solve_number(
    start: Leaf, before: Symbol, after: Leaf, symbol: Symbol, befores: Set[Symbol]
) -> Leaf | None:
    if isinstance(after, Opaque):
        return None
    if isinstance(start, Expr):
        step = after - before
        if not befores.isdisjoint(step.symbols()):
            multiplied = _find_geometric(start, after, before, symbol)
            if multiplied is not None:
                return multiplied
        elif parts := step.split(symbol):
            (fixed, slope), number = parts, Expr.symbol(symbol)
            pairs = floor_div(number * number - number, 2)
            return start + fixed * symbol + slope * pairs
    if not befores.isdisjoint(after.symbols()):
        return None
    # Each iteration sets it anew.
    earlier = as_number(put_in(after, {symbol: Expr.symbol(symbol) - 1}))
    if isinstance(earlier, Opaque):
        return earlier
    if isinstance(start, Opaque) and not start.is_unset:
        return blur(start, reason=REASON)
    return select(equal(symbol, 0), 0 if isinstance(start, Opaque) else start, earlier)


def _find_geometric(start: Expr, after: Expr, before: Symbol, symbol: Symbol) -> Expr | None:
    """Give a number that is multiplied or divided each time."""
    split = after.split(before)
    if split is not None and split[0].is_zero:
        factor = split[1].constant_value
        if factor is None or abs(factor) >= 1 << 31:
            return None
        return geometric(start, factor, symbol, is_division=False)
    atom = after.sole_atom
    if (
        not isinstance(atom, Division) or atom.is_remainder
        or atom.numerator != Expr.symbol(before)
    ):  # fmt: skip
        return None
    divisor = atom.denominator.constant_value
    # A shift rounds down, a division towards zero: only numbers that are not negative agree.
    is_safe = not atom.is_floor or start.is_parameter or is_non_negative(start)
    if divisor is None or divisor <= 0 or not is_safe:
        return None
    return geometric(start, divisor, symbol, is_division=True)
