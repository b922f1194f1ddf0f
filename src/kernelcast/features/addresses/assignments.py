"""Which variables a loop changes, and which of them it changes by a steady step."""

from dataclasses import dataclass

from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.lvalues import base_object
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, strip

_BRANCHING = frozenset((kinds.IF, kinds.SWITCH, kinds.CONDITIONAL)) | kinds.LOOPS


@dataclass(frozen=True, slots=True)
class Assignment:
    """One place where a loop changes a variable.

    Parameters
    ----------
    variable : int
        The variable's declaration.
    node : Node
        The assignment, increment, or address-of expression.
    is_steady : bool
        Whether it is executed exactly once in each iteration.
    """

    variable: int
    node: Node
    is_steady: bool


def find_assignments(loop: Node) -> dict[int, list[Assignment]]:
    """Find what a loop assigns to, by variable.

    Parameters
    ----------
    loop : Node
        A `for`, `while` or `do` statement.

    Returns
    -------
    dict of int to list of Assignment
        Keys are declarations. A variable declared within the loop is left out: it starts anew.
    """
    found: dict[int, list[Assignment]] = {}
    declared: set[int] = set()
    skips = _has_continue(loop)
    for part, is_steady in _parts(loop, has_continue=skips):
        _collect(part, found, declared, is_steady=is_steady)
    return {key: each for key, each in found.items() if key not in declared}


def _parts(loop: Node, *, has_continue: bool) -> list[tuple[Node, bool]]:
    """Give a loop's parts that run in each iteration, and whether each runs to its end."""
    if loop.kind != kinds.FOR:
        return [(child, not has_continue) for child in loop.children]
    parts = split_for(loop)
    given = ((parts.condition, True), (parts.body, not has_continue), (parts.step, True))
    return [(part, is_steady) for part, is_steady in given if part is not None]


def _collect(
    root: Node, found: dict[int, list[Assignment]], declared: set[int], *, is_steady: bool
) -> None:
    stack = [(root, is_steady)]
    while stack:
        node, steady = stack.pop()
        if node.kind == kinds.VARIABLE:
            declared.add(node.key)
        target = _target(node)
        if target is not None:
            found.setdefault(target.referenced_key, []).append(
                Assignment(target.referenced_key, node, steady)
            )
        inner = steady and not _may_skip(node)
        stack.extend((child, inner) for child in reversed(node.children))


def _may_skip(node: Node) -> bool:
    """Tell whether a node may leave parts of it out, or repeat them."""
    logical = (kinds.LOGICAL_AND, kinds.LOGICAL_OR)
    return node.kind in _BRANCHING or (node.kind == kinds.BINARY and node.operator in logical)


def _target(node: Node) -> Node | None:
    """Give the variable that a node assigns to, if it does."""
    is_assignment = (
        node.kind == kinds.COMPOUND_ASSIGNMENT
        or (node.kind == kinds.BINARY and node.operator == kinds.ASSIGN)
        or (
            node.kind == kinds.UNARY
            and (node.operator in kinds.STEPS or node.operator == kinds.ADDRESS_OF)
        )
    )
    if not is_assignment:
        return None
    target = base_object(node.children[0])
    while target.kind == kinds.MEMBER_REFERENCE and target.children:
        target = base_object(target.children[0])
    is_variable = target.kind == kinds.DECLARATION_REFERENCE and target.type.space == "private"
    return target if is_variable else None


def _has_continue(loop: Node) -> bool:
    """Tell whether an iteration may be cut short by a `continue` of this loop."""
    stack = list(loop.children)
    while stack:
        node = stack.pop()
        if node.kind == kinds.CONTINUE:
            return True
        if node.kind not in kinds.LOOPS:
            stack.extend(node.children)
    return False


def find_step(assignment: Assignment) -> tuple[int, Node | int] | None:
    """Read an assignment as a step: an operator and by how much.

    Returns
    -------
    (int, Node or int), or None
        ``i += 2`` gives (ADD, node of 2), ``i++`` gives (ADD, 1), ``s = s >> 1`` gives
        (SHIFT_RIGHT, node of 1); None for anything else.
    """
    node = assignment.node
    if not assignment.is_steady:
        return None
    if node.kind == kinds.UNARY:
        step = kinds.STEPS.get(node.operator)
        return None if step is None else (kinds.ADD, step)
    if node.kind == kinds.COMPOUND_ASSIGNMENT:
        if strip(node.children[0]).kind != kinds.DECLARATION_REFERENCE:
            return None
        return kinds.OPERATOR_OF_ASSIGNMENT[node.operator], node.children[1]
    if strip(node.children[0]).kind != kinds.DECLARATION_REFERENCE:
        return None
    return _read_sum(assignment.variable, _plain(node.children[1]))


def _read_sum(variable: int, right: Node) -> tuple[int, Node | int] | None:
    """Read the right side of `v = v + 2`."""
    if right.kind != kinds.BINARY:
        return None
    left, other = (_plain(child) for child in right.children)
    if left.kind == kinds.DECLARATION_REFERENCE and left.referenced_key == variable:
        return right.operator, other
    is_reversed = other.kind == kinds.DECLARATION_REFERENCE and other.referenced_key == variable
    if is_reversed and right.operator in (kinds.ADD, kinds.MULTIPLY):
        return right.operator, left
    return None


def _plain(node: Node) -> Node:
    """Look through parentheses and conversions."""
    node = strip(node)
    while node.kind in (kinds.UNEXPOSED, kinds.CAST) and node.children:
        node = strip(node.children[-1])
    return node
