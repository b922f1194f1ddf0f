"""What values can be known as, operators of LLVM IR on them, and what loops make of them.

Sums of 32 and 64 bits are taken to stay within their type: a kernel whose indices overflow is wrong
anyway. A number without a sign stands for all that differ from it by a multiple of the type's
range: ``x - 1`` of zero is -1 here. Comparisons know that such a number is a large one, divisions
and remainders bring it into the range first where that may matter.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType
from typing import Final, TypeAlias

from kernelcast.expressions import (
    FALSE,
    And,
    Comparison,
    Condition,
    Division,
    Expr,
    Extremum,
    Geometric,
    Relation,
    Symbol,
    SymbolKind,
    Unknown,
    bitwise,
    conjunction,
    disjunction,
    equal,
    floor_div,
    floor_mod,
    geometric,
    less,
    maximum,
    minimum,
    not_equal,
    select,
)
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.intervals import Range, find_range
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is not known before the kernel runs."""

    sources: frozenset[str] = frozenset()
    """Buffers it was loaded from, if it was."""
    reason: str = ""
    """Why it is not known, if it was not loaded."""
    is_unset: bool = False
    """Whether nothing has been written there yet: reading it would be an error of the kernel's."""


@dataclass(frozen=True, slots=True)
class Memory:
    name: str
    space: MemorySpace
    variable: str = ""
    """What the code calls a variable of the program."""
    is_given: bool = False
    """Whether it holds what the host passes by value, or what a variable is set to at first: a
    compiler leaves no loads of it."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in a memory, by its offset in bytes."""

    memory: Memory
    offset: Expr | Opaque


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two places, by a condition: pointers into several buffers."""

    condition: Condition
    then: "Place"
    otherwise: "Place"


@dataclass(frozen=True, slots=True)
class Lanes:
    lanes: tuple["Value", ...]


Place: TypeAlias = Pointer | Choice
Leaf: TypeAlias = Expr | Opaque
Part: TypeAlias = Leaf | Condition
Value: TypeAlias = Part | Pointer | Choice | Lanes

# Made once: `Pointer | Choice` within a function is an object of its own at each call.
NUMBERS: Final = (Expr, Opaque)
PLACES: Final = (Pointer, Choice)

ZERO, ONE = Expr.constant(0), Expr.constant(1)
LARGEST: Final = 4000
DEEPEST: Final = 200
"""Symbols and operators beyond which an expression is given up, and how deep they may be nested:
where each step names the result of the one before twice, a hundred would be written with 2**100."""
_UINT_BITS: Final = 32
_MOST_TRIED: Final = 4096


def parts_of(*values: Value) -> Iterable[Part]:
    """Give the numbers and conditions that values consist of, in a fixed order."""
    for value in values:
        if isinstance(value, Lanes):
            yield from parts_of(*value.lanes)
        elif isinstance(value, Pointer):
            yield value.offset
        elif isinstance(value, Choice):
            yield from parts_of(value.condition, value.then, value.otherwise)
        else:
            yield value


def refill(value: Value, change: Callable[[Part], Value]) -> Value:
    if isinstance(value, Lanes):
        return Lanes(tuple(refill(lane, change) for lane in value.lanes))
    if isinstance(value, Pointer):
        return Pointer(value.memory, as_number(change(value.offset)))
    if isinstance(value, Choice):
        condition = as_condition(change(value.condition))
        return merge(condition, refill(value.then, change), refill(value.otherwise, change))
    return change(value)


def exchange(value: Value, parts: Iterable[Part]) -> Value:
    """Give a value of the same shape that consists of other parts."""
    others = iter(parts)
    return refill(value, lambda _: next(others))


def by_lanes(function: Callable[..., Value], *values: Value) -> Value:
    counts = {len(each.lanes) for each in values if isinstance(each, Lanes)}
    if not counts:
        return function(*values)
    if len(counts) > 1:
        return blur(*values)
    return Lanes(tuple(
        function(*(each.lanes[at] if isinstance(each, Lanes) else each for each in values))
        for at in range(counts.pop())
    ))  # fmt: skip


def sources_of(*values: Value) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for part in parts_of(*values):
        if isinstance(part, Opaque):
            found = found | part.sources if found else part.sources
        elif isinstance(part, Unknown):
            found |= frozenset(part.sources)
        elif isinstance(part, Condition):
            found |= sources_of(*getattr(part, "parts", ()))
    return found


def blur(*values: Value, reason: str = "") -> Opaque:
    """Give what is left of values that were combined in a way that is not followed."""
    if len(values) == 1 and not reason:
        [value] = values
        if isinstance(value, Opaque) and not (value.is_unset or (value.sources and value.reason)):
            return value
    sources = sources_of(*values)
    if sources or reason:
        return Opaque(sources, "" if sources else reason)
    reasons = (part.reason for part in parts_of(*values) if isinstance(part, Opaque))
    return Opaque(sources, next(filter(None, reasons), ""))


def as_number(value: Value) -> Leaf:
    """Take a value as a whole number; a truth value is 0 or 1."""
    if isinstance(value, NUMBERS):
        return value
    if isinstance(value, Condition):
        return select(value, ONE, ZERO) if value.is_exact else blur(value)
    return blur(value, reason="a vector or a pointer is used as a number")


def as_condition(value: Value) -> Condition:
    if isinstance(value, Condition):
        return value
    if isinstance(value, Expr):
        return not_equal(value, 0)
    return Unknown(tuple(sorted(sources_of(value))))


def places_of(value: Value) -> Iterable[tuple[tuple[Condition, ...], Value]]:
    """Give the places that a pointer may be, each with the conditions for it."""
    if not isinstance(value, Choice):
        yield (), value
        return
    for condition, side in (
        (value.condition, value.then),
        (value.condition.negated(), value.otherwise),
    ):
        for conditions, place in places_of(side):
            yield (condition, *conditions), place


def merge(condition: Condition, then: Value, otherwise: Value) -> Value:
    """Give the value of a variable after the two sides of a branch."""
    if then is otherwise or then == otherwise:
        return then
    # Whoever reads what one side did not set relies on having passed the other.
    if isinstance(then, Opaque) and then.is_unset:
        return otherwise
    if isinstance(otherwise, Opaque) and otherwise.is_unset:
        return then
    if isinstance(then, PLACES) and isinstance(otherwise, PLACES):
        if (isinstance(then, Pointer) and isinstance(otherwise, Pointer)
                and then.memory == otherwise.memory):  # fmt: skip
            offset = merge(condition, then.offset, otherwise.offset)
            return Pointer(then.memory, as_number(offset))
        chosen = Choice(condition, then, otherwise)
        are_many = sum(1 for _ in places_of(chosen)) > 4
        return blur(chosen, reason="the pointer is one of many") if are_many else chosen
    for place, other in ((then, otherwise), (otherwise, then)):
        if isinstance(place, PLACES):
            is_null = isinstance(other, Expr) and other.is_zero
            return place if is_null else blur(condition, place, other,
                                              reason="one of several pointers")  # fmt: skip
    if isinstance(then, Lanes) and isinstance(otherwise, Lanes):
        return by_lanes(lambda one, two: merge(condition, one, two), then, otherwise)
    one, two = as_number(then), as_number(otherwise)
    if isinstance(one, Expr) and isinstance(two, Expr) and condition.is_exact:
        return select(condition, one, two)
    return blur(condition, then, otherwise)


def bound_size(part: Part) -> Part:
    """Give up a number or a condition that is too large, or nested too deeply, to be written."""
    size, depth = (0, 0) if isinstance(part, Opaque) else part.extent
    # A condition that is known in part only bounds: what it says in so many words narrows nothing.
    is_partial = size > DEEPEST and isinstance(part, Condition) and not part.is_exact
    if size <= LARGEST and depth <= DEEPEST and not is_partial:
        return part
    if isinstance(part, Condition):
        return Unknown(tuple(sorted(sources_of(part))))
    if size > LARGEST:
        return Opaque(reason=f"an expression of more than {LARGEST:,} symbols and operators")
    return Opaque(reason=f"an expression that is nested more than {DEEPEST} deep")


def put_in(part: Part, replacements: dict[Symbol, Expr]) -> Part:
    """Put expressions in the place of symbols; what then divides by zero is not known."""
    try:
        return part if isinstance(part, Opaque) else part.substitute(replacements)
    except InputError:
        return Opaque(reason="a division by zero")


def range_of(expr: Expr, unsigned: Mapping[str, int] = MappingProxyType({})) -> Range:
    """Bound an expression by the greatest values of scalars and contents that have no sign."""

    def bound(symbol: Symbol) -> Range | None:
        if symbol.kind not in (SymbolKind.SCALAR, SymbolKind.CONTENT):
            return 0, math.inf
        return (0, unsigned[symbol.name]) if symbol.name in unsigned else None

    return find_range(expr, bound)


def is_non_negative(expr: Expr, unsigned: Mapping[str, int] = MappingProxyType({})) -> bool:
    return range_of(expr, unsigned)[0] >= 0


class Arithmetic:
    def __init__(self, unsigned: Mapping[str, int]) -> None:
        self._unsigned = unsigned

    def combine(
        self, opcode: str, one: Expr, two: Expr, bits: int, *, is_signed: bool
    ) -> Expr | None:
        result = self._calculate(opcode, one, two, bits, is_signed=is_signed)
        if result is None or is_signed or result.constant_value is not None:
            return result
        largest = max(abs(factor) for _, factor in result.products)
        # Products of indices with factors so large are taken to wrap: hashes, random numbers.
        if bits == _UINT_BITS and largest >= 1 << 16:
            return floor_mod(result, 1 << _UINT_BITS)
        return None if largest >= 1 << 40 else result

    def _is_natural(self, expr: Expr) -> bool:
        """Tell whether an expression is taken not to be negative, as sizes and arguments are."""
        return expr.is_parameter or is_non_negative(expr, self._unsigned)

    def _calculate(
        self, opcode: str, one: Expr, two: Expr, bits: int, *, is_signed: bool
    ) -> Expr | None:
        if opcode == "add":
            return one + two
        if opcode == "sub":
            return one - two
        if opcode == "mul":
            return one * two if one.extent[0] * two.extent[0] <= LARGEST else None
        if opcode in ("and", "or", "xor"):
            # Where no bits overlap, as in ``(x << 4) | (y & 15)``, they are added up.
            for high, low in ((one, two), (two, one)):
                least, most = range_of(low)
                width = 0 if math.isinf(most) else 1 << int(most).bit_length()
                if least >= 0 and width and all(each % width == 0 for _, each in high.products):
                    return ZERO if opcode == "and" else high + low
            return bitwise(one, two, {"and": "&", "or": "|", "xor": "^"}[opcode])
        if opcode in ("min", "max"):
            sides = (one, two) if opcode == "min" else (two, one)
            if is_signed or all(map(self._is_natural, sides)):
                return Extremum.make(one, two, is_least=opcode == "min")
            return select(self.compare("ult", one, two, bits), *sides)
        if opcode not in ("shl", "lshr", "ashr"):
            return self._divide(opcode, one, two, bits)
        places = two.constant_value
        if places is None:
            is_safe = opcode != "ashr" or self._is_natural(one)
            return geometric(one, 2, two, is_division=opcode != "shl") if is_safe else None
        if not 0 <= places <= 62:
            return None
        power = Expr.constant(1 << places)
        return one * power if opcode == "shl" else self._divide("udiv", one, power, bits)

    def _divide(self, opcode: str, one: Expr, two: Expr, bits: int) -> Expr | None:
        if two.is_zero:
            return None
        atom, divisor = one.sole_atom, two.constant_value or 0
        is_quotient = opcode in ("sdiv", "udiv")
        if is_quotient and isinstance(atom, Geometric) and atom.is_division and (
            atom.factor == divisor
        ):  # what a loop divides each time is divided by the same number once more  # fmt: skip
            return geometric(atom.start, divisor, atom.iteration + 1, is_division=True)
        is_floor = opcode in ("udiv", "urem") or is_non_negative(one, self._unsigned)
        is_power = divisor > 0 and not divisor & (divisor - 1)
        if opcode == "urem" and not (is_power or bits != _UINT_BITS or self._is_natural(one)):
            one = floor_mod(one, 1 << bits)
        return Division.make(one, two, is_floor, not is_quotient)

    def compare(self, predicate: str, one: Expr, two: Expr, bits: int) -> Condition:
        if predicate in ("eq", "ne"):
            return equal(one, two) if predicate == "eq" else not_equal(one, two)
        relation = predicate[1:]
        if relation in ("le", "ge"):
            opposite = predicate[0] + {"le": "gt", "ge": "lt"}[relation]
            return self.compare(opposite, one, two, bits).negated()
        if relation == "gt":
            one, two = two, one
        if predicate[0] == "s":
            return less(one, two)
        # Without a sign sizes and arguments are taken not to be negative; a negative number is
        # a large one.
        one, two = (
            each + (1 << bits) if (each.constant_value or 0) < 0 else each for each in (one, two)
        )
        one_negative, two_negative = (
            # The distance of two numbers of a buffer is the length of a row: row pointers ascend.
            # Where a constant is taken off, a test of a range may be meant, as `c - 97u < 26u`,
            # which lives on negative numbers.
            FALSE if self._is_natural(each)
            or (
                each.constant_term == 0
                and all(symbol.kind is SymbolKind.CONTENT for symbol in each.symbols())
            )
            else less(each, 0)
            for each in (one, two)
        )  # fmt: skip
        found = less(one, two)
        return disjunction(
            conjunction(one_negative.negated(), disjunction(two_negative, found)),
            conjunction(one_negative, two_negative, found),
        )

    def widen(self, number: Expr, bits: int, *, is_signed: bool) -> Expr:
        """Extend a number; wider ones than 16 bits are taken to fit."""
        value = number.constant_value
        if value is not None:
            return Expr.constant(value if is_signed else value % (1 << bits))
        if bits > 16:
            return number
        size = 1 << bits
        start = -(size // 2) if is_signed else 0
        low, high = range_of(number, self._unsigned)
        if getattr(number.sole_atom, "kind", None) is SymbolKind.LOCAL_ID:
            low, high = 0, (1 << 15) - 1
        if start <= low and high < start + size:
            return number
        return floor_mod(number - start, size) + start


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
        if not is_known or steps is None or steps[1] != ONE or symbol in atom.start.symbols():
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
