"""Counts what many boxes of addresses touch together: exactly, at any size.

A box is a run of bytes repeated along outer axes (rows, planes, iterations). Along the outer axes
the boxes' ends cut space into cells in which the same boxes are present, so only the few different
sets of boxes have to be looked at; along the run, sectors are counted as a union of intervals.
Where a pitch is no multiple of the sector, rows differ by their phase, and a cell's rows are
counted by phase. The cost depends on the number of boxes, never on their size.
"""

from dataclasses import dataclass
from functools import lru_cache, reduce
from math import gcd

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
_FEW = 32
"""Rows up to which a dictionary tells equal ones faster than sorting."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boxes:
    """Boxes of addresses along common outer axes."""

    low: IntArray
    high: IntArray
    starts: IntArray
    ends: IntArray
    strides: tuple[int, ...]

    @property
    def span(self) -> tuple[int, int]:
        """The first byte of all boxes and the end of the last one; there must be boxes."""
        low, high = self.low.copy(), self.high.copy()
        for start, end, stride in zip(self.starts, self.ends, self.strides, strict=True):
            low += stride * start
            high += stride * (end - 1)
        return int(low.min()), int(high.max())


def divide(addresses: IntArray, unit: int) -> IntArray:
    """Give the numbers of the units in which addresses lie; shifts take a fifth of the time."""
    bits = unit.bit_length() - 1
    found: IntArray = addresses >> bits if unit == 1 << bits else addresses // unit
    return found


def count_sectors(boxes: Boxes, granularity: int, shifts: IntArray | None = None) -> IntArray:
    """Count the sectors that the boxes touch together."""
    moved = np.zeros(1, dtype=np.int64) if shifts is None else shifts
    if boxes.low.size == 0:
        return np.zeros(moved.size, dtype=np.int64)
    present, weights, phases = _find_patterns(boxes, granularity)
    order = np.argsort(boxes.low, kind="stable")
    every = (moved[:, None] + np.array(phases, dtype=np.int64)[None, :]).ravel()
    lengths = _measure(boxes, order, present[:, order], granularity, every)
    rows = np.array(weights, dtype=np.int64)
    totals: IntArray = np.einsum("spk,pk->s", lengths.reshape(moved.size, *rows.shape), rows)
    return totals


def _measure(
    boxes: Boxes, order: IntArray, present: BoolArray, granularity: int, shifts: IntArray
) -> IntArray:
    """Give the sectors of one row for every shift and every set of boxes."""
    first = (boxes.low[order][None, :] + shifts[:, None]) // granularity
    end = (boxes.high[order][None, :] - 1 + shifts[:, None]) // granularity + 1
    # Absent boxes end before everything, so that they neither cover nor count.
    lowest = first.min() - 1
    ends = np.where(present[None, :, :], end[:, None, :], lowest)
    covered = np.maximum.accumulate(ends, axis=2)
    before = np.concatenate((np.full((*ends.shape[:2], 1), lowest), covered[:, :, :-1]), axis=2)
    grown = ends - np.maximum(first[:, None, :], before)
    lengths: IntArray = np.maximum(grown, 0).sum(axis=2)
    return lengths


def _find_patterns(boxes: Boxes, granularity: int) -> tuple[BoolArray, list[IntArray], list[int]]:
    """Find the different sets of boxes, and how many rows of each phase have which set."""
    count = boxes.low.size
    inside = np.ones((count, 1), dtype=np.bool_)
    cuts: list[IntArray] = []
    for start, end in zip(boxes.starts, boxes.ends, strict=True):
        # A few numbers: NumPy's own way takes five times as long.
        edges = np.array(sorted({*start.tolist(), *end.tolist()}), dtype=np.int64)
        own = (edges[None, :-1] >= start[:, None]) & (edges[None, :-1] < end[:, None])
        inside = (inside[:, :, None] & own[:, None, :]).reshape(count, -1)
        cuts.append(edges)
    chosen, which = _find_different(np.packbits(inside, axis=0).T.copy())
    phases, sizes = _count_rows(cuts, boxes.strides, granularity)
    weights = [
        np.bincount(which, weights=one, minlength=chosen.size).astype(np.int64) for one in sizes
    ]
    return inside[:, chosen].T, weights, phases


def _find_different(packed: npt.NDArray[np.uint8]) -> tuple[IntArray, IntArray]:
    """Give the places of different rows, and which of them each row equals."""
    if packed.shape[0] <= _FEW:
        numbers: dict[bytes, int] = {}
        same = [numbers.setdefault(row.tobytes(), len(numbers)) for row in packed]
        first = [same.index(number) for number in range(len(numbers))]
        return np.array(first, dtype=np.int64), np.array(same, dtype=np.int64)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, chosen, which = np.unique(keys, return_index=True, return_inverse=True)
    return chosen, which.ravel()


def _count_rows(
    cuts: list[IntArray], strides: tuple[int, ...], granularity: int
) -> tuple[list[int], list[IntArray]]:
    """Give the rows of each cell by phase: byte offset of the row within a sector."""
    unit = reduce(gcd, strides, granularity)
    phases = granularity // unit
    rows = np.zeros((phases, 1), dtype=np.int64)
    rows[0] = 1
    for edges, stride in zip(cuts, strides, strict=True):
        step = (stride // unit) % phases
        if phases == 1:
            rows = (rows[:, :, None] * np.diff(edges)).reshape(1, -1)
            continue
        own = _phases_of(edges, step, phases)
        wide = np.zeros((phases, rows.shape[1], own.shape[1]), dtype=np.int64)
        order = np.arange(phases)
        for phase in np.flatnonzero(own.any(axis=1)):
            wide += rows[(order - phase) % phases][:, :, None] * own[phase]
        rows = wide.reshape(phases, -1)
    kept = [phase for phase in range(phases) if rows[phase].any()]
    return [phase * unit for phase in kept], [rows[phase] for phase in kept]


def _phases_of(edges: IntArray, step: int, phases: int) -> IntArray:
    """Count the indices between neighbouring edges by (index * step) modulo phases."""
    residues = np.arange(phases, dtype=np.int64)[:, None]
    # Indices congruent to a residue between two edges.
    below = (edges[None, :] - residues - 1) // phases
    numbers = np.diff(below, axis=1)
    found = np.zeros_like(numbers)
    np.add.at(found, residues[:, 0] * step % phases, numbers)
    return found


def translate(
    offsets: tuple[int, ...], strides: tuple[int, ...], cuts: tuple[int, ...], run: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Write each offset in steps of the outer axes and bytes along the run."""
    steps, rest = _decompose(offsets, strides, cuts)
    is_new = np.ones(rest.size, dtype=np.bool_)
    is_new[1:] = (steps[1:] != steps[:-1]).any(axis=1) | (np.diff(rest) > run)
    begins = np.flatnonzero(is_new)
    lasts = np.append(begins[1:], rest.size) - 1
    return steps[begins], rest[begins], rest[lasts]


