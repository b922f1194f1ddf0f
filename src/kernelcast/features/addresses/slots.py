"""Numbers within values: each number of a vector, a structure or a pointer is a slot."""

from collections.abc import Callable, Iterator

from kernelcast.expressions import Condition, Expr, Symbol
from kernelcast.features.addresses.values import (
    Cells,
    Choice,
    Lanes,
    Opaque,
    Pointer,
    Value,
    as_number,
    blur,
)  # fmt: skip
from kernelcast.records.errors import InputError

Leaf = Expr | Opaque


def split(value: Value) -> Iterator[Leaf]:
    """Give the numbers in a value, in a fixed order."""
    if isinstance(value, Lanes):
        for lane in value.lanes:
            yield from split(lane)
    elif isinstance(value, Pointer):
        yield value.offset
    elif isinstance(value, Cells):
        for key in sorted(value.cells):
            yield from split(value.cells[key])
    else:
        yield as_number(value)


def rebuild(value: Value, leaves: Iterator[Leaf]) -> Value:
    """Give a value of the same shape with other numbers."""
    if isinstance(value, Lanes):
        return Lanes(tuple(rebuild(lane, leaves) for lane in value.lanes))
    if isinstance(value, Pointer):
        return Pointer(value.memory, next(leaves))
    if isinstance(value, Cells):
        cells = {key: rebuild(value.cells[key], leaves) for key in sorted(value.cells)}
        return Cells(cells, value.rest, value.name)
    return next(leaves)


def has_same_shape(one: Value, two: Value) -> bool:
    """Tell whether two values consist of the same parts; any number is like any other."""
    if isinstance(one, Lanes) and isinstance(two, Lanes):
        pairs = zip(one.lanes, two.lanes, strict=False)
        return len(one.lanes) == len(two.lanes) and all(has_same_shape(*pair) for pair in pairs)
    if isinstance(one, Pointer) and isinstance(two, Pointer):
        return one.memory == two.memory
    if isinstance(one, Cells) and isinstance(two, Cells):
        return one.cells.keys() == two.cells.keys() and all(
            has_same_shape(value, two.cells[key]) for key, value in one.cells.items()
        )
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


def put_in(expr: Expr, replacements: dict[Symbol, Expr]) -> Leaf:
    """Put expressions in the place of symbols; what then divides by zero is not known."""
    try:
        return expr.substitute(replacements)
    except InputError:
        return Opaque(reason="a division by zero")


def forget_symbols(value: Value, symbols: frozenset[Symbol]) -> Value:
    """Forget numbers that hold one of some symbols, which mean nothing where they go."""

    def keep(expr: Expr) -> Leaf:
        is_free = symbols.isdisjoint(expr.symbols())
        return expr if is_free else Opaque(reason="set in a loop whose end is not known")

    return change_numbers(value, keep)
