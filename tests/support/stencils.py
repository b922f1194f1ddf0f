"""Launches of star stencils, as code generators write them: arrays with ghost layers."""

import math
from collections.abc import Iterator, Sequence
from itertools import product

from kernelcast.expressions import TRUE, Condition, Expr, Symbol, SymbolKind, conjunction, less
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess, ModelledLaunch
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace


def make_star(  # noqa: PLR0913 - what tells stencils apart
    *,
    array: Sequence[int],
    radius: int,
    local_size: Sequence[int],
    fold: tuple[int, int, int] = (1, 1, 1),
    element_bytes: int = 8,
    registers: int | None = 32,
    first: Sequence[int] | None = None,
    interior: Sequence[int] | None = None,
    is_rounded: bool = True,
    alignment_bytes: int = 0,
) -> ModelledLaunch:
    """Make the launch of an out-of-place star stencil of arrays with dimension 0 contiguous."""
    rank = len(array)
    begin = tuple(first or (radius,) * rank)
    computed = tuple(interior or (n - 2 * radius for n in array))
    items = [math.ceil(size / by) for size, by in zip(computed, fold[:rank], strict=True)]
    guard: Condition = TRUE
    if is_rounded:
        guard = conjunction(*(less(one, size) for one, size in zip(_ids(rank), items, strict=True)))
        items = [
            math.ceil(size / local) * local for size, local in zip(items, local_size, strict=True)
        ]
    corners = list(product(*(range(by) for by in fold[:rank])))
    # A dictionary keeps the order and drops what several results need.
    loads = [*dict.fromkeys(
        tuple(a + b for a, b in zip(corner, offset, strict=True))
        for corner in corners
        for offset in _star(radius, rank)
    )]  # fmt: skip
    if len(corners) > 1:
        loads.sort(key=lambda place: place[::-1])  # generators load in the order of addresses
    pitches = [math.prod(array[:axis]) * element_bytes for axis in range(rank)]
    base = sum(
        (
            pitch * (by * one + start)
            for pitch, by, one, start in zip(pitches, fold, _ids(rank), begin, strict=False)
        ),
        start=Expr.constant(0),
    )
    accesses: list[MemoryAccess] = []
    for kind, buffer, places in (
        (AccessKind.LOAD, "src", loads), (AccessKind.STORE, "dst", corners)
    ):  # fmt: skip
        for place in places:
            moved = sum(by * pitch for by, pitch in zip(place, pitches, strict=True))
            accesses.append(
                MemoryAccess(
                    site=len(accesses), block=0, line=1, text=f"{buffer}{list(place)}",
                    kind=kind, space=MemorySpace.GLOBAL, buffer=buffer, bytes=element_bytes,
                    offset_bytes=base + moved, pattern=AddressPattern.QUASI_AFFINE, guard=guard,
                )
            )  # fmt: skip
    size = math.prod(array) * element_bytes
    return ModelledLaunch(
        kernel=f"star{rank}d_r{radius}",
        ndrange=NDRange(global_size=tuple(items), local_size=tuple(local_size)),
        accesses=tuple(accesses),
        buffers={"src": size, "dst": size},
        alignments={"src": alignment_bytes, "dst": alignment_bytes},
        registers=registers,
        updates_per_work_item=math.prod(fold[:rank]),
    )


def _ids(rank: int) -> list[Expr]:
    return [Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis)) for axis in range(rank)]


def _star(radius: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    yield (0,) * dimensions
    for axis in range(dimensions):
        for distance in range(1, radius + 1):
            for sign in (-1, 1):
                yield tuple(sign * distance if one == axis else 0 for one in range(dimensions))
