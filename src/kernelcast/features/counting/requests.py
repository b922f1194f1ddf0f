"""How warps touch memory, place by place: from address expressions or from recorded addresses."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

import numpy as np

from kernelcast.expressions import EvaluationError, Symbol, Value
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.axes import bind_ids, bind_names
from kernelcast.expressions.symbols import BoolArray, IntArray
from kernelcast.features.counting.static import (
    FloatArray,
    Points,
    choose_work_groups,
    run_guarded,
    widen,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace
from kernelcast.records.software_counters import RecordedAddresses, RequestPattern

SECTOR_BYTES = 32
BANKS = 32
BANK_BYTES = 4

_NOWHERE = np.iinfo(np.int64).max
_PIECES = (16, 8, 4)


def find_touches(
    offsets_bytes: IntArray, is_active: BoolArray, size_bytes: int, *, is_local: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """Count by request distinct sectors, those that the bytes would fill, and extra local passes;
    offsets and activity are of shape (requests, lanes)."""
    first, last = offsets_bytes // SECTOR_BYTES, (offsets_bytes + size_bytes - 1) // SECTOR_BYTES
    across = int((last - first).max(initial=0, where=is_active))
    touched = first[..., None] + np.arange(across + 1)
    _, is_new = _mark_distinct(touched, is_active[..., None] & (touched <= last[..., None]))
    conflicts = np.zeros(len(offsets_bytes), dtype=np.int64)
    if is_local:
        piece = next((one for one in _PIECES if size_bytes % one == 0), size_bytes)
        words = -(-piece // BANK_BYTES)
        at_once = BANKS // words
        missing = ((0, 0), (0, -offsets_bytes.shape[1] % at_once))
        starts = np.pad(offsets_bytes, missing)
        parts = len(starts), starts.shape[1] // at_once
        starts = starts.reshape(-1, at_once)
        takes_part = np.pad(is_active, missing).reshape(-1, at_once, 1)
        rows = np.arange(len(starts))[:, None]
        for begin in range(0, size_bytes, piece):
            word = (starts + begin)[..., None] // BANK_BYTES + np.arange(words)
            ordered, is_new_word = _mark_distinct(word, takes_part)
            place = (rows * BANKS + ordered % BANKS)[is_new_word]
            counts = np.bincount(place, minlength=rows.size * BANKS).reshape(*parts, BANKS)
            conflicts += np.maximum(counts.max(axis=2) - 1, 0).sum(axis=1)
    ideal = -(-is_active.sum(axis=1) * size_bytes // SECTOR_BYTES)
    return is_new.sum(axis=1), ideal, conflicts


def _mark_distinct(values: IntArray, is_used: BoolArray) -> tuple[IntArray, BoolArray]:
    """Sort what each row holds and mark the first of equal values, those not used left out."""
    ordered = np.where(is_used, values, _NOWHERE).reshape(len(values), math.prod(values.shape[1:]))
    ordered.sort(axis=1)
    is_new = ordered != _NOWHERE
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return ordered, is_new


WARP_WIDTH = 32

BUDGET = 65_536
"""Addresses evaluated per access, at most: about 10 ms. Beyond, some iterations stand for all."""

_Requests = tuple[MemoryAccess, FloatArray, tuple[IntArray, IntArray, IntArray]]
"""Requests of one access, each with the number that it stands for."""


def compute_requests(
    accesses: Iterable[MemoryAccess],
    ndrange: NDRange,
    scalars: Mapping[str, int],
    *,
    warp_width: int = WARP_WIDTH,
    work_groups: Sequence[int] | None = None,
) -> tuple[RequestPattern, ...]:
    """Compute patterns of warps' requests from addresses; conditions on data count as met."""
    groups = work_groups or choose_work_groups(ndrange)
    ids, is_present = bind_ids(ndrange, groups)
    # Ids by warp and lane; missing lanes repeat some other's.
    missing = (0, 0), (0, -is_present.shape[1] % warp_width)
    is_present = np.pad(is_present, missing).reshape(-1, warp_width)
    kept = np.asarray(is_present.any(axis=1))
    is_present = is_present[kept]
    bindings: dict[Symbol, Value] = {
        symbol: np.pad(value, missing, mode="edge").reshape(-1, warp_width)[kept]
        if isinstance(value, np.ndarray)
        else value
        for symbol, value in ids.items()
    }
    start = Points.start(bindings | bind_names(scalars), is_present)
    run = cache(partial(run_guarded, start, budget=BUDGET))
    found: list[_Requests] = []
    for access in accesses:
        offset = access.offset_bytes
        if offset is None or not access.bytes:  # the size of an undeclared type is not known
            continue
        own = frozenset(loop.symbol for loop in access.loops)
        if not offset.symbols() - own <= start.bindings.keys():
            continue
        points, share = run(access.guard, access.loops, offset.symbols())
        is_local, is_active = access.space is MemorySpace.LOCAL, share > 0
        try:
            offsets = widen(offset.evaluate_where(is_active, points.bindings), share.shape)
        except EvaluationError:
            continue
        touches = find_touches(offsets, is_active, access.bytes, is_local=is_local)
        found.append((access, points.weights, touches))
    return _merge(found, warps=len(is_present))


