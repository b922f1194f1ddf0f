"""Solves how variables follow from what they were an iteration before.

One iteration is run with a symbol in the place of each number that it changes. What comes out is
compared with what went in: `before + 3` steps steadily, `before + k` gives triangular numbers, and
what holds no such symbol is set anew each time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kernelcast.expressions import UNKNOWN, Expr, Symbol, equal, floor_div, select
from kernelcast.features.addresses.slots import (
    Leaf,
    change_numbers,
    has_same_shape,
    put_in,
    rebuild,
    split,
)  # fmt: skip
from kernelcast.features.addresses.state import State
from kernelcast.features.addresses.values import (
    Cells,
    Choice,
    Opaque,
    Pointer,
    Value,
    blur,
    places_of,
    sources_of,
    stand_in_for,
)  # fmt: skip

_MOST_ROUNDS = 3
_REASON = "changes from iteration to iteration in a way that is not followed"


@dataclass(slots=True)
class Induction:
    """How variables change from one iteration to the next."""

    at_start: dict[int, Value] = field(default_factory=dict)
    """Value of each changed variable at the start of an iteration, by the iteration number."""
    at_end: dict[int, Value] = field(default_factory=dict)
    """What becomes of those that are set anew in each iteration, by its number; nothing else tells
    what they are behind the loop."""


@dataclass(slots=True)
class _Slot:
    """One number that a loop changes."""

    start: Leaf
    before: Symbol
    after: Leaf = field(default_factory=Opaque)
    at_start: Leaf | None = None
    at_end: Leaf | None = None


def solve(
    starts: dict[int, Value],
    is_worth_it: bool,
    symbol: Symbol,
    state: State,
    induction: Induction,
    run_once: Callable[[State], None],
) -> None:
    """Find out how variables change, by running one iteration.

    Parameters
    ----------
    starts : dict of int to Value
        The variables, with what they hold at the loop's entry.
    is_worth_it : bool
        Whether numbers or pointers are among them; else they are just forgotten.
    state : State
        At the loop's entry.
    induction : Induction
        What is known of other variables; what is found is added.
    run_once : callable
        Runs one iteration.
    """
    if not is_worth_it:
        for key, start in starts.items():
            induction.at_start[key] = _forget(start, start)
        return
    forgotten = {key: blur(one, reason=_REASON) for key, one in starts.items()
                 if isinstance(one, Choice)}  # type: dict[int, Value]  # fmt: skip
    for _ in range(_MOST_ROUNDS):
        slots = {key: [_Slot(leaf, stand_in_for(key, at)) for at, leaf in enumerate(split(start))]
                 for key, start in starts.items() if key not in forgotten}  # fmt: skip
        trial = _prepare(starts, slots, forgotten, state, induction)
        run_once(trial)
        ends = {key: trial.values.get(key, Opaque()) for key in starts}
        lost = _find_lost(starts, ends, forgotten)
        if not lost:
            break
        forgotten |= lost
    else:
        forgotten = {key: _forget(start, start) for key, start in starts.items()}
        slots = {}
    induction.at_start |= forgotten
    _conclude_all(starts, ends, slots, symbol, induction)


def _prepare(
    starts: dict[int, Value], slots: dict[int, list[_Slot]], forgotten: dict[int, Value],
    state: State, induction: Induction,
) -> State:  # fmt: skip
    """Give the state at the start of any iteration."""
    trial = state.copy()
    trial.values |= induction.at_start
    trial.values |= forgotten
    for key, each in slots.items():
        before = rebuild(starts[key], (_before(slot) for slot in each))
        if isinstance(before, Cells):
            # What is not kept apart may be anything that the loop writes.
            before = Cells(before.cells, Opaque(sources_of(before.rest), _REASON), before.name)
        trial.values[key] = before
    return trial


def _find_lost(
    starts: dict[int, Value], ends: dict[int, Value], forgotten: dict[int, Value]
) -> dict[int, Value]:
    """Find variables that hold something of another kind after an iteration."""
    lost: dict[int, Value] = {}
    for key, start in starts.items():
        end, known = ends[key], forgotten.get(key)
        if known is None:
            is_unset = isinstance(start, Opaque) and start.is_unset
            if not (is_unset or has_same_shape(start, end)):
                lost[key] = _forget(start, end)
        elif isinstance(known, Choice):
            memories = {one.memory for _, one in places_of(known) if isinstance(one, Pointer)}
            if not all(isinstance(one, Pointer) and one.memory in memories
                       for _, one in places_of(end)):  # fmt: skip
                lost[key] = blur(known, end, reason=_REASON)
    return lost


def _conclude_all(
    starts: dict[int, Value], ends: dict[int, Value], slots: dict[int, list[_Slot]],
    symbol: Symbol, induction: Induction,
) -> None:  # fmt: skip
    anew = [key for key in slots if not has_same_shape(starts[key], ends[key])]
    for key, each in slots.items():
        if key not in anew:
            for slot, leaf in zip(each, split(ends[key]), strict=True):
                slot.after = leaf
    every = [slot for each in slots.values() for slot in each]
    _solve_slots(every, symbol)
    befores = {slot.before for slot in every}
    for key, each in slots.items():
        if key not in anew:
            _conclude(key, starts[key], ends[key], each, induction)
            continue
        # It was not set before the loop and is a vector, a pointer or a structure now.
        induction.at_start[key] = Opaque(sources_of(ends[key]), _REASON)
        induction.at_end[key] = change_numbers(
            ends[key],
            lambda one: one if befores.isdisjoint(one.symbols()) else Opaque(reason=_REASON),
        )


def _before(slot: _Slot) -> Leaf:
    is_data = isinstance(slot.start, Opaque) and not slot.start.is_unset
    return slot.start if is_data else Expr.symbol(slot.before)


def _conclude(
    key: int, start: Value, after: Value, slots: list[_Slot], induction: Induction
) -> None:
    """Put a variable together from its numbers."""
    value = rebuild(start, (slot.at_start or Opaque(reason=_REASON) for slot in slots))
    if isinstance(value, Cells) and isinstance(after, Cells) and isinstance(start, Cells):
        rest = start.rest if start.rest == after.rest else blur(start.rest, after.rest,
                                                                reason=_REASON)  # fmt: skip
        is_kept = start.rest == after.rest and start.name == after.name
        value = Cells(value.cells, rest, start.name if is_kept else "")
    induction.at_start[key] = value
    if any(slot.at_end is not None for slot in slots):
        ends = (slot.at_end or _after_of(slot) for slot in slots)
        induction.at_end[key] = rebuild(value, ends)


def _after_of(slot: _Slot) -> Leaf:
    """Give what a slot that steps steadily is at the end of an iteration."""
    return Opaque(sources_of(slot.after), _REASON)


def _solve_slots(slots: list[_Slot], symbol: Symbol) -> None:
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
    _spread_sources([slot for slot in slots if slot.at_start is None])


def _solve_slot(
    slot: _Slot, symbol: Symbol, befores: frozenset[Symbol], solved: dict[Symbol, Expr]
) -> None:
    """Solve one slot, if what it depends on is solved."""
    after = put_in(slot.after, solved) if isinstance(slot.after, Expr) else slot.after
    if isinstance(after, Opaque):
        return
    if isinstance(slot.start, Expr):
        step = after - slot.before
        if befores.isdisjoint(step.symbols()):
            slot.at_start = _sum_up(slot.start, step, symbol)
            if slot.at_start is not None:
                return
    if befores.isdisjoint(after.symbols()):
        slot.at_end = after
        slot.at_start = _set_anew(slot.start, after, symbol)


def _set_anew(start: Leaf, after: Expr, symbol: Symbol) -> Leaf:
    """Give what a number is at an iteration's start that each iteration sets anew."""
    earlier = put_in(after, {symbol: Expr.symbol(symbol) - 1})
    if isinstance(earlier, Opaque):
        return earlier
    is_first = equal(Expr.symbol(symbol), 0)
    if isinstance(start, Expr):
        return select(is_first, start, earlier)
    return select(is_first, 0, earlier) if start.is_unset else blur(start, reason=_REASON)


