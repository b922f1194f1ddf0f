"""Accesses that provably leave their buffer, each with the first work-item that does it."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.expressions import (
    EvaluationError,
    Expr,
    Symbol,
    conjunction,
    disjunction,
    equal,
    less,
)
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.intervals import Interval, bound_values
from kernelcast.expressions.isl import NotKnownError, TooHardError, make_context
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.launch_points import LaunchPoints, PlacedAccesses
from kernelcast.features.touched_ranges import bind_launch, bind_loops
from kernelcast.records.ndrange import NDRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """An access outside of its buffer."""

    access: MemoryAccess
    work_item: tuple[int, ...]
    """Global id of one that does it."""
    offset_bytes: int
    """Where, from the start of the buffer."""
    size_bytes: int
    """What the buffer has."""

    def __str__(self) -> str:
        one = self.access
        item = ", ".join(f"{number:,}" for number in self.work_item)
        return (
            f"line {one.line}: {one.text} leaves the buffer {one.buffer}: work-item ({item}) is "
            f"at byte {self.offset_bytes:,}, and the buffer has {self.size_bytes:,}"
        )


class _Family:
    """Accesses to a buffer under one guard, in the same loops, that are constants apart."""

    def __init__(self, members: Sequence[tuple[MemoryAccess, Expr]]) -> None:
        self.members = tuple(access for access, _ in members)
        self._offset = members[0][1]
        constant = self._offset.constant_term
        begins = [offset.constant_term - constant for _, offset in members]
        self._before = -min(begins)
        self._behind = max(
            begin + one.bytes for begin, one in zip(begins, self.members, strict=True)
        )

    def stays_inside(self, size: int, ranges: Mapping[Symbol, Interval]) -> bool:
        """Tell quickly of most that none leaves a buffer of so many bytes."""
        try:
            known = bind_loops(self.members[0], ranges)
            if known is None:
                return True
            low, high = bound_values(self._offset, known)
        except EvaluationError:
            return False
        return low >= self._before and high + self._behind <= size


class OverrunCheck:
    """Finds accesses of a kernel's launches that leave their buffers."""

    def __init__(self, facts: KernelFacts) -> None:
        families: dict[Hashable, list[tuple[MemoryAccess, Expr]]] = {}
        for one in facts.accesses:
            if one.is_exact and one.buffer is not None and (offset := one.offset_bytes) is not None:
                key = one.buffer, one.guard, one.loops, offset - offset.constant_term
                families.setdefault(key, []).append((one, offset))
        self._families = [_Family(one) for one in families.values()]

    def find(
        self, ndrange: NDRange, sizes: Mapping[str, int], scalars: Mapping[str, int]
    ) -> list[Overrun]:
        """Find accesses with exactly known addresses that leave their buffers, one per place."""
        ranges = bind_launch(ndrange, scalars)
        judged = [
            access
            for one in self._families
            if (size := sizes.get(one.members[0].buffer or "")) is not None
            and not one.stays_inside(size, ranges)
            for access in one.members
        ]
        if not judged:
            return []
        # These are looked at closely, for the first work-item of each that leaves its buffer.
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
    if math.prod(map(len, ranges)) > 1 << 17:
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
