"""Loops: which variables step steadily, and what they are behind the loop."""

from collections.abc import Callable, Iterator
from functools import partial

from kernelcast.expressions import Expr, Symbol, geometric, less
from kernelcast.features.addresses.assignments import (
    Assignment,
    Changes,
    find_changes,
    find_step,
    is_assignment,
)  # fmt: skip
from kernelcast.features.addresses.conversion import narrow
from kernelcast.features.addresses.evaluation import Evaluator
from kernelcast.features.addresses.ranges import is_non_negative
from kernelcast.features.addresses.recurrences import Induction, solve
from kernelcast.features.addresses.slots import change_numbers, put_in
from kernelcast.features.addresses.state import State
from kernelcast.features.addresses.values import (
    Cells,
    Choice,
    Lanes,
    Opaque,
    Pointer,
    Value,
    as_number,
    blur,
    merge,
    parts_of,
)  # fmt: skip
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node

_LONGEST_SHIFT = 32
_Evaluate = Callable[[Node | int], Expr | None]
"""Gives a step that is the same in each iteration."""


def find_induction(
    changes: Changes,
    symbol: Symbol,
    state: State,
    evaluator: Evaluator,
    run_once: Callable[[State], None],
    floats_may_decide: Callable[[], bool],
) -> Induction:
    """Find out how a loop changes its variables.

    Parameters
    ----------
    changes : Changes
        What the loop may change.
    state : State
        At the loop's entry.
    evaluator : Evaluator
        To evaluate steps with; nothing must be recorded meanwhile.
    run_once : callable
        Runs one iteration.
    floats_may_decide : callable
        Tells whether floating-point numbers may become anything else.
    """
    assigned = changes.assignments.copy()
    if changes.is_indirect:
        for key in pointed_to(state):
            assigned.setdefault(key, [])
    evaluate = partial(_invariant, state=state, evaluator=evaluator, assigned=assigned)
    induction = Induction()
    others: dict[int, Value] = {}
    for key, assignments in assigned.items():
        start = state.values.get(key)
        if start is None:
            continue  # declared later, or of another function
        found = _steady_value(start, assignments, symbol, evaluate)
        if found is not None:
            induction.at_start[key] = found
        else:
            others[key] = start
    if others:
        is_worth_it = _is_worth_it(others, assigned, floats_may_decide)
        solve(others, is_worth_it, symbol, state, induction, run_once)
    return induction


def _is_worth_it(
    others: dict[int, Value],
    assigned: dict[int, list[Assignment]],
    floats_may_decide: Callable[[], bool],
) -> bool:
    """Tell whether one of the variables may hold a whole number or a pointer."""
    return any(
        not assigned[key] or any(_is_followed(one.node) for one in assigned[key])
        or (isinstance(value, Cells) and floats_may_decide())
        for key, value in others.items()
    )  # fmt: skip


def _is_followed(node: Node) -> bool:
    if node.kind == kinds.CALL or not is_assignment(node):
        return True
    info = node.children[0].type
    return info.is_integer or not info.is_number


def leave_loop(
    induction: Induction, symbol: Symbol, count: Expr | None, sources: frozenset[str], state: State
) -> None:
    """Set the variables that a loop changes to what they are behind it.

    Parameters
    ----------
    induction : Induction
        How they change.
    count : Expr or None
        How many iterations there are; None if that is not known.
    sources : frozenset of str
        Buffers on whose content the number of iterations depends.
    state : State
        At the loop's entry; it is changed.
    """
    for key, value in induction.at_start.items():
        at_end = induction.at_end.get(key, value)
        if count is None:
            state.values[key] = _blur_like(at_end, sources)
        elif key in induction.at_end:
            last = change_numbers(at_end, lambda one: put_in(one, {symbol: count - 1}))
            is_run = less(0, count)
            state.values[key] = merge(is_run, last, state.values[key])
        else:
            state.values[key] = change_numbers(value, lambda one: put_in(one, {symbol: count}))


def _blur_like(value: Value, sources: frozenset[str]) -> Value:
    """Forget the numbers in a value, but not which buffers its pointers point into."""
    blurred = blur(value, Opaque(sources), reason="set in a loop whose end is not known")
    if isinstance(value, Pointer):
        return Pointer(value.memory, blurred)
    return Cells({}, blurred) if isinstance(value, Cells) else blurred


