"""What a value of the code can be known as, and the numbers within it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from kernelcast.expressions import (
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    Unknown,
    not_equal,
    select,
)
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


class Role(StrEnum):
    """What a memory is to the kernel."""

    SHARED = "shared"
    """A buffer, or an array that other work-items see."""
    OWN = "own"
    """An array or a structure of the work-item's own."""
    ARGUMENT = "argument"
    """A structure that the host passes by value."""
    INITIAL = "initial"
    """What variables of a function are set to at first."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer, an array, or a structure."""

    name: str
    space: MemorySpace
    role: Role = Role.SHARED


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in a memory: its offset in bytes is a number or not known."""

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
    """A vector."""

    lanes: tuple["Value", ...]


Place: TypeAlias = Pointer | Choice
Leaf: TypeAlias = Expr | Opaque
Value: TypeAlias = Expr | Pointer | Choice | Lanes | Condition | Opaque

# Made once: `Pointer | Choice` within a function is an object of its own at each call.
NUMBERS: Final = (Expr, Opaque)
PLACES: Final = (Pointer, Choice)

ZERO, ONE = Expr.constant(0), Expr.constant(1)
_NO_SOURCES: frozenset[str] = frozenset()
_BEFORE = "before "
LARGEST: Final = 4000
DEEPEST: Final = 200
"""Symbols and operators beyond which an expression is given up, and how deep they may be nested:
where each step names the result of the one before twice, a hundred would be written with 2**100."""
_TOO_LARGE: Final = f"an expression of more than {LARGEST:,} symbols and operators"
_TOO_DEEP: Final = f"an expression that is nested more than {DEEPEST} deep"


def parts_of(value: Value) -> Iterable[Value]:
    """Give the values that a value consists of; none for numbers."""
    if isinstance(value, Lanes):
        return value.lanes
    if isinstance(value, Pointer):
        return (value.offset,)
    if isinstance(value, Choice):
        return value.condition, value.then, value.otherwise
    return ()


def sources_of(*values: Value) -> frozenset[str]:
    """Give the buffers that values depend on."""
    found = _NO_SOURCES
    for value in values:
        if isinstance(value, Expr):
            continue
        if isinstance(value, Opaque):
            found = found | value.sources if found else value.sources
        elif isinstance(value, Condition):
            found |= frozenset(_condition_sources(value))
        else:
            found |= sources_of(*parts_of(value))
    return found


def stand_in_for(name: str, at: int) -> Symbol:
    """Give a symbol for a number of a value as it was before an iteration."""
    return Symbol(SymbolKind.SCALAR, f"{_BEFORE}{name}.{at}")


def is_stand_in(symbol: Symbol) -> bool:
    """Tell whether a symbol only stands in for a number that is not solved yet."""
    return symbol.kind is SymbolKind.SCALAR and symbol.name.startswith(_BEFORE)


def reason_of(*values: Value) -> str:
    """Give the first reason why one of the values is not known."""
    for value in values:
        reason = value.reason if isinstance(value, Opaque) else reason_of(*parts_of(value))
        if reason:
            return reason
    return ""


def blur(*values: Value, reason: str = "") -> Opaque:
    """Give what is left of values that were combined in a way that is not followed."""
    if len(values) == 1 and not reason:
        [value] = values
        if isinstance(value, Opaque) and not (value.is_unset or (value.sources and value.reason)):
            return value
    sources = sources_of(*values)
    return Opaque(sources, "" if sources else reason or reason_of(*values))


def as_number(value: Value) -> Expr | Opaque:
    """Take a value as a whole number; a truth value is 0 or 1."""
    if isinstance(value, NUMBERS):
        return value
    if isinstance(value, Condition):
        return select(value, ONE, ZERO) if value.is_exact else blur(value)
    return blur(value, reason="a vector or a pointer is used as a number")


def as_condition(value: Value) -> Condition:
    """Take a value as true or false."""
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


def map_place(value: Place, change: Callable[[Pointer], Value]) -> Value:
    """Apply a change to each of the places that a pointer may be."""
    if isinstance(value, Pointer):
        return change(value)
    return merge(value.condition, map_place(value.then, change), map_place(value.otherwise, change))


def merge(condition: Condition, then: Value, otherwise: Value) -> Value:
    """Give the value of a variable after the two sides of a branch."""
    if then is otherwise or then == otherwise:
        return then
    # Whoever reads what one side did not set relies on having passed the other.
    if isinstance(then, Opaque) and then.is_unset:
        return otherwise
    if isinstance(otherwise, Opaque) and otherwise.is_unset:
        return then
    if isinstance(then, PLACES) or isinstance(otherwise, PLACES):
        if not (isinstance(then, PLACES) and isinstance(otherwise, PLACES)):
            place, number = (then, otherwise) if isinstance(then, PLACES) else (otherwise, then)
            if isinstance(number, Expr) and number.is_zero:
                return place  # the other is no pointer
            return blur(condition, place, number, reason="one of several pointers")
        if isinstance(then, Pointer) and isinstance(otherwise, Pointer):  # noqa: SIM102 - narrows types
            if then.memory == otherwise.memory:
                return Pointer(
                    then.memory, as_number(merge(condition, then.offset, otherwise.offset))
                )
        chosen = Choice(condition, then, otherwise)
        if sum(1 for _ in places_of(chosen)) > 4:
            return blur(chosen, reason="the pointer is one of many")
        return chosen
    if isinstance(then, Lanes) and isinstance(otherwise, Lanes):
        if len(then.lanes) == len(otherwise.lanes):
            pairs = zip(then.lanes, otherwise.lanes, strict=True)
            return Lanes(tuple(merge(condition, one, two) for one, two in pairs))
        return blur(then, otherwise)
    one, two = as_number(then), as_number(otherwise)
    if isinstance(one, Expr) and isinstance(two, Expr) and condition.is_exact:
        return select(condition, one, two)
    return blur(condition, then, otherwise)


def split(value: Value) -> Iterator[Leaf]:
    """Give the numbers in a value, in a fixed order."""
    if isinstance(value, Lanes):
        for lane in value.lanes:
            yield from split(lane)
    elif isinstance(value, Pointer):
        yield value.offset
    else:
        yield as_number(value)


def rebuild(value: Value, leaves: Iterator[Leaf]) -> Value:
    """Give a value of the same shape with other numbers."""
    if isinstance(value, Lanes):
        return Lanes(tuple(rebuild(lane, leaves) for lane in value.lanes))
    if isinstance(value, Pointer):
        return Pointer(value.memory, next(leaves))
    return next(leaves)


def has_same_shape(one: Value, two: Value) -> bool:
    """Tell whether two values consist of the same parts; any number is like any other."""
    if isinstance(one, Lanes) and isinstance(two, Lanes):
        pairs = zip(one.lanes, two.lanes, strict=False)
        return len(one.lanes) == len(two.lanes) and all(has_same_shape(*pair) for pair in pairs)
    if isinstance(one, Pointer) and isinstance(two, Pointer):
        return one.memory == two.memory
    numbers = (Expr, Opaque, Condition)
    return isinstance(one, numbers) and isinstance(two, numbers)


def change_numbers(value: Value, change: Callable[[Expr], Leaf]) -> Value:
    """Apply a change to each number and condition in a value."""
    if isinstance(value, Expr):
        return change(value)
    if isinstance(value, Condition):
        number = as_number(value)
        return change(number) if isinstance(number, Expr) else value
    if isinstance(value, Opaque):
        return value
    if isinstance(value, Choice):
        return blur(value)
    return rebuild(value, (one if isinstance(one, Opaque) else change(one) for one in split(value)))


def bound_size(value: Value) -> Value:
    """Give up a value that is too large, or nested too deeply, to be written."""
    if isinstance(value, Expr | Condition):
        size, depth = value.extent
        if size <= LARGEST and depth <= DEEPEST:
            return value
        if isinstance(value, Condition):
            return Unknown(tuple(sorted(sources_of(value))))
        return Opaque(reason=_TOO_LARGE if size > LARGEST else _TOO_DEEP)
    if isinstance(value, Lanes):
        return Lanes(tuple(bound_size(lane) for lane in value.lanes))
    if isinstance(value, Pointer):
        return Pointer(value.memory, as_number(bound_size(value.offset)))
    if isinstance(value, Choice):
        condition, then, otherwise = (bound_size(part) for part in parts_of(value))
        return merge(as_condition(condition), then, otherwise)
    return value


def put_in(expr: Expr, replacements: dict[Symbol, Expr]) -> Leaf:
    """Put expressions in the place of symbols; what then divides by zero is not known."""
    try:
        return expr.substitute(replacements)
    except InputError:
        return Opaque(reason="a division by zero")


def _condition_sources(condition: Condition) -> Iterable[str]:
    if isinstance(condition, Unknown):
        return condition.sources
    parts = getattr(condition, "parts", ())
    return (name for part in parts for name in _condition_sources(part))


def range_of(expr: Expr, unsigned: Mapping[str, int] = MappingProxyType({})) -> Range:
    """Bound an expression by the greatest values of scalars and contents that have no sign."""

    def bound(symbol: Symbol) -> Range | None:
        if symbol.kind not in (SymbolKind.SCALAR, SymbolKind.CONTENT):
            return 0, math.inf
        return (0, unsigned[symbol.name]) if symbol.name in unsigned else None

    return find_range(expr, bound)


def is_non_negative(expr: Expr, unsigned: Mapping[str, int] = MappingProxyType({})) -> bool:
    """Tell whether an expression is known not to be negative."""
    return range_of(expr, unsigned)[0] >= 0