def _sum_up(start: Expr, step: Expr, symbol: Symbol) -> Expr | None:
    """Add up steps that are the same each time, or grow steadily."""
    fixed, slope = step.split(symbol) or (None, None)
    if fixed is None or slope is None:
        return None
    number = Expr.symbol(symbol)
    pairs = floor_div(number * number - number, 2)
    return start + fixed * symbol + (slope * pairs if not slope.is_zero else 0)


def _spread_sources(slots: list[_Slot]) -> None:
    """Give what is not solved the buffers that it depends on, by way of others too."""
    sources = {slot.before: sources_of(slot.start, slot.after) for slot in slots}
    for _ in slots:
        changed = False
        for slot in slots:
            if isinstance(slot.after, Expr):
                own = sources[slot.before]
                more = own.union(*(sources[each] for each in slot.after.symbols() & sources.keys()))
                changed |= more != own
                sources[slot.before] = more
        if not changed:
            break
    for slot in slots:
        found = sources[slot.before]
        slot.at_start = Opaque(found, "" if found else _REASON)


def _forget(start: Value, after: Value) -> Value:
    """Give what is left of a variable that changes its shape: the buffers it may point into."""
    found = sources_of(start, after)
    blurred = Opaque(found, "" if found else _REASON)
    if isinstance(start, Cells):
        return Cells({}, blurred)
    if isinstance(start, Pointer) and isinstance(after, Pointer) and start.memory != after.memory:
        return Choice(UNKNOWN, Pointer(start.memory, blurred), Pointer(after.memory, blurred))
    return blurred
