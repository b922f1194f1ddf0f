"""Cache lines that the accesses of nested loops touch, and how often they come from farther away.

Loops are written innermost first: the lanes of a vector, the loops of a work-item, the vectors of
a work-group, the work-groups. An access is a box: for each loop, how far one iteration moves it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod

_STREAM_BYTES = 2048
"""Steps up to which prefetchers follow a walk: half a page."""
_LONG_WALK = 16
"""Steps of a walk from which on it is followed."""
_NEAR_BYTES = 64
"""Accesses no farther apart share their lines, all but the last."""
_FOLLOWED_LINES = 8
"""Neighbouring lines after which a prefetcher is ahead."""
_STREAMS = 64
"""Streams beside each other of which half are late, as measured with columns of 8 to 512 rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A loop around accesses.

    Parameters
    ----------
    name : str
        For messages.
    extent : int
        Iterations.
    """

    name: str
    extent: int


@dataclass(frozen=True, kw_only=True)
class Box:
    """Accesses of one buffer that move alike.

    Parameters
    ----------
    buffer : str
        The buffer.
    bytes : int
        Of one element.
    strides : tuple of int
        Bytes that an iteration of each axis moves the address.
    offsets : tuple of int
        Constant parts of the addresses, in bytes, from 0, ascending.
    is_store : bool
        Whether it writes.
    share : float
        Part of the work-items that do it.
    inside : tuple of bool
        Axes that are around it; others do not repeat it. All when left out.
    """

    buffer: str
    bytes: int
    strides: tuple[int, ...]
    offsets: tuple[int, ...] = (0,)
    is_store: bool = False
    share: float = 1.0
    inside: tuple[bool, ...] = ()

    def count_repeats(self, axes: Sequence[Axis], start: int) -> int:
        """Count the iterations of the outer axes, from one on, that repeat it."""
        inside = self.inside or (True,) * len(axes)
        return prod(
            axis.extent for axis, is_inside in zip(axes[start:], inside[start:], strict=True)
            if is_inside
        )  # fmt: skip

    def count_lines(self, axes: Sequence[Axis], line: int) -> float:
        """Count the different lines of the innermost axes."""
        return self._shape(axes, line)[0]

    def count_sets(self, axes: Sequence[Axis], line: int, sets: int) -> int:
        """Count the sets of a cache that these lines fall into."""
        _, chunk_lines, far = self._shape(axes, line)
        found = min(sets, ceil(chunk_lines))
        for extent, stride in far:
            step = stride // line % sets
            found = min(sets, found * min(extent, sets // gcd(step, sets) if step else 1))
        return max(1, found)

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
                is_followed = step < _STREAM_BYTES and axis.extent > _LONG_WALK
                streams *= 1 if is_followed else axis.extent
                continue
            # What lay apart may now be side by side.
            while near := [one for one in apart if one[0] <= max(line, chunk)]:
                chunk += sum(one * (extent - 1) for one, extent in near)
                apart = [one for one in apart if one not in near]
            if chunk >= _FOLLOWED_LINES * line:
                break
        return streams

    def _shape(self, axes: Sequence[Axis], line: int) -> tuple[float, float, list[tuple[int, int]]]:
        """Give lines in all, lines of a contiguous piece, and extents and strides of pieces."""
        extents = [axis.extent for axis in axes]
        extents, pieces = self._widen(extents)
        dims = sorted(
            (abs(stride), extent)
            for stride, extent in zip(self.strides, extents, strict=False)
            if extent > 1 and stride
        )
        chunk = self.bytes
        far: list[tuple[int, int]] = []
        for stride, extent in dims:
            if not far and stride <= max(chunk, line):
                chunk += stride * (extent - 1)
            else:
                _add_far(far, extent, stride)
        chunk_lines = chunk / line + (1 - self.bytes / line if chunk % line else 0.0)
        chunk_lines = max(1.0, chunk_lines)
        return chunk_lines * prod(extent for extent, _ in far) * pieces, chunk_lines, far

    def _widen(self, extents: list[int]) -> tuple[list[int], int]:
        """Add neighbours to the axis that reaches them; give those that none does as pieces."""
        found = list(extents)
        order = sorted(range(len(extents)), key=lambda at: -abs(self.strides[at]))
        pieces = {0}
        for offset in self.offsets:
            rest = offset
            for at in order:
                step = abs(self.strides[at])
                if not step or extents[at] == 1:
                    continue
                reach = (rest + step // 2) // step
                if 0 < reach <= extents[at]:
                    found[at] = max(found[at], extents[at] + reach)
                    rest -= reach * step
            if abs(rest) > _NEAR_BYTES:
                pieces.add(rest)
        return found, len(pieces)


def _add_far(far: list[tuple[int, int]], extent: int, stride: int) -> None:
    """Add pieces that lie far apart; those that fall onto earlier ones lengthen their row."""
    if far:
        count, step = far[-1]
        if stride % step == 0 and stride <= count * step:
            far[-1] = (count + stride // step * (extent - 1), step)
            return
    far.append((extent, stride))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A cache of one core.

    Parameters
    ----------
    size_bytes, line_bytes, ways : int
        Geometry.
    """

    size_bytes: float
    line_bytes: int
    ways: int

    @property
    def sets(self) -> int:
        """Sets, as a power of two."""
        sets = max(1, int(self.size_bytes / self.line_bytes / self.ways))
        return int(2 ** round(sets.bit_length() - 1)) if sets & (sets - 1) else sets


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Lines that a level sends towards a core.

    Parameters
    ----------
    loaded, stored : float
        Lines over all axes; what is written is loaded first.
    unforeseen : float
        Lines among them that no prefetcher brings in time.
    """

    loaded: float
    stored: float
    unforeseen: float


def count_moved(boxes: Sequence[Box], axes: Sequence[Axis], cache: Cache) -> Moved:
    """Count the lines that a cache does not hold when they are wanted.

    Parameters
    ----------
    boxes : sequence of Box
        The accesses.
    axes : sequence of Axis
        All loops, innermost first.
    cache : Cache
        The cache.

    Returns
    -------
    Moved

    Notes
    -----
    A layer condition: what one iteration of an axis touches is still there in the next if all
    accesses of an iteration fit the cache, and each access the sets that its addresses fall into.
    The outermost axis whose iterations fit is the one along which lines are reused.
    """
    line = cache.line_bytes
    depth = 0
    while depth < len(axes) and _fits(boxes, axes[:depth], cache):
        depth += 1
    walks = [box.count_streams(axes, line) for box in boxes]
    beside = sum(streams for streams in walks if streams > 1) - 1
    loaded = stored = unforeseen = 0.0
    for box, streams in zip(boxes, walks, strict=True):
        lines = box.count_lines(axes[:depth], line) * box.count_repeats(axes, depth) * box.share
        loaded += lines
        stored += lines if box.is_store else 0.0
        if streams > 1:
            unforeseen += lines * beside / (beside + _STREAMS)
    return Moved(loaded=loaded, stored=stored, unforeseen=unforeseen)


def _fits(boxes: Sequence[Box], axes: Sequence[Axis], cache: Cache) -> bool:
    line, sets = cache.line_bytes, cache.sets
    total = crowded = 0.0
    for box in boxes:
        lines = box.count_lines(axes, line)
        total += lines
        crowded += lines / box.count_sets(axes, line, sets)
    return total * line <= cache.size_bytes and crowded <= cache.ways
