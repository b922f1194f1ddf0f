"""The loops of a listing: bounds, steps, and that they are perfectly nested."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kernelcast.expressions import Expr, Symbol, SymbolKind, maximum, minimum
from kernelcast.expressions.loop_nest import NestLoop
from kernelcast.features.loop_nest.listing import Listing, is_loop
from kernelcast.features.loop_nest.numbers import peel, read_bound, read_whole_number
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node
from kernelcast.records.errors import InputError

_PARTS = 4
_TOWARDS = {
    kinds.LESS: 0, kinds.LESS_EQUAL: 1, kinds.GREATER: 0, kinds.GREATER_EQUAL: -1,
    kinds.NOT_EQUAL: 0,
}  # fmt: skip
"""What to add to a condition's right side for the first value that is not reached."""
_MIRRORED = {
    kinds.LESS: kinds.GREATER, kinds.GREATER: kinds.LESS, kinds.NOT_EQUAL: kinds.NOT_EQUAL,
    kinds.LESS_EQUAL: kinds.GREATER_EQUAL, kinds.GREATER_EQUAL: kinds.LESS_EQUAL,
}  # fmt: skip
_FORM = "; expected `for (int i = start; i < stop; i += step)`"


@dataclass(slots=True, kw_only=True)
class Nest:
    """Loops found, and what the innermost one does."""

    loops: list[NestLoop] = field(default_factory=list)
    """Outermost first."""
    variables: dict[int, Expr] = field(default_factory=dict)
    """Their variables, by the key of the declaration."""
    body: list[Node] = field(default_factory=list)
    """Statements of the innermost loop."""
    notes: list[str] = field(default_factory=list)
    """What was assumed."""
    guards: list[tuple[Node, bool]] = field(default_factory=list)
    """Conditions between loops, and whether iterations go on where they hold."""


def find_nest(listing: Listing) -> Nest:
    """Find the nest of a listing.

    Raises
    ------
    InputError
        If there is none, several, one that is not perfect, or a loop of another form.
    """
    outer = [one for one in listing.statements if is_loop(one)]
    if not outer:
        msg = f"{listing.name}: no loop; give declarations and one loop nest"
        raise InputError(msg)
    if len(outer) > 1:
        raise listing.refusal(outer[1], "a second loop nest; give one at a time")
    nest = Nest()
    loop: Node | None = outer[0]
    while loop is not None:
        loop = _enter(loop, nest, listing)
    return nest


def _enter(loop: Node, nest: Nest, listing: Listing) -> Node | None:
    """Read a loop's head; give the loop in it, if there is one."""
    if loop.kind != kinds.FOR or len(loop.children) != _PARTS:
        raise listing.refusal(loop, f"a loop without start, condition and step{_FORM}")
    start, condition, step, body = loop.children
    variable, name, first = _read_start(start, nest, listing)
    by = _read_step(step, variable, listing)
    stop = _read_stop(condition, variable, by, nest, listing)
    named = sorted({one.spelling for one in step.walk()} & listing.constants)
    if named:
        nest.notes.append(
            f"loop over {name}: it steps by {by} whatever {', '.join(named)} is set to later"
        )
    nest.loops.append(
        NestLoop(name=name, start=first, stop=stop, step=by, line=listing.line_of(loop))
    )
    nest.variables[variable] = Expr.symbol(Symbol(SymbolKind.LOOP, name))
    inside = _open_guards(list(flatten(body)), nest)
    loops = [one for one in inside if is_loop(one)]
    if len(loops) > 1:
        raise listing.refusal(loops[1], "a second loop beside another one; give one loop per level")
    if loops and len(inside) > 1:
        other = next(one for one in inside if one is not loops[0])
        raise listing.refusal(
            other, "statements beside an inner loop; only the innermost loop may hold any"
        )
    if loops:
        return loops[0]
    nest.body = inside
    return None


