"""Indices and bounds as expressions over loop variables and constants."""

from collections.abc import Callable, Mapping
from operator import add, mul, sub
from types import MappingProxyType

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.features.loop_nest.listing import Listing
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, strip

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
