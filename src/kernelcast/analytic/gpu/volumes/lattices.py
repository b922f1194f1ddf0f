"""Counts what translates of one lattice of addresses touch together.

Where rows all begin alike within a sector, as with pitches that are multiples of it, and the
runs of bytes lie within one another, rows and runs are counted apart: what the longest runs cover,
then what the shorter ones add beside them.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

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
