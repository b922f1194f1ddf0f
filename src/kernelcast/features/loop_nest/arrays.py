"""The arrays of a listing: dimensions, and elements as offsets."""

from dataclasses import dataclass

from kernelcast.expressions import Expr
from kernelcast.expressions.loop_nest import NestArray
from kernelcast.features.loop_nest.listing import Listing
from kernelcast.features.loop_nest.numbers import peel, read_whole_number
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node
from kernelcast.features.syntax.types import TypeClass, TypeInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element of an array."""

    array: str
    """The array."""
    offset_bytes: Expr
    """From its start."""
    type: TypeInfo
    """Of the element."""
    node: Node


def read_arrays(listing: Listing) -> dict[int, NestArray]:
    """Give the arrays that a listing declares, by the key of the declaration."""
    found: dict[int, NestArray] = {}
    for statement in listing.statements:
        if statement.kind != kinds.DECLARATION:
            continue
        for one in statement.children:
            if one.type.type_class is TypeClass.ARRAY:
                found[one.key] = _read_array(one, listing)
    return found


def _read_array(declared: Node, listing: Listing) -> NestArray:
    element, depth = declared.type, 0
    while element.type_class is TypeClass.ARRAY and element.target is not None:
        element, depth = element.target, depth + 1
    # libclang visits the innermost dimension first; an initialiser would follow.
    sizes = [child for child in declared.children if child.kind != kinds.INITIALISER_LIST]
    if len(sizes) != depth:
        raise listing.refusal(
            declared, f"array {declared.spelling} of unknown size; give each dimension"
        )
    dimensions = [read_whole_number(one, {}, listing) for one in reversed(sizes)]
    return NestArray(
        name=declared.spelling, element_bytes=element.bytes,
        element_type=element.name.removeprefix("const ").strip(), dimensions=tuple(dimensions),
    )  # fmt: skip


def read_element(
    node: Node, arrays: dict[int, NestArray], known: dict[int, Expr], listing: Listing
) -> Element:
    """Read an array element.

    Raises
    ------
    InputError
        If it goes through a pointer, has too few indices, or an index is not affine.
    """
    indices: list[Node] = []
    base = node
    while base.kind == kinds.SUBSCRIPT:
        indices.insert(0, base.children[1])
        base = peel(base.children[0])
    array = arrays.get(base.referenced_key)
    if array is None:
        raise listing.refusal(
            node,
            f"{base.text() or node.text()} is a pointer, and what it points to is not known; "
            "declare it as an array",
        )
    if len(indices) != len(array.dimensions):
        raise listing.refusal(
            node,
            f"{node.text()} has {len(indices)} indices; {array.name} has "
            f"{len(array.dimensions)} dimensions",
        )
    offset = Expr.constant(0)
    for size, index in zip(array.dimensions, indices, strict=True):
        offset = offset * size + read_whole_number(index, known, listing)
    return Element(
        array=array.name, offset_bytes=offset * array.element_bytes, type=node.type, node=node
    )
