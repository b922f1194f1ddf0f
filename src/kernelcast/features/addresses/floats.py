"""Tells whether floating-point numbers may decide anything that following a kernel finds out.

In most kernels they do not: addresses, conditions and trip counts come from whole numbers alone.
Then what a loop does to floating-point arrays need not be found out by running it on trial. That
was half of all that was evaluated for a softmax, and three quarters for a matrix product.
"""

from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, SyntaxTree, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_TESTING = frozenset((kinds.IF, kinds.WHILE, kinds.SWITCH, kinds.CONDITIONAL))
_NOT_FOLLOWED = frozenset((kinds.MEMBER_REFERENCE, kinds.ASSEMBLER))
# Most nodes: they have no parts, or just hand on what these give.
_PLAIN = frozenset((
    kinds.DECLARATION_REFERENCE, kinds.INTEGER, kinds.FLOATING, kinds.CHARACTER, kinds.STRING,
    kinds.PARENTHESES, kinds.COMPOUND, kinds.DECLARATION, kinds.VARIABLE, kinds.PARAMETER,
    kinds.RETURN, kinds.EMPTY,
))  # fmt: skip


def may_decide(tree: SyntaxTree, kernel: Node) -> bool:
    """Tell whether floating-point numbers may become whole numbers, pointers or conditions.

    Returns
    -------
    bool
        True also where that is not plain to see: where structures are used, pointers to a
        work-item's own numbers, or functions that take both numbers and pointers.
    """
    seen = {kernel.key}
    stack = [kernel]
    while stack:
        node = stack.pop()
        if node.kind not in _PLAIN and _may_lead_out(node):
            return True
        if node.kind == kinds.CALL:
            definition = tree.definition_of(node)
            if definition is not None and definition.key not in seen:
                seen.add(definition.key)
                stack.append(definition)
        stack += node.children
    return False


def _may_lead_out(node: Node) -> bool:
    """Tell whether a node makes something else of floating-point numbers."""
    kind = node.kind
    if kind in _NOT_FOLLOWED:
        return True
    test = _test_of(node)
    if test is not None and _is_float(test):
        return True
    if not kinds.FIRST_EXPRESSION <= kind <= kinds.LAST_EXPRESSION:
        return False
    if kind == kinds.CAST and node.type.type_class is TypeClass.POINTER:
        return True
    if kind == kinds.SUBSCRIPT or (kind == kinds.UNARY and node.operator == kinds.DEREFERENCE):
        return _is_float(node) and _may_be_any_variable(node)
    if kind == kinds.CALL:
        arguments = node.children[1:]
        is_plain = _is_float(node) and not any(map(_is_pointer, arguments))
        return not is_plain and any(map(_is_float, arguments))
    return not _holds_floats(node.type) and any(map(_is_float, node.children))


def _test_of(node: Node) -> Node | None:
    """Give what decides where a statement or a conditional expression goes on."""
    if node.kind in _TESTING:
        return node.children[0]
    if node.kind == kinds.DO:
        return node.children[-1]
    return split_for(node).condition if node.kind == kinds.FOR else None


def _may_be_any_variable(place: Node) -> bool:
    """Tell whether an object of the work-item's own is no element of an array named there."""
    if place.type.space not in ("private", "generic"):
        return False
    while place.kind == kinds.SUBSCRIPT:
        place = strip(place.children[0])
        while place.kind == kinds.UNEXPOSED and place.children:
            place = strip(place.children[0])
    is_array = place.type.type_class is TypeClass.ARRAY
    return place.kind != kinds.DECLARATION_REFERENCE or not is_array


def _holds_floats(info: TypeInfo) -> bool:
    while info.type_class is TypeClass.ARRAY and info.target is not None:
        info = info.target
    return info.type_class is TypeClass.FLOAT


def _is_float(node: Node) -> bool:
    return node.type.type_class is TypeClass.FLOAT


def _is_pointer(node: Node) -> bool:
    return node.type.type_class is TypeClass.POINTER
