"""Which variables a loop changes, and which of them it changes by a steady step."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.lvalues import base_object
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_BRANCHING = frozenset((kinds.IF, kinds.SWITCH, kinds.CONDITIONAL)) | kinds.LOOPS
_LOGICAL = frozenset((kinds.LOGICAL_AND, kinds.LOGICAL_OR))
_NOTED = frozenset((
    kinds.CONTINUE, kinds.BREAK, kinds.RETURN, kinds.GOTO, kinds.VARIABLE, kinds.CALL,
    kinds.UNARY, kinds.BINARY, kinds.COMPOUND_ASSIGNMENT,
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assignment:
    """One place where a loop changes a variable."""

    variable: int
    """The variable's declaration."""
    node: Node
    """The assignment, increment, or address-of expression."""
    is_steady: bool
    """Whether it is executed exactly once in each iteration."""


@dataclass(slots=True)
class Changes:
    """What a loop may change."""

    assignments: dict[int, list[Assignment]] = field(default_factory=dict)
    """By variable. A variable declared within the loop is left out: it starts anew."""
    declared: set[int] = field(default_factory=set)
    """Variables declared within."""
    is_indirect: bool = False
    """Whether it writes through pointers to the work-item's own memory, or may do so."""


@dataclass(frozen=True, slots=True)
class _Event:
    """A declaration, or a place where a variable may change."""

    node: Node
    """The declaration, assignment, increment, address-of expression or call."""
    variable: int | None
    """What is declared or may change; None if that is not known."""
    is_whole: bool
    """Whether it sets the variable and nothing else."""
    is_indirect: bool
    """Whether it writes, or may write, through a pointer to the work-item's own memory."""
    skippable: int
    """Place of the innermost part around it that may be left out or repeated; -1 if none is."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """A part of a function: places of its nodes, in the order of the source, and its events."""

    start: int
    end: int
    first: int
    last: int


class Outline:
    """Where a function changes variables and jumps, for all its loops at once.

    Loops nest, and each asks what its body changes: one walk spares one for each loop around.

    Parameters
    ----------
    root : Node
        The function's body, or a loop.
    """

    def __init__(self, root: Node) -> None:
        self._events: list[_Event] = []
        self._extents: dict[int, _Extent] = {}
        self._jumps: list[int] = []
        self._continued: set[int] = set()
        self._broken: set[int] = set()
        self._count = 0
        self._visit(root, -1, root.key, root.key)

    def find_changes(self, loop: Node) -> Changes:
        """Find what a loop, or the whole function, may change."""
        found = Changes()
        for part, is_steady in _parts(loop, has_continue=loop.key in self._continued):
            extent = self._extents[part.key]
            for event in self._events[extent.first : extent.last]:
                if event.node.kind == kinds.VARIABLE:
                    found.declared.add(event.node.key)
                    continue
                found.is_indirect |= event.is_indirect
                if event.variable is not None:
                    is_once = is_steady and event.is_whole and event.skippable < extent.start
                    _note(event.variable, event.node, found, is_steady=is_once)
        for key in found.declared:
            found.assignments.pop(key, None)
        return found

    def may_be_left(self, loop: Node, body: Node) -> bool:
        """Tell whether a loop's body holds a jump out of it."""
        extent = self._extents[body.key]
        place = bisect_left(self._jumps, extent.start)
        has_jump = place < len(self._jumps) and self._jumps[place] < extent.end
        return has_jump or loop.key in self._broken

    def _visit(self, node: Node, skippable: int, loop: int, breakable: int) -> None:
        """Note a node and what is below it; jumps go to the loop and the breakable statement."""
        kind, place = node.kind, self._count
        self._count += 1
        if kind in _NOTED:
            self._mark(node, skippable, loop, breakable)
        if kind in _BRANCHING or (kind == kinds.BINARY and node.operator in _LOGICAL):
            skippable = place
        has_parts = place == 0
        if kind in kinds.LOOPS:
            has_parts, loop, breakable = True, node.key, node.key
        elif kind == kinds.SWITCH:
            breakable = node.key
        for child in node.children:
            start, first = self._count, len(self._events)
            if child.children or child.kind in _NOTED:
                self._visit(child, skippable, loop, breakable)
            else:
                self._count += 1
            if has_parts:
                self._extents[child.key] = _Extent(start, self._count, first, len(self._events))

    def _mark(self, node: Node, skippable: int, loop: int, breakable: int) -> None:
        kind = node.kind
        if kind == kinds.CONTINUE:
            self._continued.add(loop)
        elif kind == kinds.BREAK:
            self._broken.add(breakable)
        elif kind in (kinds.RETURN, kinds.GOTO):
            self._jumps.append(self._count - 1)
        elif kind == kinds.VARIABLE:
            self._events.append(_Event(node, node.key, False, False, skippable))
        elif kind == kinds.CALL:
            self._events += _read_arguments(node, skippable)
        else:
            event = _read_target(node, skippable)
            if event is not None:
                self._events.append(event)


def find_changes(loop: Node) -> Changes:
    """Find what a loop may change.

    Parameters
    ----------
    loop : Node
        A `for`, `while` or `do` statement, or a function's body.
    """
    return Outline(loop).find_changes(loop)


def _parts(loop: Node, *, has_continue: bool) -> list[tuple[Node, bool]]:
    """Give a loop's parts that run in each iteration, and whether each runs to its end."""
    if loop.kind != kinds.FOR:
        return [(child, not has_continue) for child in loop.children]
    parts = split_for(loop)
    given = ((parts.condition, True), (parts.body, not has_continue), (parts.step, True))
    return [(part, is_steady) for part, is_steady in given if part is not None]


def _read_arguments(call: Node, skippable: int) -> Iterator[_Event]:
    """Give the variables that a function is given the addresses of."""
    for argument in call.children[1:]:
        info = argument.type
        if info.type_class is TypeClass.POINTER and _is_private(info.target):
            root = _root(argument)
            variable = None if root is None else root.referenced_key
            yield _Event(call, variable, False, True, skippable)


def _read_target(node: Node, skippable: int) -> _Event | None:
    """Give what a node assigns to, or takes the address of; None if that is no variable's."""
    is_address = node.kind == kinds.UNARY and node.operator == kinds.ADDRESS_OF
    if not (is_address or is_assignment(node)):
        return None
    target = base_object(node.children[0])
    if target.kind == kinds.DECLARATION_REFERENCE:
        if target.type.space != "private":
            return None
        is_whole = not is_address and target is strip(node.children[0])
        return _Event(node, target.referenced_key, is_whole, False, skippable)
    root = _root(target)
    if root is not None:
        return _Event(node, root.referenced_key, False, False, skippable)
    return _Event(node, None, False, True, skippable) if _is_private(target.type) else None


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
