"""Loop nests written as Python text, as the reference data and the tests give them."""

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernelcast.expressions import Expr, Symbol, SymbolKind, floor_div
from kernelcast.expressions.loop_nest import (
    LoopNest,
    NestAccess,
    NestArray,
    NestLoop,
    split_address,
)
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)

_BYTES = {"double": 8, "float": 4, "int": 4}
_KINDS = {
    "+": OperationKind.ADD, "-": OperationKind.ADD, "*": OperationKind.MULTIPLY,
    "/": OperationKind.DIVIDE,
}  # fmt: skip


def read_expression(text: str, loops: Iterable[str] = ()) -> Expr:
    """Read sums, differences and products of names and numbers."""
    return _convert(ast.parse(text, mode="eval").body, frozenset(loops))


def _convert(node: ast.expr, loops: frozenset[str]) -> Expr:
    if isinstance(node, ast.Constant):
        return Expr.constant(int(str(node.value)))
    if isinstance(node, ast.Name):
        kind = SymbolKind.LOOP if node.id in loops else SymbolKind.SCALAR
        return Expr.symbol(Symbol(kind, node.id))
    if isinstance(node, ast.UnaryOp):
        return -_convert(node.operand, loops)
    assert isinstance(node, ast.BinOp)
    left, right = _convert(node.left, loops), _convert(node.right, loops)
    if isinstance(node.op, ast.Add):
        return left + right
    return left - right if isinstance(node.op, ast.Sub) else left * right


def count_loops(
    loops: Iterable[tuple[str, Expr, Expr, int]],
) -> tuple[tuple[NestLoop, ...], dict[Symbol, Expr]]:
    """Make loops of starts, ends and steps, and say what their variables are by iterations."""
    found, values = [], dict[Symbol, Expr]()
    for name, start, stop, step in loops:
        first, end = start.substitute(values), stop.substitute(values)
        gap = end - first if step > 0 else first - end
        trips = floor_div(gap + abs(step) - 1, abs(step))
        found.append(NestLoop(name=name, trips=trips, step=Expr.constant(step)))
        own = Symbol(SymbolKind.LOOP, name)
        values[own] = first + step * Expr.symbol(own)
    return tuple(found), values


def split(address: Expr, loops: Sequence[NestLoop]) -> tuple[tuple[Expr, ...], Expr]:
    """Give strides and start of an address."""
    found = split_address(address, loops)
    assert found is not None
    return found


def make_nest(
    loops: Sequence[tuple[str, str, str, int]],
    arrays: Mapping[str, Sequence[str]],
    loads: Sequence[tuple[str, str]],
    stores: Sequence[tuple[str, str]],
    *,
    element_type: str = "double",
    flops: Mapping[str, float] | None = None,
    name: str = "nest",
) -> LoopNest:
    """Build a nest."""
    width = _BYTES[element_type]
    names = [loop for loop, *_ in loops]
    made = {
        array: NestArray(
            name=array, element_bytes=width,
            dimensions=tuple(map(read_expression, sizes)),
        )
        for array, sizes in arrays.items()
    }  # fmt: skip
    counted, values = count_loops(
        (loop, read_expression(start, names), read_expression(stop, names), step)
        for loop, start, stop, step in loops
    )
    accesses = [
        NestAccess(
            array=array, is_store=is_store, bytes=width, text=f"{array}[{indices}]",
            strides=strides, offset=offset,
        )
        for group, is_store in ((loads, False), (stores, True))
        for array, indices in group
        for strides, offset in [
            split(_flatten(indices, made[array], names).substitute(values), counted)
        ]
    ]  # fmt: skip
    return LoopNest(
        name=name,
        loops=counted,
        arrays=tuple(made.values()),
        accesses=tuple(accesses),
        executed=_count(flops or {}, accesses),
    )  # fmt: skip


def _flatten(indices: str, array: NestArray, loops: Sequence[str]) -> Expr:
    total = Expr.constant(0)
    places = [one for one in indices.strip("()").split(",") if one.strip()]
    for place, index in enumerate(places):
        if place:
            total = total * array.dimensions[place]
        total = total + read_expression(index.strip(), loops)
    return total * array.element_bytes


def _count(flops: Mapping[str, float], accesses: Sequence[NestAccess]) -> OperationCounts:
    counts: dict[Operation, float] = {}
    bits = 8 * max(one.bytes for one in accesses)
    for sign, times in flops.items():
        operation = Operation(kind=_KINDS[sign], number=NumberClass.FLOAT, bits=bits)
        counts[operation] = counts.get(operation, 0) + times
    memory = Counter(
        MemoryOperation(space=MemorySpace.GLOBAL, is_store=one.is_store, bytes=one.bytes)
        for one in accesses
    )
    return OperationCounts(operations=counts, memory=dict(memory))


def read_reference_nest(name: str, kernel: Mapping[str, Any]) -> LoopNest:
    """Build the nest of a kernel of ``cases.json``."""
    arrays = {one: sizes for one, (_, sizes) in kernel["variables"].items() if sizes}
    found: dict[str, list[tuple[str, str]]] = {"sources": [], "destinations": []}
    for side, accesses in found.items():
        for array, indices in kernel[side].items():
            accesses.extend((array, one) for one in indices if array in arrays)
    return make_nest(
        [(loop, start, stop, int(step)) for loop, start, stop, step in kernel["loop_stack"]],
        arrays,
        found["sources"],
        found["destinations"],
        element_type=kernel["datatype"][0],
        flops=kernel["flops"],
        name=name,
    )
