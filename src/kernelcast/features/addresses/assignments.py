"""Which variables a loop changes, and which of them it changes by a steady step."""

from dataclasses import dataclass, field

from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.lvalues import base_object
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo

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


@dataclass(slots=True)
class Changes:
    """What a loop may change.

    Parameters
    ----------
    assignments : dict of int to list of Assignment
        By variable. A variable declared within the loop is left out: it starts anew.
    declared : set of int
        Variables declared within.
    is_indirect : bool
        Whether it writes through pointers to the work-item's own memory, or may do so.
    """

    assignments: dict[int, list[Assignment]] = field(default_factory=dict)
    declared: set[int] = field(default_factory=set)
    is_indirect: bool = False


def find_changes(loop: Node) -> Changes:
    """Find what a loop may change.

    Parameters
    ----------
    loop : Node
        A `for`, `while` or `do` statement, or a function's body.

    Returns
    -------
    Changes
    """
    found = Changes()
    declared = found.declared
    for part, is_steady in _parts(loop, has_continue=_has_continue(loop)):
        _collect(part, found, declared, is_steady=is_steady)
    for key in declared:
        found.assignments.pop(key, None)
    return found


def _parts(loop: Node, *, has_continue: bool) -> list[tuple[Node, bool]]:
    """Give a loop's parts that run in each iteration, and whether each runs to its end."""
    if loop.kind != kinds.FOR:
        return [(child, not has_continue) for child in loop.children]
    parts = split_for(loop)
    given = ((parts.condition, True), (parts.body, not has_continue), (parts.step, True))
    return [(part, is_steady) for part, is_steady in given if part is not None]


def _collect(root: Node, found: Changes, declared: set[int], *, is_steady: bool) -> None:
    stack = [(root, is_steady)]
    while stack:
        node, steady = stack.pop()
        if node.kind == kinds.VARIABLE:
            declared.add(node.key)
        elif node.kind == kinds.CALL:
            _note_arguments(node, found)
        else:
            _note_target(node, found, is_steady=steady)
        inner = steady and not _may_skip(node)
        stack.extend((child, inner) for child in reversed(node.children))


def _note_arguments(call: Node, found: Changes) -> None:
    """Note the variables that a function is given the addresses of."""
    for argument in call.children[1:]:
        info = argument.type
        if info.type_class is TypeClass.POINTER and _is_private(info.target):
            found.is_indirect = True
            root = _root(argument)
            if root is not None:
                _note(root.referenced_key, call, found, is_steady=False)


def _note_target(node: Node, found: Changes, *, is_steady: bool) -> None:
    is_address = node.kind == kinds.UNARY and node.operator == kinds.ADDRESS_OF
    if not (is_address or is_assignment(node)):
        return
    target = base_object(node.children[0])
    if target.kind == kinds.DECLARATION_REFERENCE:
        if target.type.space == "private":
            is_whole = not is_address and target is strip(node.children[0])
            _note(target.referenced_key, node, found, is_steady=is_steady and is_whole)
        return
    root = _root(target)
    if root is not None:
        _note(root.referenced_key, node, found, is_steady=False)
    elif _is_private(target.type):
        found.is_indirect = True


def _note(variable: int, node: Node, found: Changes, *, is_steady: bool) -> None:
    assignment = Assignment(variable, node, is_steady)
    found.assignments.setdefault(variable, []).append(assignment)


def _root(node: Node) -> Node | None:
    """Give the variable of the work-item's own that an element or a member belongs to."""
    while True:
        node = base_object(node)
        if node.kind == kinds.DECLARATION_REFERENCE:
            is_own = node.type.type_class in (TypeClass.ARRAY, TypeClass.RECORD)
            return node if is_own and node.type.space == "private" else None
        if node.kind not in (kinds.SUBSCRIPT, kinds.MEMBER_REFERENCE) or not node.children:
            return None
        node = node.children[0]


def _is_private(info: TypeInfo | None) -> bool:
    return info is None or info.space in ("private", "generic")


def is_assignment(node: Node) -> bool:
    """Tell whether a node changes an object itself, not by a call."""
    if node.kind == kinds.BINARY:
        return node.operator == kinds.ASSIGN
    if node.kind == kinds.UNARY:
        return node.operator in kinds.STEPS
    return node.kind == kinds.COMPOUND_ASSIGNMENT


def _may_skip(node: Node) -> bool:
    """Tell whether a node may leave parts of it out, or repeat them."""
    logical = (kinds.LOGICAL_AND, kinds.LOGICAL_OR)
    return node.kind in _BRANCHING or (node.kind == kinds.BINARY and node.operator in logical)


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
    if not is_assignment(node):
        return None
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
