"""Loops: which variables step steadily, and how many iterations there are."""

from dataclasses import dataclass

from kernelcast.features.addresses.assignments import Assignment, find_assignments, find_step
from kernelcast.features.addresses.evaluation import Evaluator
from kernelcast.features.addresses.state import Findings, State
from kernelcast.features.addresses.values import (
    Lanes, Opaque, Pointer, Value, as_number, blur, sources_of,
)  # fmt: skip
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node
from kernelcast.features.syntax.types import TypeClass
from kernelcast.records.conditions import And, Comparison, Condition, Relation
from kernelcast.records.quasi_affine import (
    Expr, Symbol, floor_div, geometric, maximum, minimum,
)  # fmt: skip

_ROUNDS = 2
"""How often assignments are followed to find out which buffers a variable depends on."""


@dataclass(slots=True)
class Induction:
    """How variables change from one iteration to the next.

    Parameters
    ----------
    at_start : dict of int to Value
        Value of each changed variable at the start of an iteration, by the iteration number.
    after : dict of int to (Value, Expr)
        Start and step of those that step steadily.
    """

    at_start: dict[int, Value]
    steps: dict[int, tuple[Value, Expr]]


def find_induction(
    loop: Node, symbol: Symbol, state: State, evaluator: Evaluator, findings: Findings
) -> Induction:
    """Find out how a loop changes its variables.

    Parameters
    ----------
    loop : Node
        The loop.
    symbol : Symbol
        Its iteration number.
    state : State
        At the loop's entry.
    evaluator, findings
        To evaluate steps with; nothing is recorded.

    Returns
    -------
    Induction
    """
    assigned = find_assignments(loop)
    induction = Induction({}, {})
    unsteady: list[Assignment] = []
    was_recording, findings.is_recording = findings.is_recording, False
    try:
        for key, assignments in assigned.items():
            found = _steady_value(assignments, symbol, state, evaluator, assigned)
            if found is None:
                unsteady += assignments
                continue
            value, step = found
            induction.at_start[key] = value
            if step is not None:
                induction.steps[key] = (state.values.get(key, Opaque()), step)
        _blur_others(unsteady, induction, state, evaluator)
    finally:
        findings.is_recording = was_recording
    return induction


def leave_loop(induction: Induction, trip_count: Expr | None, state: State) -> None:
    """Set the variables that a loop changes to what they are behind it."""
    for key, value in induction.at_start.items():
        known = induction.steps.get(key)
        if known is not None and trip_count is not None:
            state.values[key] = _advance(known[0], known[1] * trip_count)
        else:
            state.values[key] = blur(value, reason="set in a loop")


def count_iterations(condition: Condition, symbol: Symbol) -> tuple[Expr | None, bool]:
    """Count the iterations of a loop that runs while a condition holds.

    Parameters
    ----------
    condition : Condition
        On the iteration number.
    symbol : Symbol
        The iteration number.

    Returns
    -------
    (Expr or None, bool)
        The count, or an upper bound of it, or None; and whether it is the count.
    """
    if isinstance(condition, Comparison):
        count = _count_comparison(condition, symbol)
        return count, count is not None
    if isinstance(condition, And):
        counts = [_count_comparison(part, symbol) if isinstance(part, Comparison) else None
                  for part in condition.parts]  # fmt: skip
        known = [count for count in counts if count is not None]
        if not known:
            return None, False
        total = known[0]
        for count in known[1:]:
            total = minimum(total, count)
        return total, len(known) == len(counts)
    return None, False


def _steady_value(
    assignments: list[Assignment],
    symbol: Symbol,
    state: State,
    evaluator: Evaluator,
    assigned: dict[int, list[Assignment]],
) -> tuple[Value, Expr | None] | None:
    """Give a variable's value by the iteration number, and its step if it is a sum."""
    start = state.values.get(assignments[0].variable)
    if start is None or isinstance(start, Lanes):
        return None
    steps = [find_step(one) for one in assignments]
    total = Expr.constant(0)
    for found in steps:
        if found is None:
            return None
        operator, amount = found
        value = _invariant(amount, state, evaluator, assigned)
        if value is None:
            return None
        if operator in (kinds.ADD, kinds.SUBTRACT):
            total = total + (value if operator == kinds.ADD else -value)
        elif len(steps) == 1 and not isinstance(start, Opaque):
            return _geometric(start, operator, value, symbol)
        else:
            return None
    total = total * _size_of_step(start, assignments[0])
    return _advance(start, total * symbol), total


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
        if node.kind in (kinds.BINARY, kinds.COMPOUND_ASSIGNMENT, kinds.UNARY) and (
            _has_side_effect(node)
        ):
            return None
    value = as_number(evaluator.value(amount, state.copy()))
    return value if isinstance(value, Expr) else None


