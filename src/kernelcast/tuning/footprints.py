"""Cache lines that the accesses of nested loops touch, and how often they come from farther away.

Loops are written innermost first: the lanes of a vector, the loops of a work-item, the vectors of
a work-group, the work-groups. An access is a box: for each loop, how far one iteration moves it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod
from typing import NamedTuple

Step = tuple[int, int]
"""Bytes that an iteration of an axis moves an address, and iterations; neither sign nor zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A loop around accesses."""

    name: str
    extent: int


@dataclass(frozen=True, kw_only=True)
class Box:
    """Accesses of one buffer that move alike; neighbours count as one."""

    buffer: str
    bytes: int
    """Of one element."""
    strides: tuple[int, ...]
    """Bytes that an iteration of each axis moves the address."""
    is_store: bool = False
    """Whether it writes."""
    share: float = 1.0
    """Part of the work-items that do it."""
    inside: tuple[bool, ...] = ()
    """Axes that are around it; others do not repeat it. All when left out."""

    def count_repeats(self, axes: Sequence[Axis], start: int) -> int:
        """Count the iterations of the outer axes, from one on, that repeat it."""
        inside = self.inside or (True,) * len(axes)
        return prod(
            axis.extent for axis, is_inside in zip(axes[start:], inside[start:], strict=True)
            if is_inside
        )  # fmt: skip

    def list_shapes(self, axes: Sequence[Axis], line: int) -> list["Shape"]:
        """Describe the places that no axis reaches, that the innermost reaches, and so on."""
        steps: list[Step] = []
        found = [self._shape(steps, line)]
        for axis, stride in zip(axes, self.strides, strict=False):
            if axis.extent > 1 and stride:
                steps.append((abs(stride), axis.extent))
                found.append(self._shape(steps, line))
            else:
                found.append(found[-1])
        return found

    def count_streams(self, axes: Sequence[Axis], line: int) -> int:
        """Count the far places that are visited before one of them moves on."""
        streams, chunk = 1, self.bytes
        apart: list[tuple[int, int]] = []
        for axis, stride in zip(axes, self.strides, strict=False):
            step = abs(stride)
            if axis.extent == 1 or not step:
                continue
            apart.append((step, axis.extent))
            if step > max(line, chunk):
                # Prefetchers follow a walk of more than 16 steps, each of up to half a page.
                is_followed = step < 2048 and axis.extent > 16
                streams *= 1 if is_followed else axis.extent
                continue
            # What lay apart may now be side by side.
            while near := [one for one in apart if one[0] <= max(line, chunk)]:
                chunk += sum(one * (extent - 1) for one, extent in near)
                apart = [one for one in apart if one not in near]
            # Neighbouring lines after which a prefetcher is ahead.
            if chunk >= 8 * line:
                break
        return streams

    def _shape(self, steps: Sequence[Step], line: int) -> "Shape":
        """Describe the places that some axes reach, given as their steps, innermost first."""
        chunk = self.bytes
        far: list[tuple[int, int]] = []
        for stride, extent in sorted(steps):
            if not far and stride <= max(chunk, line):
                chunk += stride * (extent - 1)
            else:
                _add_far(far, extent, stride)
        chunk_lines = chunk / line + (1 - self.bytes / line if chunk % line else 0.0)
        chunk_lines = max(1.0, chunk_lines)
        return Shape(
            lines=chunk_lines * prod(extent for extent, _ in far),
            chunk_lines=chunk_lines,
            far=tuple((extent, stride // line) for extent, stride in far),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Places of an access: pieces side by side, and how they lie apart."""

    lines: float
    chunk_lines: float
    far: tuple[tuple[int, int], ...]
    """How often pieces are repeated, and how many lines apart, for each way to go on."""

    def count_sets(self, sets: int) -> int:
        """Count the sets that the lines fall into, of a cache that has so many."""
        found = min(sets, ceil(self.chunk_lines))
        for extent, apart in self.far:
            step = apart % sets
            found = min(sets, found * min(extent, sets // gcd(step, sets) if step else 1))
        return max(1, found)


def _add_far(far: list[tuple[int, int]], extent: int, stride: int) -> None:
    """Add pieces that lie far apart; those that fall onto earlier ones lengthen their row."""
    if far:
        count, step = far[-1]
        if stride % step == 0 and stride <= count * step:
            far[-1] = (count + stride // step * (extent - 1), step)
            return
    far.append((extent, stride))


class Moved(NamedTuple):
    """Lines that a level sends towards a core."""

    loaded: float
    """Lines over all axes; what is written is loaded first."""
    stored: float
    """The same of what goes back."""
    unforeseen: float
    """Lines among them that no prefetcher brings in time."""


class CacheFootprint:
    """What the accesses of nested loops touch, worked out once for all levels of caches."""

    def __init__(self, boxes: Sequence[Box], axes: Sequence[Axis], line_bytes: int) -> None:
        self._boxes = boxes
        self._axes = axes
        self._line_bytes = line_bytes
        self._shapes = [box.list_shapes(axes, line_bytes) for box in boxes]
        self._walks = [box.count_streams(axes, line_bytes) for box in boxes]

    def count_moved(self, size_bytes: float, ways: int) -> Moved:
        """Count the lines that a cache does not hold when they are wanted.

        A layer condition: what one iteration of an axis touches is still there in the next if all
        accesses of an iteration fit the cache, and each access the sets that its addresses fall
        into. The outermost axis whose iterations fit is the one along which lines are reused.
        """
        sets = 2 ** (max(1, int(size_bytes / self._line_bytes / ways)).bit_length() - 1)
        depth = 0
        while depth < len(self._axes):
            shapes = [each[depth] for each in self._shapes]
            lines = sum(one.lines for one in shapes)
            crowded = sum(one.lines / one.count_sets(sets) for one in shapes)
            if lines * self._line_bytes > size_bytes or crowded > ways:
                break
            depth += 1
        beside = sum(streams for streams in self._walks if streams > 1) - 1
        loaded = stored = unforeseen = 0.0
        for box, of_axes, streams in zip(self._boxes, self._shapes, self._walks, strict=True):
            lines = of_axes[depth].lines * box.count_repeats(self._axes, depth) * box.share
            loaded += lines
            stored += lines if box.is_store else 0.0
            if streams > 1:
                # Streams beside each other of which half are late, as measured with columns of 8 to
                # 512 rows.
                unforeseen += lines * beside / (beside + 64)
        return Moved(loaded, stored, unforeseen)
