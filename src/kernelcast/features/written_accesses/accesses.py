"""Reads accesses such as ``src[x-1][y] if x > 0`` into address expressions, guards and loops."""

from collections.abc import Mapping
from dataclasses import replace

from kernelcast.expressions import TRUE, Expr, Symbol, SymbolKind, floor_div, less, maximum
from kernelcast.expressions.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.features.written_accesses.arrays import WrittenArray
from kernelcast.features.written_accesses.parser import COORDINATES, Parser, Scope, Token


def read_access(
    text: str,
    arrays: Mapping[str, WrittenArray],
    *,
    kind: AccessKind = AccessKind.LOAD,
    scalars: tuple[str, ...] = (),
    site: int = 0,
) -> MemoryAccess:
    """Read one access.

    Parameters
    ----------
    text : str
        ``NAME[INDEX]...``, then loops as ``for k in range(START, STOP, STEP)``, outermost first,
        then a guard as ``if CONDITION``. One index per dimension of the array, the contiguous
        one first; ``x``, ``y`` and ``z`` are the global ids.
    arrays : mapping of str to WrittenArray
        Declared arrays by their names.
    site : int
        Its number, which no other access has.

    Raises
    ------
    InputError
        If the text cannot be read, names an array that is not declared, or is not affine; the
        message points at the place.

    Examples
    --------
    >>> from kernelcast.features.written_accesses.arrays import read_array
    >>> src = read_array("src:float64:640x512")
    >>> access = read_access("src[x-1][y] if x > 0", {"src": src})
    >>> print(access.offset_bytes, "if", access.guard)
    8*global_id(0) + 5120*global_id(1) - 8 if global_id(0) >= 1
    """
    parser = Parser(text, Scope(scalars=scalars, arrays=tuple(arrays)))
    start = _skip_indices(parser)
    loops = _read_loops(parser, site)
    guard = parser.condition() if parser.take("if") else TRUE
    parser.end()
    end, parser.position = parser.position, 0
    array = _read_array(parser, arrays)
    offset = _read_offset(parser, array)
    if parser.position != start:
        parser.fail(f"expected one of `[`, `for`, `if` or the end, found {parser.next.text!r}")
    parser.position = end
    return MemoryAccess(
        site=site, block=site, line=0, text=text.strip(), kind=kind, space=array.space,
        buffer=array.name, bytes=array.element.bytes, offset_bytes=offset,
        pattern=AddressPattern.QUASI_AFFINE, guard=guard, loops=loops,
    )  # fmt: skip


def _skip_indices(parser: Parser) -> int:
    """Go to what follows the indices, for they may name loops that stand behind them."""
    depth = 0
    while parser.next.kind != "end" and not (depth == 0 and parser.next.text in {"for", "if"}):
        depth += {"[": 1, "]": -1}.get(parser.next.text, 0)
        parser.position += 1
    return parser.position


def _read_loops(parser: Parser, site: int) -> tuple[LoopFacts, ...]:
    loops: list[LoopFacts] = []
    while parser.take("for"):
        variable = parser.name()
        _check_free(parser, variable)
        start, stop, step = parser.loop_range()
        name = f"{site}:{variable.text}"
        iteration = Expr.symbol(Symbol(SymbolKind.LOOP, name))
        value = start + step * iteration
        # C rounds upwards here; a step that is a scalar counts upwards.
        is_upwards = step.constant_value is None or step.constant_value > 0
        gap, width = (stop - start, step) if is_upwards else (start - stop, -step)
        loops.append(LoopFacts(
            name=name, line=0, is_exact=True,
            condition=less(value, stop) if is_upwards else less(stop, value),
            trip_count=maximum(floor_div(gap + width - 1, width), 0),
        ))  # fmt: skip
        known = {**parser.scope.loops, variable.text: value}
        parser.scope = replace(parser.scope, loops=known)
    return tuple(loops)


def _check_free(parser: Parser, variable: Token) -> None:
    scope = parser.scope
    if variable.text in COORDINATES or variable.text in scope.loops or (
        variable.text in scope.scalars or variable.text in scope.arrays
    ):  # fmt: skip
        parser.fail(f"{variable.text!r} has a meaning already; name the loop's otherwise", variable)


def _read_array(parser: Parser, arrays: Mapping[str, WrittenArray]) -> WrittenArray:
    name = parser.name()
    array = arrays.get(name.text)
    if array is None:
        declared = ", ".join(arrays) or "none"
        parser.fail(
            f"array {name.text!r} is not declared; declared are: {declared}. Declare it as "
            f"{name.text}:TYPE:EXTENTS",
            name,
        )
    return array


def _read_offset(parser: Parser, array: WrittenArray) -> Expr:
    place = parser.next
    indices: list[Expr] = []
    while parser.take("["):
        indices.append(parser.expression())
        while parser.take(","):
            indices.append(parser.expression())
        parser.expect("]")
    wanted = max(1, len(array.extents))
    if len(indices) != wanted:
        parser.fail(
            f"{array.name!r} has {wanted} dimension{'s' * (wanted > 1)}, found {len(indices)} "
            "indices; give one per dimension, the contiguous one first",
            place,
        )
    element = Expr.constant(0)
    stride = Expr.constant(1)
    for index, extent in zip(indices, array.extents or (stride,), strict=True):
        element, stride = element + index * stride, stride * extent
    return element * array.element.bytes
