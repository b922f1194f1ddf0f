"""Indices, bounds and conditions over loop variables and constants."""

from collections.abc import Callable, Mapping
from operator import add, mul, sub
from types import MappingProxyType

from kernelcast.expressions import (
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    equal,
    floor_mod,
    less,
    less_equal,
    maximum,
    minimum,
    negation,
    not_equal,
    trunc_div,
    trunc_mod,
)
from kernelcast.features.loop_nest.listing import Listing
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.records.errors import InputError

_OPERATORS: dict[int, Callable[[Expr, Expr], Expr]] = {
    kinds.ADD: add, kinds.SUBTRACT: sub, kinds.MULTIPLY: mul,
}  # fmt: skip
Divide = Callable[[Expr, int], Expr | None]
"""Of an expression and a number above 0."""
_NO_DIVISIONS: Mapping[int, Divide] = MappingProxyType({})
_WRAPPERS = frozenset((kinds.UNEXPOSED, kinds.CAST))


def peel(node: Node) -> Node:
    """Give what stands within parentheses, casts and implicit steps."""
    node = strip(node)
    while node.kind in _WRAPPERS and node.children:
        node = strip(node.children[-1])
    return node


def read_whole_number(
    node: Node,
    known: Mapping[int, Expr],
    listing: Listing,
    divisions: Mapping[int, Divide] = _NO_DIVISIONS,
) -> Expr:
    """Read an index or a bound.

    Parameters
    ----------
    known : mapping of int to Expr
        Values of variables, by the key of their declaration.
    divisions : mapping of int to function
        What operators with a number above 0 on their right make; addresses have none.

    Raises
    ------
    InputError
        If it is no sum of loop variables times constants.
    """
    value = _read(node, known, listing, divisions)
    for monomial, _ in value.products:
        if sum(not atom.is_parameter for atom in monomial) > 1:
            raise listing.refusal(
                node, f"the index {node.text()} multiplies loop variables{_ADVICE}"
            )
    return value


_ADVICE = "; expected a sum of loop variables times constants"


def _read(
    node: Node, known: Mapping[int, Expr], listing: Listing, divisions: Mapping[int, Divide]
) -> Expr:
    node = peel(node)
    constant = node.constant
    if isinstance(constant, int):
        return Expr.constant(constant)
    if node.kind == kinds.DECLARATION_REFERENCE:
        return _read_name(node, known, listing)
    if node.kind == kinds.UNARY and node.operator in (kinds.PLUS, kinds.MINUS):
        value = _read(node.children[0], known, listing, divisions)
        return -value if node.operator == kinds.MINUS else value
    if node.kind == kinds.BINARY and node.operator in _OPERATORS:
        left, right = (_read(child, known, listing, divisions) for child in node.children)
        return _OPERATORS[node.operator](left, right)
    if node.kind == kinds.BINARY and node.operator in divisions:
        found = _divide(node, known, listing, divisions)
        if found is not None:
            return found
    raise listing.refusal(node, f"{node.text() or 'this'} is not affine{_ADVICE}")


def _divide(
    node: Node, known: Mapping[int, Expr], listing: Listing, divisions: Mapping[int, Divide]
) -> Expr | None:
    divisor = peel(node.children[1]).constant
    if not isinstance(divisor, int) or divisor < 1:
        return None
    return divisions[node.operator](_read(node.children[0], known, listing, divisions), divisor)


def _read_name(node: Node, known: Mapping[int, Expr], listing: Listing) -> Expr:
    found = known.get(node.referenced_key)
    if found is not None:
        return found
    if node.spelling in listing.constants:
        return Expr.symbol(Symbol(SymbolKind.SCALAR, node.spelling))
    raise listing.refusal(
        node, f"{node.spelling} is neither a loop variable nor a constant{_ADVICE}"
    )


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
