"""Tells which elements of a work-item's own arrays no compiler can hold in registers."""

from functools import cached_property

from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.lvalues import base_object
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node
from kernelcast.features.syntax.types import TypeClass

_IN_MEMORY = frozenset((kinds.SUBSCRIPT, kinds.MEMBER_REFERENCE))


class OwnArrays:
    """The arrays of one function."""

    def __init__(self, function: Node) -> None:
        self._function = function

    def is_by_data(self, node: Node) -> bool:
        """Tell whether an object is an element of such an array, known only at run time.

        Loops with counters are written out, so that an index made of counters is a number. One made
        of what was read from memory, of ids, or of variables that change as the work-item goes on
        is not.
        """
        node = base_object(node)
        is_by_data = False
        while node.kind == kinds.SUBSCRIPT:
            array, index = node.children[0], node.children[-1]
            is_by_data = is_by_data or self._is_run_time(index)
            node = base_object(base_object(array))
        is_array = node.type.type_class is TypeClass.ARRAY and node.type.space == "private"
        return is_by_data and is_array and node.kind == kinds.DECLARATION_REFERENCE

    def _is_run_time(self, node: Node) -> bool:
        return node.constant is None and any(
            _reads_memory(one)
            or (one.kind == kinds.DECLARATION_REFERENCE and one.referenced_key in self._changing)
            for one in node.walk()
        )

    @cached_property
    def _changing(self) -> frozenset[int]:
        """Variables whose value a compiler that writes loops out does not know."""
        steps = [split_for(one).step for one in self._function.walk() if one.kind == kinds.FOR]
        counting = {child.key for step in steps if step is not None for child in step.walk()}
        changing = {
            base_object(one.children[0]).referenced_key
            for one in self._function.walk()
            if one.key not in counting and _changes_variable(one)
        }
        for one in self._function.walk():  # in the order of the source: what it is made of first
            if one.kind == kinds.VARIABLE and one.children and one.children[-1].constant is None:
                parts = [*one.children[-1].walk()]
                if any(map(_reads_memory, parts)) or any(
                    part.referenced_key in changing
                    for part in parts
                    if part.kind == kinds.DECLARATION_REFERENCE
                ):
                    changing.add(one.key)
        return frozenset(changing)


def _reads_memory(node: Node) -> bool:
    """Tell whether a node reads what lies in memory, or an id."""
    if node.kind == kinds.UNARY:
        return node.operator == kinds.DEREFERENCE
    if node.kind == kinds.CALL:
        return node.spelling.startswith("get_")
    return node.kind in _IN_MEMORY


def _changes_variable(node: Node) -> bool:
    if node.kind == kinds.COMPOUND_ASSIGNMENT:
        return True
    operator = kinds.ASSIGN if node.kind == kinds.BINARY else None
    return (operator is not None and node.operator == operator) or (
        node.kind == kinds.UNARY and node.operator in kinds.STEPS
    )
