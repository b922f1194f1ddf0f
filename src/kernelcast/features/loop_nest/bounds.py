"""Where loops begin and end: sums, and the least or greatest of several, as blocked loops have."""

from collections.abc import Callable, Mapping

from kernelcast.expressions import Expr, maximum, minimum
from kernelcast.features.loop_nest.listing import Listing
from kernelcast.features.loop_nest.whole_numbers import peel, read_whole_number
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node

Combine = Callable[[Expr, Expr], Expr]
_CALLS: Mapping[str, Combine] = {
    "min": minimum, "MIN": minimum, "max": maximum, "MAX": maximum,
}  # fmt: skip
_RISING = frozenset((kinds.LESS, kinds.LESS_EQUAL))
_FALLING = frozenset((kinds.GREATER, kinds.GREATER_EQUAL))
_TWO = 2


def read_bound(node: Node, known: Mapping[int, Expr], listing: Listing, shift: int = 0) -> Expr:
    """Read a bound: as `read_whole_number`, or ``min(a, b)``, or ``a < b ? a : b``.

    Parameters
    ----------
    known : mapping of int to Expr
        Values of variables, by the key of their declaration.
    shift : int
        Is added.

    Raises
    ------
    InputError
        If it is none of these.
    """
    node = peel(node)
    if node.kind == kinds.CALL and node.spelling in _CALLS and len(node.children) == _TWO + 1:
        sides = [read_bound(one, known, listing, shift) for one in node.children[1:]]
        return _CALLS[node.spelling](*sides)
    if node.kind == kinds.CONDITIONAL:
        return _read_choice(node, known, listing, shift)
    return read_whole_number(node, known, listing) + shift


def _read_choice(node: Node, known: Mapping[int, Expr], listing: Listing, shift: int) -> Expr:
    condition, then, otherwise = (peel(one) for one in node.children)
    if condition.kind == kinds.BINARY and condition.operator in _RISING | _FALLING:
        sides = [read_bound(one, known, listing, shift) for one in condition.children]
        chosen = [read_bound(one, known, listing, shift) for one in (then, otherwise)]
        if sides in (chosen, chosen[::-1]):
            takes_less = (condition.operator in _RISING) == (sides == chosen)
            return minimum(*chosen) if takes_less else maximum(*chosen)
    raise listing.refusal(
        node, f"{node.text()} is no least or greatest of two; expected `min(a, b)`, `max(a, b)` "
        "or `a < b ? a : b`"
    )  # fmt: skip