def _open_guards(inside: list[Node], nest: Nest) -> list[Node]:
    """Give what stands behind conditions that decide whether inner loops run at all."""
    while inside and inside[0].kind == kinds.IF and any(is_loop(x) for x in _walk(inside)):
        condition, *sides = inside[0].children
        then = list(flatten(sides[0]))
        if len(inside) == 1 and len(sides) == 1:
            nest.guards.append((condition, True))
            inside = then
        elif len(then) == 1 and then[0].kind == kinds.CONTINUE and len(sides) == 1:
            nest.guards.append((condition, False))
            inside = inside[1:]
        else:
            break
    return inside


def _walk(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield from node.walk()


def flatten(body: Node) -> Iterator[Node]:
    """Give the statements of a body, without the braces around them."""
    if body.kind == kinds.COMPOUND:
        for child in body.children:
            yield from flatten(child)
    elif body.kind != kinds.EMPTY:
        yield body


def _read_start(start: Node, nest: Nest, listing: Listing) -> tuple[int, str, Expr]:
    """Give key, name and first value of a loop's variable."""
    if start.kind == kinds.DECLARATION and len(start.children) == 1:
        [declared] = start.children
        if declared.children:
            value = read_bound(declared.children[-1], nest.variables, listing)
            return declared.key, declared.spelling, value
    if start.kind == kinds.BINARY and start.operator == kinds.ASSIGN:
        left, right = start.children
        target = peel(left)
        value = read_bound(right, nest.variables, listing)
        return target.referenced_key, target.spelling, value
    raise listing.refusal(start, f"a loop that starts with {start.text()}{_FORM}")


def _read_step(step: Node, variable: int, listing: Listing) -> int:
    node = peel(step)
    is_its = bool(node.children) and peel(node.children[0]).referenced_key == variable
    if node.kind == kinds.UNARY and node.operator in kinds.STEPS and is_its:
        return kinds.STEPS[node.operator]
    by: Node | None = None
    operator = kinds.COMMA
    if node.kind == kinds.COMPOUND_ASSIGNMENT and is_its:
        operator, by = kinds.OPERATOR_OF_ASSIGNMENT[node.operator], node.children[1]
    elif node.kind == kinds.BINARY and node.operator == kinds.ASSIGN and is_its:
        sum_ = peel(node.children[1])
        if sum_.kind == kinds.BINARY and peel(sum_.children[0]).referenced_key == variable:
            operator, by = sum_.operator, sum_.children[1]
    if by is not None and operator in (kinds.ADD, kinds.SUBTRACT):
        size = read_whole_number(by, {}, listing).substitute(listing.values).constant_value
        if size:
            return size if operator == kinds.ADD else -size
        if size is None:
            raise listing.refusal(
                step,
                f"a loop that steps by {step.text()}; give {by.text()} a value where the listing "
                f"is read (-D {by.text()}=32)",
            )
    raise listing.refusal(step, f"a loop that steps by {step.text()}{_FORM} with a number as step")


def _read_stop(condition: Node, variable: int, by: int, nest: Nest, listing: Listing) -> Expr:
    """Give the first value that the variable does not reach."""
    node = peel(condition)
    if node.kind == kinds.BINARY and node.operator == kinds.LOGICAL_AND:
        one, other = (_read_stop(x, variable, by, nest, listing) for x in node.children)
        return minimum(one, other) if by > 0 else maximum(one, other)
    if node.kind != kinds.BINARY or node.operator not in _TOWARDS:
        raise listing.refusal(condition, f"a loop that goes on while {condition.text()}{_FORM}")
    left, right = node.children
    operator = node.operator
    if peel(left).referenced_key != variable:
        left, right, operator = right, left, _MIRRORED[operator]
    rising = operator in (kinds.LESS, kinds.LESS_EQUAL)
    falling = operator in (kinds.GREATER, kinds.GREATER_EQUAL)
    if peel(left).referenced_key != variable or (rising and by < 0) or (falling and by > 0):
        raise listing.refusal(
            condition, f"a loop by {by} that goes on while {condition.text()}{_FORM}"
        )
    if operator == kinds.NOT_EQUAL and abs(by) != 1:
        raise listing.refusal(
            condition, f"a loop by {by} until {condition.text()} no longer holds{_FORM}"
        )
    return read_bound(right, nest.variables, listing, _TOWARDS[operator])
