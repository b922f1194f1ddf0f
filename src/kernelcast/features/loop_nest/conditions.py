"""Conditions of a loop's body that are comparisons of whole numbers the loops determine."""

from collections.abc import Callable, Mapping

from kernelcast.expressions import (
    Condition,
    Expr,
    equal,
    floor_mod,
    less,
    less_equal,
    negation,
    not_equal,
    trunc_div,
    trunc_mod,
)
from kernelcast.features.loop_nest.listing import Listing
from kernelcast.features.loop_nest.whole_numbers import Divide, peel, read_whole_number
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node
from kernelcast.records.errors import InputError

_RELATIONS: Mapping[int, Callable[[Expr, Expr], Condition]] = {
    kinds.LESS: less, kinds.LESS_EQUAL: less_equal, kinds.EQUAL: equal,
    kinds.NOT_EQUAL: not_equal, kinds.GREATER: lambda a, b: less(b, a),
    kinds.GREATER_EQUAL: lambda a, b: less_equal(b, a),
}  # fmt: skip


def _mask(value: Expr, bits: int) -> Expr | None:
    """Give the lowest bits of a number, all of which the mask takes; None for another mask."""
    return None if bits & (bits + 1) else floor_mod(value, bits + 1)


_DIVISIONS: Mapping[int, Divide] = {
    kinds.DIVIDE: trunc_div, kinds.REMAINDER: trunc_mod, kinds.BIT_AND: _mask,
}  # fmt: skip


def read_comparison(node: Node, known: Mapping[int, Expr], listing: Listing) -> Condition | None:
    """Read a comparison of whole numbers, or one that is compared with 0; None if it is another.

    Parameters
    ----------
    node : Node
        The condition; ``&&``, ``||`` and ``!`` are not read here.
    known : mapping of int to Expr
        Values of variables, by the key of their declaration.
    """
    node = peel(node)
    try:
        if node.kind == kinds.BINARY and node.operator in _RELATIONS:
            left, right = (
                read_whole_number(one, known, listing, _DIVISIONS) for one in node.children
            )
            return _RELATIONS[node.operator](left, right)
        return negation(equal(read_whole_number(node, known, listing, _DIVISIONS), 0))
    except InputError:
        return None
