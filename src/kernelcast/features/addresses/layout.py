"""Initial values of structures and arrays, laid out as in memory."""

import re
from collections.abc import Sequence

from kernelcast.features.addresses.values import ZERO, Cells, Opaque, Value, blur
from kernelcast.features.syntax.tree import Node
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_DESIGNATOR = re.compile(r"[{,]\s*[.\[]")
_MOST_CELLS = 512


def lay_out(node: Node, values: Sequence[Value]) -> Cells:
    """Put the values of an initialiser list in their places.

    Parameters
    ----------
    node : Node
        The list; where it names members (``.x = 1``), nothing is known of what is where.

    Returns
    -------
    Cells
        What the list does not give is zero, and not known to be here.
    """
    blurred = Cells({}, blur(*values, reason="an initial value that is not followed"))
    span = node.span
    is_hidden = span is None or not span.is_exact
    if is_hidden or len(values) > _MOST_CELLS or _DESIGNATOR.search(node.text()):
        return blurred
    places = _places(node, len(values))
    if places is None:
        return blurred
    cells: dict[tuple[int, int], Value] = {}
    for (offset, info), value in zip(places, values, strict=True):
        if isinstance(value, Cells):
            cells |= {(at + offset, size): one for (at, size), one in value.cells.items()}
        elif info.type_class in (TypeClass.RECORD, TypeClass.ARRAY):
            return blurred  # braces were left out, or a copy
        else:
            cells[offset, max(1, info.bytes)] = value
    if places:
        _fill_up(cells, node.type, places[0][1])
    return Cells(cells, Opaque(reason="an initial value that is not followed"))


def _fill_up(cells: dict[tuple[int, int], Value], info: TypeInfo, element: TypeInfo) -> None:
    """Set the elements to zero that an array's list leaves out (C99 6.7.8)."""
    size = max(1, element.bytes)
    if info.type_class is TypeClass.ARRAY:
        for index in range(min(info.bytes // size, _MOST_CELLS)):
            if not any(at <= index * size < at + width for at, width in cells):
                cells[index * size, size] = ZERO


def _places(node: Node, count: int) -> list[tuple[int, TypeInfo]] | None:
    """Give offset and type of the first members or elements."""
    info = node.type
    if info.type_class is TypeClass.ARRAY:
        element = info.target
        if element is None or not element.bytes:
            return None
        return [(index * element.bytes, element) for index in range(count)]
    members = node.unit.members_of(node)
    return members[:count] if len(members) >= count else None
