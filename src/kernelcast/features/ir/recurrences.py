"""Solves how values follow from what they were an iteration before.

One iteration is evaluated with a symbol in the place of each number that it changes. What comes out
is compared with what went in: ``before + 3`` steps steadily, ``before + k`` gives triangular
numbers, ``before * 2`` a geometric sequence, and what holds no such symbol is set anew each time.
"""

from dataclasses import dataclass, field
from typing import Final

from kernelcast.expressions import (
    Expr,
    FloorDiv,
    Symbol,
    TruncDiv,
    equal,
    floor_div,
    geometric,
    select,
)
from kernelcast.features.ir.values import (
    Leaf,
    Opaque,
    blur,
    is_non_negative,
    put_in,
    sources_of,
)

REASON: Final = "changes from iteration to iteration in a way that is not followed"


@dataclass(slots=True)
class Slot:
    """One number that a loop changes."""

    start: Leaf
    before: Symbol
    after: Leaf = field(default_factory=Opaque)
    at_start: Leaf | None = None


def solve_slots(slots: list[Slot], symbol: Symbol) -> None:
    """Find what numbers are at the start of each iteration, by its number."""
    befores = frozenset(slot.before for slot in slots)
    solved: dict[Symbol, Expr] = {}
    for _ in range(len(slots) + 1):
        known = len(solved)
        for slot in slots:
            if slot.before not in solved:
                _solve_slot(slot, symbol, befores, solved)
                if isinstance(slot.at_start, Expr):
                    solved[slot.before] = slot.at_start
        if len(solved) == known:
            break
    # What is not solved has the buffers that it depends on, by way of others too.
    open_slots = [slot for slot in slots if slot.at_start is None]
    sources = {slot.before: sources_of(slot.start, slot.after) for slot in open_slots}
    for _ in open_slots:
        changed = False
        for slot in open_slots:
            if isinstance(slot.after, Expr):
                own = sources[slot.before]
                more = own.union(*(sources[each] for each in slot.after.symbols() & sources.keys()))
                changed |= more != own
                sources[slot.before] = more
        if not changed:
            break
    for slot in open_slots:
        found = sources[slot.before]
        slot.at_start = Opaque(found, "" if found else REASON)


def _solve_slot(
    slot: Slot, symbol: Symbol, befores: frozenset[Symbol], solved: dict[Symbol, Expr]
) -> None:
    after = put_in(slot.after, solved) if isinstance(slot.after, Expr) else slot.after
    if isinstance(after, Opaque):
        return
    if isinstance(slot.start, Expr):
        step = after - slot.before
        if befores.isdisjoint(step.symbols()):
            fixed, slope = step.split(symbol) or (None, None)
            if fixed is None or slope is None:
                slot.at_start = None
            else:
                number = Expr.symbol(symbol)
                pairs = floor_div(number * number - number, 2)
                slot.at_start = (
                    slot.start + fixed * symbol + (slope * pairs if not slope.is_zero else 0)
                )
        else:
            slot.at_start = _find_geometric(slot.start, after, slot.before, symbol)
        if slot.at_start is not None:
            return
    if befores.isdisjoint(after.symbols()):  # each iteration sets it anew
        earlier = put_in(after, {symbol: Expr.symbol(symbol) - 1})
        is_first = equal(Expr.symbol(symbol), 0)
        if isinstance(earlier, Opaque):
            slot.at_start = earlier
        elif isinstance(slot.start, Expr):
            slot.at_start = select(is_first, slot.start, earlier)
        elif slot.start.is_unset:
            slot.at_start = select(is_first, 0, earlier)
        else:
            slot.at_start = blur(slot.start, reason=REASON)


def _find_geometric(start: Expr, after: Expr, before: Symbol, symbol: Symbol) -> Expr | None:
    """Give a number that is multiplied or divided each time."""
    split = after.split(before)
    if split is not None and split[0].is_zero:
        factor = split[1].constant_value
        if factor is None or abs(factor) >= 1 << 31:
            return None
        return geometric(start, factor, symbol, is_division=False)
    atom = after.sole_atom
    if not isinstance(atom, FloorDiv | TruncDiv) or atom.numerator != Expr.symbol(before):
        return None
    divisor = atom.denominator.constant_value
    # A shift rounds down, a division towards zero: only numbers that are not negative agree.
    is_safe = isinstance(atom, TruncDiv) or start.is_parameter or is_non_negative(start)
    if divisor is None or divisor <= 0 or not is_safe:
        return None
    return geometric(start, divisor, symbol, is_division=True)
