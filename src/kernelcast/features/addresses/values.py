"""What an expression's value can be known as."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from kernelcast.records.conditions import Condition, Unknown, not_equal
from kernelcast.records.operations import MemorySpace
from kernelcast.records.quasi_affine import Expr, select


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is not known before the kernel runs.

    Parameters
    ----------
    sources : frozenset of str
        Buffers it was loaded from, if it was.
    reason : str
        Why it is not known, if it was not loaded.
    """

    sources: frozenset[str] = frozenset()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer, an array, or a variable whose address was taken."""

    name: str
    space: MemorySpace
    variable: int = 0
    """Declaration of a private variable; 0 for all else."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in a memory: its offset in bytes is a number or not known."""

    memory: Memory
    offset: Expr | Opaque


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vector."""

    lanes: tuple["Value", ...]


Value: TypeAlias = Expr | Pointer | Lanes | Condition | Opaque

ZERO, ONE = Expr.constant(0), Expr.constant(1)


def sources_of(*values: Value) -> frozenset[str]:
    """Give the buffers that values depend on."""
    found: frozenset[str] = frozenset()
    for value in values:
        if isinstance(value, Opaque):
            found |= value.sources
        elif isinstance(value, Lanes):
            found |= sources_of(*value.lanes)
        elif isinstance(value, Pointer) and isinstance(value.offset, Opaque):
            found |= value.offset.sources
        elif isinstance(value, Condition):
            found |= frozenset(_condition_sources(value))
    return found


def reason_of(*values: Value) -> str:
    """Give the first reason why one of the values is not known."""
    for value in values:
        inner = value.offset if isinstance(value, Pointer) else value
        if isinstance(inner, Opaque) and inner.reason:
            return inner.reason
        if isinstance(inner, Lanes):
            reason = reason_of(*inner.lanes)
            if reason:
                return reason
    return ""


def blur(*values: Value, reason: str = "") -> Opaque:
    """Give what is left of values that were combined in a way that is not followed."""
    sources = sources_of(*values)
    return Opaque(sources, "" if sources else reason or reason_of(*values))


def as_number(value: Value) -> Expr | Opaque:
    """Take a value as a whole number; a truth value is 0 or 1."""
    if isinstance(value, Expr | Opaque):
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
    if isinstance(value, Pointer):
        return Unknown(())
    return Unknown(tuple(sorted(sources_of(value))))


def merge(condition: Condition, then: Value, otherwise: Value) -> Value:
    """Give the value of a variable after the two sides of a branch."""
    if then == otherwise:
        return then
    if isinstance(then, Lanes) and isinstance(otherwise, Lanes):
        if len(then.lanes) == len(otherwise.lanes):
            pairs = zip(then.lanes, otherwise.lanes, strict=True)
            return Lanes(tuple(merge(condition, one, two) for one, two in pairs))
        return blur(then, otherwise)
    if isinstance(then, Pointer) and isinstance(otherwise, Pointer):
        if then.memory != otherwise.memory:
            return blur(then, otherwise, reason="the pointer is one of several buffers")
        merged = merge(condition, then.offset, otherwise.offset)
        return Pointer(then.memory, as_number(merged))
    one, two = as_number(then), as_number(otherwise)
    if isinstance(one, Expr) and isinstance(two, Expr) and condition.is_exact:
        return select(condition, one, two)
    return blur(condition, then, otherwise)


def _condition_sources(condition: Condition) -> Iterable[str]:
    if isinstance(condition, Unknown):
        return condition.sources
    parts = getattr(condition, "parts", ())
    return (name for part in parts for name in _condition_sources(part))
