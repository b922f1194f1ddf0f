"""Reads and writes parts of what a work-item keeps for itself: structures, arrays, variables."""

import re
from collections.abc import Sequence

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.features.addresses.values import (
    ZERO,
    Cells,
    Lanes,
    Opaque,
    Pointer,
    Value,
    blur,
)
from kernelcast.features.syntax.tree import Node
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_MOST_CELLS = 512
"""Cells per variable that are kept apart; a larger array is one thing."""
_AGGREGATES = (TypeClass.RECORD, TypeClass.ARRAY)


def make_cells(reason: str) -> Cells:
    """Give a structure or an array that nothing has been written to."""
    return Cells({}, Opaque(reason=reason, is_unset=True))


def is_aggregate(info: TypeInfo) -> bool:
    """Tell whether values of a type are kept in cells."""
    return info.type_class in _AGGREGATES


def read_part(content: Value, place: Pointer, info: TypeInfo, path: str) -> Value:
    """Read a part of a variable.

    Parameters
    ----------
    content : Value
        What the variable holds.
    place : Pointer
        Which part.
    path : str
        The members that name it, such as ``size.x``; empty if it is not known.
    """
    offset = place.offset.constant_value if isinstance(place.offset, Expr) else None
    if not isinstance(content, Cells):
        if offset == 0 and not is_aggregate(info) and _has_lanes(content, info.lanes):
            return content
        return blur(content, place, reason="a part of a variable")
    if offset is None:
        return blur(content, place.offset, reason="an array of the work-item's own")
    if is_aggregate(info):
        return _read_aggregate(content, offset, info.bytes)
    found = content.cells.get((offset, info.bytes))
    if found is not None:
        return found
    overlapping = [value for key, value in content.cells.items() if _overlaps(key, offset, info)]
    if overlapping:
        return blur(*overlapping, reason="a part of a member")
    is_given = content.name and path
    return name_given(f"{content.name}.{path}", info) if is_given else content.rest


def name_given(name: str, info: TypeInfo) -> Value:
    """Give the symbol of a number that the host passes to the kernel, or those of a vector."""
    if not info.is_integer:
        return Opaque(reason="a floating-point number")
    if info.is_vector:
        return Lanes(tuple(_scalar(f"{name}.s{lane:x}") for lane in range(info.lanes)))
    return _scalar(name)


def write_part(content: Value | None, place: Pointer, info: TypeInfo, value: Value) -> Value:
    """Give what a variable holds after a part of it was written."""
    if not isinstance(content, Cells):
        is_whole = place.offset == ZERO and not is_aggregate(info)
        if is_whole and (content is None or _has_lanes(content, info.lanes)):
            return value
        return blur(*(one for one in (content, value) if one is not None),
                    reason="a part of a variable was written")  # fmt: skip
    offset = place.offset.constant_value if isinstance(place.offset, Expr) else None
    if offset is None or len(content.cells) >= _MOST_CELLS:
        reason = "an array of the work-item's own"
        return Cells({}, blur(*content.cells.values(), content.rest, value, place.offset,
                              reason=reason))  # fmt: skip
    cells = {key: one for key, one in content.cells.items() if not _overlaps(key, offset, info)}
    if isinstance(value, Cells):
        if offset == 0 and not cells:
            return value
        moved = {(at + offset, size): one for (at, size), one in value.cells.items()}
        rest = blur(content.rest, value.rest)
        return Cells(cells | moved, rest)
    cells[offset, max(1, info.bytes)] = value
    return Cells(cells, content.rest, content.name)


def _read_aggregate(content: Cells, offset: int, size: int) -> Cells:
    cells = {
        (at - offset, width): value
        for (at, width), value in content.cells.items()
        if offset <= at and at + width <= offset + size
    }
    return Cells(cells, content.rest, content.name if offset == 0 else "")


def _overlaps(key: tuple[int, int], offset: int, info: TypeInfo) -> bool:
    at, width = key
    return at < offset + max(1, info.bytes) and offset < at + width


def _has_lanes(content: Value, lanes: int) -> bool:
    return lanes == (len(content.lanes) if isinstance(content, Lanes) else 1) or isinstance(
        content, Opaque
    )


def _scalar(name: str) -> Expr:
    return Expr.symbol(Symbol(SymbolKind.SCALAR, name))


_DESIGNATOR = re.compile(r"[{,]\s*[.\[]")


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
