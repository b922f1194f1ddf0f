"""Counts what translates of one lattice of addresses touch together.

Where rows all begin alike within a sector, as with pitches that are multiples of it, and the
runs of bytes lie within one another, rows and runs are counted apart: what the longest runs cover,
then what the shorter ones add beside them.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from kernelcast.analytic.gpu.volumes.unions import IntArray

Run = tuple[int, int]
Steps = tuple[int, ...]


def count_rows(
    runs: Sequence[Run], steps: Sequence[Steps], sizes: Steps, granularity: int, shift: int
) -> int | None:
    """Count the sectors of translates whose rows all begin alike within a sector.

    Parameters
    ----------
    runs : sequence of (int, int)
        First byte and end of the run of each translate.
    steps : sequence of tuple of int
        Where each lies along the outer axes.
    sizes : tuple of int
        Rows of a translate along each of them.
    granularity : int
        Bytes of a sector.
    shift : int
        Bytes to add to all addresses.

    Returns
    -------
    int or None
        None if runs overlap without one lying within the other.
    """
    by_run: dict[Run, list[Steps]] = {}
    for (low, high), step in zip(runs, steps, strict=True):
        own = (low + shift) // granularity, (high - 1 + shift) // granularity + 1
        by_run.setdefault(own, []).append(step)
    ordered = sorted(by_run, key=lambda run: run[0] - run[1])
    total, covered, found = 0, 0, []
    outer = ordered[0]
    for run in ordered:
        if run[0] < outer[0] or run[1] > outer[1]:
            return None
        outer = run
        found += by_run[run]
        rows = count_cells(tuple(sorted(found)), sizes)
        total += (rows - covered) * (run[1] - run[0])
        covered = rows
    return total


@lru_cache(maxsize=16384)
def count_cells(steps: tuple[Steps, ...], sizes: Steps) -> int:
    """Count the cells that equal boxes cover together, by their first cells and their size.

    Examples
    --------
    >>> count_cells(((0, 0), (1, 1)), (2, 2))
    7
    """
    if len(steps) == 1 or not sizes:
        return prod(sizes)
    present = np.ones((len(steps), 1), dtype=np.bool_)
    widths = np.ones(1, dtype=np.int64)
    for axis, size in enumerate(sizes):
        start = np.array([one[axis] for one in steps], dtype=np.int64)
        edges = np.array(sorted({*start.tolist(), *(start + size).tolist()}), dtype=np.int64)
        inside = (edges[:-1] >= start[:, None]) & (edges[:-1] < start[:, None] + size)
        present = (present[:, :, None] & inside[:, None, :]).reshape(len(steps), -1)
        widths = (widths[:, None] * np.diff(edges)).ravel()
    return int(widths @ present.any(axis=0))


def merge_steps(
    size: int, axes: Sequence[tuple[int, int]], granularity: int
) -> tuple[int, list[tuple[int, int]]]:
    """Join axes that together run through one longer axis, as `families.merge_axes` does.

    Parameters
    ----------
    size : int
        Bytes of an element.
    axes : sequence of (int, int)
        Positive stride in bytes and steps.
    granularity : int
        Bytes of a sector: what lies closer together makes a run of bytes.

    Returns
    -------
    int
        Bytes of a run.
    list of (int, int)
        Axes along which runs are repeated.

    Examples
    --------
    >>> merge_steps(8, [(512, 4), (8, 64), (2048, 2)], 32)
    (4096, [])
    """
    merged: list[tuple[int, int]] = []
    for stride, steps in sorted(axes):
        for place, (nearer, count) in enumerate(merged):
            times = stride // nearer
            if stride % nearer == 0 and count >= times:
                merged[place] = nearer, count + times * (steps - 1)
                break
        else:
            merged.append((stride, steps))
    run = size
    while merged and merged[0][0] - run < granularity:
        stride, steps = merged.pop(0)
        run += (steps - 1) * stride
    return run, merged


def translate(
    offsets: tuple[int, ...], strides: tuple[int, ...], cuts: tuple[int, ...], run: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Write each offset in steps of the outer axes and bytes along the run.

    Parameters
    ----------
    offsets : tuple of int
        Bytes from the first access to each.
    strides : tuple of int
        Bytes per step of the outer axes.
    cuts : tuple of int
        From `find_cuts`.
    run : int
        Bytes of a run: runs that overlap or touch are joined, a row of neighbours becomes one box.

    Returns
    -------
    steps : ndarray of int64, shape (boxes, axes)
    lows, highs : ndarray of int64, shape (boxes,)
        First bytes of the first and of the last joined run.
    """
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
    """Find where to wrap offsets modulo each stride: where none lies, so that neighbours stay so.

    Examples
    --------
    >>> find_cuts((-8, 0, 8), (4096,))
    (-8,)
    """
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
