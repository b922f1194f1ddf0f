"""What one memory request of a warp touches: sectors, and banks of local memory.

Sectors hold 32 bytes on NVIDIA's GPUs; buffers start at a multiple of that. Local memory has 32
banks of 4 bytes, each of which serves one word per pass. As NVIDIA documents for compute
capability 3 and later, work-items that read the same word do not conflict, and requests of 8 or 16
bytes per work-item are served for 16 or 8 work-items at a time: what these need anyway is no
conflict. Wider accesses are taken apart into pieces of 16 bytes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SECTOR_BYTES = 32
BANKS = 32
BANK_BYTES = 4
ROW_BYTES = BANKS * BANK_BYTES
"""By so many bytes, or a multiple, requests can be moved and touch as many sectors and banks."""

_NOWHERE = np.iinfo(np.int64).max
_PIECES = (16, 8, 4)

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Touches:
    """What requests touch.

    Parameters
    ----------
    sectors, ideal_sectors : ndarray of int64, shape (requests,)
        Distinct sectors, and as many as the bytes of the active lanes fill.
    conflicts : ndarray of int64, shape (requests,)
        Extra passes over local memory; zeros for other memory.
    """

    sectors: IntArray
    ideal_sectors: IntArray
    conflicts: IntArray


def find_touches(
    offsets_bytes: IntArray, is_active: BoolArray, size_bytes: int, *, is_local: bool
) -> Touches:
    """Find out what requests touch.

    Parameters
    ----------
    offsets_bytes : ndarray of int64, shape (requests, lanes)
        Where each lane's access begins.
    is_active : ndarray of bool, shape (requests, lanes)
        Which lanes take part.
    size_bytes : int
        Bytes that a lane moves.
    is_local : bool
        Whether it is local memory, which has banks.

    Examples
    --------
    >>> column = 128 * np.arange(32)[None, :]
    >>> found = find_touches(column, np.ones((1, 32), bool), 4, is_local=True)
    >>> found.sectors, found.ideal_sectors, found.conflicts
    (array([32]), array([4]), array([31]))
    """
    active = is_active.sum(axis=1)
    if not active.any():
        none = np.zeros_like(active)
        return Touches(sectors=none, ideal_sectors=none, conflicts=none)
    shown, times = _drop_repetitions(offsets_bytes, is_active)
    sectors = _count_sectors(offsets_bytes[:shown], is_active[:shown], size_bytes)
    conflicts = np.zeros_like(sectors)
    if is_local:
        conflicts = _count_conflicts(offsets_bytes[:shown], is_active[:shown], size_bytes)
    return Touches(
        sectors=np.repeat(sectors, times),
        ideal_sectors=-(-active * size_bytes // SECTOR_BYTES),
        conflicts=np.repeat(conflicts, times),
    )


def _drop_repetitions(offsets: IntArray, is_active: BoolArray) -> tuple[int, int]:
    """Say how many requests to look at, and how often each stands: all may be like the first."""
    moved = offsets - offsets[:, :1] // ROW_BYTES * ROW_BYTES
    if (is_active == is_active[0]).all() and (moved == moved[0])[is_active].all():
        return 1, len(offsets)
    return len(offsets), 1


def _count_sectors(offsets: IntArray, is_active: BoolArray, size_bytes: int) -> IntArray:
    first = offsets // SECTOR_BYTES
    last = (offsets + size_bytes - 1) // SECTOR_BYTES
    span = int((last - first)[is_active].max()) + 1
    touched = first[..., None] + np.arange(span)
    is_touched = is_active[..., None] & (touched <= last[..., None])
    rows = offsets.shape[0]
    _, is_new = _mark_distinct(touched.reshape(rows, -1), is_touched.reshape(rows, -1))
    sectors: IntArray = is_new.sum(axis=1)
    return sectors


def _count_conflicts(offsets: IntArray, is_active: BoolArray, size_bytes: int) -> IntArray:
    piece = next((one for one in _PIECES if size_bytes % one == 0), size_bytes)
    piece = min(piece, BANK_BYTES) if size_bytes < BANK_BYTES else piece
    words = -(-piece // BANK_BYTES)
    at_once = BANKS // words
    missing = -offsets.shape[1] % at_once
    starts = np.pad(offsets, ((0, 0), (0, missing))).reshape(-1, at_once)
    active = np.pad(is_active, ((0, 0), (0, missing))).reshape(-1, at_once)
    total = np.zeros(offsets.shape[0], dtype=np.int64)
    for begin in range(0, size_bytes, piece):
        word = (starts + begin)[..., None] // BANK_BYTES + np.arange(words)
        is_used = np.broadcast_to(active[..., None], word.shape)
        rows = starts.shape[0]
        passes = _count_passes(word.reshape(rows, -1), is_used.reshape(rows, -1))
        total += np.maximum(passes - 1, 0).reshape(offsets.shape[0], -1).sum(axis=1)
    return total


def _count_passes(words: IntArray, is_used: BoolArray) -> IntArray:
    """Count the distinct words of the bank that has most."""
    ordered, is_new = _mark_distinct(words, is_used)
    rows = words.shape[0]
    place = np.arange(rows)[:, None] * BANKS + ordered % BANKS
    counts = np.bincount(place[is_new], minlength=rows * BANKS).reshape(rows, BANKS)
    most: IntArray = counts.max(axis=1, initial=0)
    return most


def _mark_distinct(values: IntArray, is_used: BoolArray) -> tuple[IntArray, BoolArray]:
    """Sort each row and mark the first of equal values, those not used left out."""
    ordered = np.sort(np.where(is_used, values, _NOWHERE), axis=1)
    is_new = ordered != _NOWHERE
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return ordered, is_new
