"""Accesses that provably leave their buffer, each with the first work-item that does it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.expressions import EvaluationError, Symbol, conjunction, disjunction, equal, less
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.intervals import Interval
from kernelcast.expressions.isl import NotKnownError, TooHardError, make_context
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.launch_points import LaunchPoints, PlacedAccesses
from kernelcast.features.touched_ranges import bind_launch, bound_access
from kernelcast.records.ndrange import NDRange

_MOST_VALUES = 1 << 17


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
        One per place in the source. Looked at are accesses whose addresses and conditions are
        known exactly, conditions quasi-affine: of these, all that leave their buffers.
    """
    ranges = bind_launch(ndrange, scalars)
    judged = [
        one
        for one in facts.accesses
        if one.is_exact and one.buffer in sizes and not _stays_inside(one, ranges, sizes)
    ]
    if not judged:
        return []
    launch = LaunchPoints(ndrange=ndrange, scalars=scalars)
    found: dict[int, Overrun] = {}
    for placed in launch.place(judged, make_context(), is_exact=True):
        try:
            for access, point, offset in _list_outside(placed, sizes):
                found.setdefault(access.site, Overrun(
                    access=access,
                    work_item=launch.find_global_id(point),
                    offset_bytes=offset,
                    size_bytes=sizes[access.buffer or ""],
                ))  # fmt: skip
        except TooHardError:
            break
        except (NotKnownError, EvaluationError):
            continue
    return list(found.values())


def _stays_inside(
    access: MemoryAccess, ranges: Mapping[Symbol, Interval], sizes: Mapping[str, int]
) -> bool:
    """Tell quickly of most accesses that they stay in their buffers, whatever their conditions."""
    try:
        found = bound_access(access, ranges)
    except EvaluationError:
        return False
    return all(low >= 0 and high <= sizes[access.buffer or ""] for low, high in found)


def _list_outside(
    placed: PlacedAccesses, sizes: Mapping[str, int]
) -> Iterator[tuple[MemoryAccess, Mapping[Symbol, int], int]]:
    """Give the accesses that leave their buffers, where they do it first, and the offset there."""
    # Room before and behind each access; the least of them answers for all, mostly with "none".
    rooms = [(shift, sizes[one.buffer or ""] - shift - one.bytes) for shift, one in placed.members]
    if _find_outside(placed, *map(min, zip(*rooms, strict=True))) is None:
        return
    for (shift, access), room in zip(placed.members, rooms, strict=True):
        point = _find_outside(placed, *room)
        if point is not None:
            offset = (placed.offset_bytes + placed.curved_bytes).evaluate(point)
            assert isinstance(offset, int)
            yield access, point, offset + shift


def _find_outside(placed: PlacedAccesses, before: int, behind: int) -> dict[Symbol, int] | None:
    """Find the first point that has less room than it needs."""
    offset = placed.offset_bytes
    values = _find_curve(placed, before, behind)
    if values is None:
        return None
    curve = placed.curved_bytes.evaluate(values)
    assert isinstance(curve, int)
    outside = disjunction(less(offset, -before - curve), less(behind - curve, offset))
    fixed = (equal(symbol, value) for symbol, value in values.items())
    return placed.points.find_first(conjunction(*fixed, outside))


def _find_curve(placed: PlacedAccesses, before: int, behind: int) -> dict[Symbol, int] | None:
    """Choose values for what makes an offset more than affine, so that some point is outside."""
    symbols = [one for one in placed.symbols if one in placed.curved_bytes.symbols()]
    if not symbols:
        return {}
    ranges = [placed.points.list_values(one) for one in symbols]
    if math.prod(map(len, ranges)) > _MOST_VALUES:
        raise NotKnownError
    values = [np.arange(one.start, one.stop, dtype=np.int64) for one in ranges]
    bounds = placed.points.bound(placed.offset_bytes, symbols)
    grid = dict(zip(symbols, np.meshgrid(*values, indexing="ij"), strict=True))
    curve = placed.curved_bytes.evaluate(grid)
    is_outside = bounds.exists.evaluate(grid) & (
        (bounds.low.evaluate(grid) + curve < -before)
        | (bounds.high.evaluate(grid) + curve > behind)
    )
    places = np.argwhere(is_outside)
    if not places.size:
        return None
    return {symbol: int(one[tuple(places[0])]) for symbol, one in grid.items()}
