"""Accesses that provably leave their buffer, each with a work-item that does it."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.expressions import EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess
from kernelcast.expressions.evaluation import BoolArray, evaluate_where
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.bindings import WorkItems, bind_ids, bind_names
from kernelcast.records.ndrange import NDRange

_DEEPEST = 4
_Bindings = dict[Symbol, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """An access outside of its buffer.

    Parameters
    ----------
    access : MemoryAccess
        Which.
    work_item : tuple of int
        Global id of one that does it.
    offset_bytes : int
        Where, from the start of the buffer.
    size_bytes : int
        What the buffer has.
    """

    access: MemoryAccess
    work_item: tuple[int, ...]
    offset_bytes: int
    size_bytes: int

    def __str__(self) -> str:
        one = self.access
        item = ", ".join(f"{number:,}" for number in self.work_item)
        return (
            f"line {one.line}: {one.text} leaves the buffer {one.buffer}: work-item ({item}) is "
            f"at byte {self.offset_bytes:,}, and the buffer has {self.size_bytes:,}"
        )


def find_overruns(
    facts: KernelFacts, ndrange: NDRange, sizes: Mapping[str, int], scalars: Mapping[str, int]
) -> list[Overrun]:
    """Find accesses that leave their buffers.

    Parameters
    ----------
    facts : KernelFacts
        The kernel.
    ndrange : NDRange
        Its launch; the local size is chosen.
    sizes : mapping of str to int
        Bytes of buffers by the names of their parameters.
    scalars : mapping of str to int
        Values of scalar arguments.

    Returns
    -------
    list of Overrun
        One per place in the source. Looked at are the work-groups at the corners of the index
        space, in the first and last iterations of loops, and only accesses whose addresses and
        conditions are known exactly: what is found is so, what is not found may be.
    """
    items = bind_ids(ndrange, _list_corners(ndrange))
    known = items.bindings | bind_names(dict(scalars))
    found: dict[int, Overrun] = {}
    for access in facts.accesses:
        size = sizes.get(access.buffer or "")
        if size is None or access.site in found or not _is_clear(access):
            continue
        for bindings, mask in _list_iterations(access.loops, known, items.is_present):
            one = _look(access, size, bindings, mask, items, ndrange.dimensions)
            if one is not None:
                found[access.site] = one
                break
    return list(found.values())


def _is_clear(access: MemoryAccess) -> bool:
    return access.is_exact and len(access.loops) <= _DEEPEST


def _list_corners(ndrange: NDRange) -> list[int]:
    """Give the numbers of the work-groups at the corners, dimension 0 fastest."""
    counts = ndrange.group_counts[: ndrange.dimensions]
    strides = [1, *itertools.accumulate(counts[:-1], lambda a, b: a * b)]
    ends = [sorted({0, count - 1}) for count in counts]
    return sorted(
        sum(place * stride for place, stride in zip(places, strides, strict=True))
        for places in itertools.product(*ends)
    )


def _list_iterations(
    loops: tuple[LoopFacts, ...], known: _Bindings, mask: BoolArray
) -> Iterator[tuple[_Bindings, BoolArray]]:
    """Give values of loop variables in first and last iterations, and which work-items do them."""
    if not loops:
        yield known, mask
        return
    loop, *inner = loops
    if loop.trip_count is None:
        return
    try:
        trips = np.asarray(evaluate_where(loop.trip_count, mask, known))
    except EvaluationError:
        return
    runs = np.logical_and(mask, trips > 0)
    if not runs.any():
        return
    for number in (np.zeros_like(trips), np.maximum(trips - 1, 0)):
        symbol = Symbol(SymbolKind.LOOP, loop.name)
        yield from _list_iterations(
            tuple(inner), known | {symbol: np.broadcast_to(number, mask.shape)}, runs
        )


def _look(  # noqa: PLR0913 - an access, where, and of whom
    access: MemoryAccess,
    size: int,
    bindings: _Bindings,
    mask: BoolArray,
    items: WorkItems,
    dimensions: int,
) -> Overrun | None:
    assert access.offset_bytes is not None
    try:
        met = np.logical_and(mask, evaluate_where(access.guard, mask, bindings))
        offsets = np.asarray(evaluate_where(access.offset_bytes, met, bindings))
    except EvaluationError:
        return None
    offsets = np.broadcast_to(offsets, met.shape)
    outside = np.argwhere(met & ((offsets < 0) | (offsets + access.bytes > size)))
    if not outside.size:
        return None
    place = tuple(outside[0])
    ids = [items.bindings[Symbol(SymbolKind.GLOBAL_ID, axis=axis)] for axis in range(dimensions)]
    return Overrun(
        access=access,
        work_item=tuple(int(np.asarray(one)[place]) for one in ids),
        offset_bytes=int(offsets[place]),
        size_bytes=size,
    )
