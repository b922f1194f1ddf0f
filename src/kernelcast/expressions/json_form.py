"""Expressions and conditions as JSON: lists, numbers and texts.

An expression is the list of its terms, each a coefficient followed by its factors; a factor is a
list that begins with its kind::

    4*global_id(0) - 1      [[4, ["global_id", 0]], [-1]]
    floor(n / 4)            [[1, ["floor_div", [[1, ["scalar", "n"]]], [[4]]]]]
    n >= 0                  [">=", [[1, ["scalar", "n"]]]]
"""

from collections.abc import Callable
from typing import Any, TypeVar

from kernelcast.expressions.choices import (
    Maximum,
    Minimum,
    Select,
    maximum,
    minimum,
    select,
)
from kernelcast.expressions.comparisons import Comparison, Relation, compare
from kernelcast.expressions.conditions import FALSE, TRUE, Always, Condition, Unknown
from kernelcast.expressions.divisions import (
    FloorDiv,
    FloorMod,
    TruncDiv,
    TruncMod,
    floor_div,
    floor_mod,
    trunc_div,
    trunc_mod,
)
from kernelcast.expressions.geometric import Geometric, geometric
from kernelcast.expressions.junctions import And, Or, conjunction, disjunction
from kernelcast.expressions.polynomials import Atom, Expr, Operand
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.records.errors import InputError

T = TypeVar("T")

_NAMES: dict[type[object], str] = {
    FloorDiv: "floor_div",
    FloorMod: "floor_mod",
    TruncDiv: "trunc_div",
    TruncMod: "trunc_mod",
    Minimum: "min",
    Maximum: "max",
}
_FACTORIES: dict[str, Callable[[Operand, Operand], Expr]] = {
    "floor_div": floor_div,
    "floor_mod": floor_mod,
    "trunc_div": trunc_div,
    "trunc_mod": trunc_mod,
    "min": minimum,
    "max": maximum,
}


def to_json(expr: Expr) -> list[object]:
    """Write an expression as lists, numbers and texts.

    Examples
    --------
    >>> from kernelcast.expressions import Symbol, SymbolKind
    >>> to_json(4 * Expr.symbol(Symbol(SymbolKind.SCALAR, "n")) - 1)
    [[4, ['scalar', 'n']], [-1]]
    """
    return [[coefficient, *map(_write_atom, monomial)] for monomial, coefficient in expr.terms]


def from_json(content: object) -> Expr:
    """Read what `to_json` wrote.

    Raises
    ------
    InputError
        If it is anything else.
    """
    return _guarded(_read_expr, content, "an expression")


def condition_to_json(condition: Condition) -> bool | list[object]:
    """Write a condition as lists, numbers and texts; `TRUE` and `FALSE` as booleans."""
    match condition:
        case Always():
            return condition.holds
        case Comparison():
            return [str(condition.relation), to_json(condition.expr)]
        case Unknown():
            return ["unknown", *condition.sources]
        case And() | Or():
            name = "and" if isinstance(condition, And) else "or"
            return [name, *map(condition_to_json, condition.parts)]
    msg = f"{type(condition).__name__} has no JSON form; use the conditions of this package"
    raise InputError(msg)


def condition_from_json(content: object) -> Condition:
    """Read what `condition_to_json` wrote.

    Raises
    ------
    InputError
        If it is anything else.
    """
    return _guarded(_read_condition, content, "a condition")


def _write_atom(atom: Atom) -> list[object]:
    match atom:
        case Symbol():
            return [str(atom.kind), atom.name or atom.axis]
        case Select():
            arms = (to_json(atom.then), to_json(atom.otherwise))
            return ["select", condition_to_json(atom.condition), *arms]
        case Geometric():
            word = "divided" if atom.is_division else "multiplied"
            return [word, to_json(atom.start), atom.factor, to_json(atom.iteration)]
        case FloorDiv() | FloorMod() | TruncDiv() | TruncMod():
            return [_NAMES[type(atom)], to_json(atom.numerator), to_json(atom.denominator)]
        case Minimum() | Maximum():
            return [_NAMES[type(atom)], to_json(atom.left), to_json(atom.right)]
    msg = f"{type(atom).__name__} has no JSON form; use the atoms of this package"
    raise InputError(msg)


def _guarded(read: Callable[[Any], T], content: object, what: str) -> T:
    try:
        return read(content)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError):
        msg = f"{content!r:.200} is not {what}; give what was written by this package"
        raise InputError(msg) from None


def _read_expr(content: Any) -> Expr:  # noqa: ANN401 - a file may hold anything
    total = Expr({})
    for coefficient, *factors in _take_list(content):
        product = Expr.constant(_take_integer(coefficient))
        for factor in factors:
            product = product * _read_atom(_take_list(factor))
        total = total + product
    return total


def _read_atom(content: list[Any]) -> Expr:
    match content:
        case [("scalar" | "iteration" | "content") as kind, str(name)]:
            return Expr.symbol(Symbol(SymbolKind(kind), name))
        case ["select", condition, then, otherwise]:
            return select(_read_condition(condition), _read_expr(then), _read_expr(otherwise))
        case [("multiplied" | "divided") as word, start, factor, times]:
            number = _take_integer(factor)
            is_division = word == "divided"
            return geometric(_read_expr(start), number, _read_expr(times), is_division=is_division)
        case [kind, one, other]:
            return _FACTORIES[kind](_read_expr(one), _read_expr(other))
    kind, axis = content
    return Expr.symbol(Symbol(SymbolKind(kind), axis=_take_integer(axis)))


def _read_condition(content: Any) -> Condition:  # noqa: ANN401 - a file may hold anything
    if isinstance(content, bool):
        return TRUE if content else FALSE
    kind, *parts = _take_list(content)
    if kind == "unknown":
        return Unknown(tuple(map(_take_text, parts)))
    if kind in {"and", "or"}:
        join = conjunction if kind == "and" else disjunction
        return join(*map(_read_condition, parts))
    [expr] = parts
    return compare(_read_expr(expr), Relation(kind))


def _take_list(content: object) -> list[Any]:
    if not isinstance(content, list):
        raise TypeError
    return content


def _take_integer(content: object) -> int:
    if not isinstance(content, int) or isinstance(content, bool):
        raise TypeError
    return content


def _take_text(content: object) -> str:
    if not isinstance(content, str):
        raise TypeError
    return content