def _has_side_effect(node: Node) -> bool:
    if node.kind == kinds.COMPOUND_ASSIGNMENT:
        return True
    if node.kind == kinds.UNARY:
        return node.operator in kinds.STEPS
    return node.operator == kinds.ASSIGN


def _geometric(
    start: Value, operator: int, amount: Expr, symbol: Symbol
) -> tuple[Value, Expr | None] | None:
    """Give the value of a variable that is multiplied or divided each time."""
    number, factor = as_number(start), amount.constant_value
    if not isinstance(number, Expr) or factor is None:
        return None
    if operator in (kinds.SHIFT_LEFT, kinds.SHIFT_RIGHT):
        if not 0 <= factor < 32:
            return None
        factor = 1 << factor
    if operator in (kinds.MULTIPLY, kinds.SHIFT_LEFT):
        return geometric(number, factor, symbol, is_division=False), None
    if operator in (kinds.DIVIDE, kinds.SHIFT_RIGHT) and factor > 0:
        return geometric(number, factor, symbol, is_division=True), None
    return None


def _blur_others(
    unsteady: list[Assignment], induction: Induction, state: State, evaluator: Evaluator
) -> None:
    """Find out which buffers the other variables depend on."""
    reason = "changes from iteration to iteration in a way that is not followed"
    trial = state.copy()
    trial.values.update(induction.at_start)
    for one in unsteady:
        trial.values[one.variable] = induction.at_start[one.variable] = Opaque(reason=reason)
    numbers = [one for one in unsteady if _matters(one)]
    for _ in range(_ROUNDS):
        for one in numbers:
            node = one.node
            found = sources_of(*(evaluator.value(child, trial) for child in node.children))
            old = induction.at_start[one.variable]
            both = found | sources_of(old)
            new = Opaque(both, "" if both else reason)
            trial.values[one.variable] = induction.at_start[one.variable] = new


def _matters(assignment: Assignment) -> bool:
    """Tell whether an assignment is to a whole number or a pointer; addresses need no others."""
    node = assignment.node
    is_address_of = node.kind == kinds.UNARY and node.operator not in kinds.STEPS
    info = node.children[0].type
    return not is_address_of and (info.is_integer or info.type_class is TypeClass.POINTER)


def _count_comparison(condition: Comparison, symbol: Symbol) -> Expr | None:
    """Solve `start - step * k >= 0` or `!= 0` for the number of iterations."""
    start, slope = _split(condition.expr, symbol)
    if start is None or slope is None:
        return None
    step = -slope
    if condition.relation is Relation.NOT_ZERO:
        is_upwards = _is_positive(step)
        if not is_upwards and not _is_positive(slope):
            return None
        return floor_div(start, step) if is_upwards else floor_div(-start, slope)
    if condition.relation is not Relation.NOT_NEGATIVE or not _is_positive(step):
        return None
    return maximum(floor_div(start, step) + 1, 0)


def _is_positive(expr: Expr) -> bool:
    """Tell whether a step is a positive number, or a sum of sizes and arguments."""
    constant = expr.constant_value
    if constant is not None:
        return constant > 0
    return all(factor > 0 for _, factor in expr.terms) and expr.is_parameter


def _split(expr: Expr, symbol: Symbol) -> tuple[Expr | None, Expr | None]:
    """Split into what does not depend on the iteration, and its coefficient."""
    start, slope = Expr.constant(0), Expr.constant(0)
    for monomial, factor in expr.terms:
        holds = [atom for atom in monomial
                 if atom is symbol or (not isinstance(atom, Symbol) and symbol in atom.symbols())]
        if not holds:
            start = start + Expr({monomial: factor})
        elif len(holds) == 1 and holds[0] is symbol:
            rest = tuple(atom for atom in monomial if atom is not symbol)
            slope = slope + Expr({rest: factor})
        else:
            return None, None
    return start, (None if slope.is_zero else slope)