# A launch asks for the same few decompositions in every count of its footprints.
@lru_cache(maxsize=256)
def _decompose(
    offsets: tuple[int, ...], strides: tuple[int, ...], cuts: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    """Give steps along each axis and the rest in bytes, sorted; nobody may change them."""
    rest = np.array(offsets, dtype=np.int64)
    steps = np.zeros((rest.size, len(strides)), dtype=np.int64)
    for place in range(len(strides) - 1, -1, -1):
        kept = (rest - cuts[place]) % strides[place] + cuts[place]
        steps[:, place] = (rest - kept) // strides[place]
        rest = kept
    order = np.lexsort((rest, *steps.T))
    return steps[order], rest[order]


@lru_cache(maxsize=256)
def find_cuts(offsets: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Find where to wrap offsets modulo each stride: where none lies, so that none is torn off."""
    rest = np.array(offsets, dtype=np.int64)
    cuts = [0] * len(strides)
    for place in range(len(strides) - 1, -1, -1):
        stride = strides[place]
        residues = np.unique(rest % stride)
        gaps = np.diff(residues, append=residues[0] + stride)
        cut = int(residues[(int(gaps.argmax()) + 1) % residues.size])
        cuts[place] = cut - stride if 2 * cut > stride else cut
        rest = (rest - cuts[place]) % stride + cuts[place]
    return tuple(cuts)