def _steady_value(
    start: Value, assignments: list[Assignment], symbol: Symbol, evaluate: _Evaluate
) -> Value | None:
    """Give a variable's value by the iteration number, if it steps in the simplest ways."""
    if not assignments or isinstance(start, Lanes | Cells | Choice | Opaque):
        return None
    value = _step_steadily(start, assignments, symbol, evaluate)
    info = assignments[0].node.children[0].type
    # Steps that each wrap around add up to one sum that wraps around.
    return narrow(value, info, is_explicit=False) if value and info.is_integer else value


def _step_steadily(
    start: Value, assignments: list[Assignment], symbol: Symbol, evaluate: _Evaluate
) -> Value | None:
    total = Expr.constant(0)
    for one in assignments:
        found = find_step(one)
        if found is None:
            return None
        operator, amount = found
        value = evaluate(amount)
        if value is None:
            return None
        if operator in (kinds.ADD, kinds.SUBTRACT):
            total = total + (value if operator == kinds.ADD else -value)
        elif len(assignments) == 1:
            return _geometric(start, operator, value, symbol)
        else:
            return None
    return _advance(start, total * _size_of_step(start, assignments[0]) * symbol)


def _size_of_step(start: Value, assignment: Assignment) -> int:
    """Give the bytes by which a pointer moves when it is incremented."""
    if not isinstance(start, Pointer):
        return 1
    target = assignment.node.children[0].type.target
    return max(1, target.bytes) if target is not None else 1


def _advance(start: Value, distance: Expr) -> Value:
    if isinstance(start, Pointer):
        if isinstance(start.offset, Expr):
            return Pointer(start.memory, start.offset + distance)
        return start
    number = as_number(start)
    return number + distance if isinstance(number, Expr) else number


def _invariant(
    amount: Node | int, state: State, evaluator: Evaluator, assigned: dict[int, list[Assignment]]
) -> Expr | None:
    """Evaluate a step that is the same in each iteration."""
    if isinstance(amount, int):
        return Expr.constant(amount)
    for node in amount.walk():
        if node.kind == kinds.DECLARATION_REFERENCE and node.referenced_key in assigned:
            return None
        if is_assignment(node):
            return None
    value = as_number(evaluator.value(amount, state.copy()))
    return value if isinstance(value, Expr) else None


def _geometric(start: Value, operator: int, amount: Expr, symbol: Symbol) -> Value | None:
    """Give the value of a variable that is multiplied or divided each time."""
    number, factor = as_number(start), amount.constant_value
    if not isinstance(number, Expr) or factor is None or isinstance(start, Pointer):
        return None
    if operator in (kinds.SHIFT_LEFT, kinds.SHIFT_RIGHT):
        if not 0 <= factor < _LONGEST_SHIFT:
            return None
        factor = 1 << factor
    if operator in (kinds.MULTIPLY, kinds.SHIFT_LEFT):
        return geometric(number, factor, symbol, is_division=False)
    # A shift rounds down, a division towards zero: only numbers that are not negative agree.
    is_safe = operator == kinds.DIVIDE or number.is_parameter or is_non_negative(number)
    if operator in (kinds.DIVIDE, kinds.SHIFT_RIGHT) and factor > 0 and is_safe:
        return geometric(number, factor, symbol, is_division=True)
    return None


def pointed_to(state: State) -> set[int]:
    """Give the variables that pointers point to."""
    return {
        place.memory.variable
        for value in state.values.values()
        for place in _pointers_in(value)
        if place.memory.variable
    }


def _pointers_in(value: Value) -> Iterator[Pointer]:
    if isinstance(value, Pointer):
        yield value
    elif not isinstance(value, Expr | Opaque):
        for part in parts_of(value):
            yield from _pointers_in(part)


def forget_changes(function: Node, state: State) -> None:
    """Forget all that a function changes: where it jumps about, code may be run again."""
    changes = find_changes(function.children[-1])
    changed = {*changes.assignments, *changes.declared}
    for key in changed | (pointed_to(state) if changes.is_indirect else set()):
        if key in state.values:
            state.values[key] = _blur_like(state.values[key], frozenset())
