"""Tells objects in memory from values, and the implicit steps between them apart.

libclang shows four different things as `UNEXPOSED` expressions above an object: the load of its
value, the access to a vector's lanes, the decay of an array to a pointer, and conversions of
values. Types and extents tell which is which.
"""

import re

from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.kinds import Implicit
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.features.syntax.types import TypeClass

_MEMBER = re.compile(rb"[\s)]*\.\s*(\w+)\s*")


_OBJECTS = frozenset((kinds.DECLARATION_REFERENCE, kinds.MEMBER_REFERENCE, kinds.SUBSCRIPT,
                      kinds.STRING, kinds.COMPOUND_LITERAL))  # fmt: skip


def is_object(node: Node) -> bool:
    """Tell whether an expression names an object in memory (an lvalue)."""
    node = strip(node)
    if node.kind == kinds.UNEXPOSED and node.children:
        return classify(node) is Implicit.LANES and is_object(node.children[0])
    if node.kind == kinds.UNARY:
        return node.operator == kinds.DEREFERENCE
    if node.kind == kinds.DECLARATION_REFERENCE:
        return node.type.type_class is not TypeClass.FUNCTION and not node.is_enumerator
    return node.kind in _OBJECTS


def classify(node: Node) -> Implicit:
    """Tell what an unexposed expression does."""
    if node.implicit is None:
        node.implicit = _classify(node)
    return node.implicit


def _classify(node: Node) -> Implicit:
    child = node.children[0]
    before, after = child.type, node.type
    if before.type_class in (TypeClass.ARRAY, TypeClass.FUNCTION):
        return Implicit.DECAY
    if before.is_vector and after.is_number and _takes_lanes(node, child):
        return Implicit.LANES
    return Implicit.LOAD if is_object(child) else Implicit.CONVERT


def _takes_lanes(node: Node, child: Node) -> bool:
    before, after = child.type, node.type
    if before.lanes != after.lanes:
        return True
    outer, inner = node.span, child.span
    return bool(outer and inner and outer.is_exact and outer.end > inner.end)


def lanes_of(node: Node) -> tuple[int, ...] | None:
    """Give the lanes that a `LANES` node takes; None where the source cannot be read.

    Examples
    --------
    ``v.yx`` gives (1, 0), ``v.hi`` of four lanes gives (2, 3).
    """
    outer, inner = node.span, node.children[0].span
    if not (outer and inner):
        return None
    # Within a macro's argument the ends are those of its text, within a macro they are its use's.
    found = _MEMBER.fullmatch(node.unit.places.source, inner.end, max(inner.end, outer.end))
    return parse_lanes(found[1].decode(), node.children[0].type.lanes) if found else None


def parse_lanes(text: str, lanes: int) -> tuple[int, ...] | None:
    """Read the letters of a lane access (OpenCL C 6.1.7).

    Examples
    --------
    >>> parse_lanes("s0f", 16), parse_lanes("odd", 4), parse_lanes("wx", 4)
    ((0, 15), (1, 3), (3, 0))
    """
    half = (4 if lanes == 3 else lanes) // 2
    named = {
        "lo": range(half), "hi": range(half, 2 * half),
        "even": range(0, 2 * half, 2), "odd": range(1, 2 * half, 2),
    }  # fmt: skip
    if text in named:
        return tuple(named[text])
    if text[:1] in ("s", "S") and len(text) > 1:
        return tuple(int(sign, 16) for sign in text[1:]) if _is_hex(text[1:]) else None
    order = "xyzw" if set(text) <= set("xyzw") else "rgba"
    return tuple(order.index(sign) for sign in text) if text and set(text) <= set(order) else None


def base_object(node: Node) -> Node:
    """Give the whole vector whose lanes an object expression names."""
    node = strip(node)
    while node.kind == kinds.UNEXPOSED and node.children:
        node = strip(node.children[0])
    return node


def _is_hex(text: str) -> bool:
    return all(sign in "0123456789abcdefABCDEF" for sign in text)