def measure_requests(
    accesses: Sequence[MemoryAccess], recorded: RecordedAddresses, *, warp_width: int = WARP_WIDTH
) -> tuple[RequestPattern, ...]:
    """Measure patterns from recordings: n-th executions of a warp's lanes are one request."""
    # Accesses that make up one request go into one row.
    warp, lane = np.divmod(recorded.local_ids, warp_width)
    _, group = np.unique(recorded.groups, return_inverse=True)
    keys = recorded.sites, group, warp, recorded.sequences
    key = np.ravel_multi_index(keys, [int(one.max(initial=0)) + 1 for one in keys])
    _, first, row = np.unique(key, return_index=True, return_inverse=True)
    rows = recorded.sites[first]
    offsets = np.zeros((rows.size, warp_width), dtype=np.int64)
    is_active = np.zeros(offsets.shape, dtype=np.bool_)
    offsets[row, lane] = recorded.offsets_bytes
    is_active[row, lane] = True
    by_site = {access.site: access for access in reversed(accesses)}
    warps = sum(-(-size // warp_width) for size in recorded.work_items)
    found = []
    for site in np.unique(rows):
        access = by_site.get(int(site))
        if access is None or not access.bytes:
            continue
        mine = rows == site
        is_local = access.space is MemorySpace.LOCAL
        touches = find_touches(offsets[mine], is_active[mine], access.bytes, is_local=is_local)
        found.append((access, np.ones(int(mine.sum())), touches))
    return _merge(found, warps=warps, is_measured=True)


def _merge(
    found: Iterable[_Requests], *, warps: int, is_measured: bool = False
) -> tuple[RequestPattern, ...]:
    """Add up what several paths to one place do."""
    places: dict[tuple[int, str | None], list[_Requests]] = defaultdict(list)
    for one in found:
        places[one[0].site, one[0].buffer].append(one)
    patterns = []
    for parts in places.values():
        access = parts[0][0]
        weights = np.concatenate([weight for _, weight, _ in parts])
        total = float(weights.sum())
        sectors, ideal_sectors, conflicts = (
            float(weights @ np.concatenate(column)) / total if total else 0.0
            for column in zip(*(touches for _, _, touches in parts), strict=True)
        )
        patterns.append(RequestPattern(
            site=access.site, line=access.line, buffer=access.buffer, space=access.space,
            is_store=access.kind is not AccessKind.LOAD, requests=total / max(1, warps),
            sectors_per_request=sectors, ideal_sectors_per_request=ideal_sectors,
            bank_conflicts_per_request=conflicts, is_measured=is_measured,
        ))  # fmt: skip
    return tuple(patterns)
