"""Counts what a launch asks of a GPU beside volumes: atomics, waits for loads, bank conflicts."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from kernelcast.analytic.gpu.volumes.listed import evaluate_groups
from kernelcast.analytic.gpu.volumes.warps import count_conflicts
from kernelcast.expressions import TRUE, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace, OperationCounts, OperationKind


def count_atomics(accesses: Sequence[MemoryAccess], executed: OperationCounts) -> dict[str, float]:
    """Count the atomics of a work-item by where they go: ``global_same``, all work-items to one
    address, ``global_distinct`` and ``local_distinct``."""
    # Places that call the same function count as executed equally often; an atomic whose place is
    # not known counts as a global one on distinct addresses.
    sites = [one for one in accesses if one.kind is AccessKind.ATOMIC]
    found: dict[str, float] = defaultdict(float)
    for operation, times in executed.operations.items():
        if operation.kind is not OperationKind.ATOMIC:
            continue
        called = [one for one in sites if one.text.startswith(f"{operation.name}(")]
        own = called if operation.name and called else sites
        for site in own:
            is_same = site.offset_bytes is not None and site.offset_bytes.is_parameter
            place = "global_same" if is_same else "global_distinct"
            place = "local_distinct" if site.space is MemorySpace.LOCAL else place
            found[place] += times / len(own)
        if not own:
            found["global_distinct"] += times
    return found


_UNROLLED = 4
"""Iterations whose loads compilers keep in flight together."""
_THROUGH_L1 = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})


def count_rounds(accesses: Sequence[MemoryAccess], load_requests: float) -> float:
    """Count how often a work-item waits for loads, one wait after the other."""
    # Loads of straight-line code are in flight together, as are those of a few iterations of a
    # loop; a load whose address was loaded waits for that one first. In a loop where a load gives
    # the address of the next one, as along a linked list, every iteration waits for the one before.
    loads = [one for one in accesses if one.kind is AccessKind.LOAD and one.space in _THROUGH_L1]
    looped = [one for one in loads if one.loops]
    straight = [one for one in loads if not one.loops]
    iterations = max(load_requests - len(straight), 0.0) / len(looped) if looped else 0.0
    depth, is_endless = _measure_depth(looped)
    batches = max(iterations / (1 if is_endless else _UNROLLED), 1.0)
    return max(_measure_depth(straight)[0] + batches * depth, 1.0)


def _measure_depth(loads: Sequence[MemoryAccess]) -> tuple[int, bool]:
    """Count the loads of the longest chain in which each gives the next one's address.

    And tell whether it has no end, since a load's address depends on what it loads.
    """
    names = {one.buffer for one in loads}
    depth, most = 0, len(names)
    while names and depth <= most:
        depth += 1
        names = {
            one.buffer
            for one in loads
            if one.pattern is AddressPattern.INDIRECT and names.intersection(one.sources)
        }
    return min(depth, most), depth > most


def count_local_ways(launch: ModelledLaunch, warp_width: int) -> float:
    """Count how often banks of local memory are read per access, mean over the accesses."""
    known = []
    local = [one for one in launch.accesses if one.space is MemorySpace.LOCAL and one.offset_bytes]
    for one in local[:16]:  # more hardly change a kernel's mean
        first = {Symbol(SymbolKind.LOOP, loop.name): 0 for loop in one.loops}
        offset = one.offset_bytes.substitute(first) if one.offset_bytes else None
        bare = replace(one, offset_bytes=offset, loops=(), guard=TRUE)
        with suppress(InputError):
            groups, _ = evaluate_groups(bare, launch, warp_width)
            rows = next(iter(groups.values()))[:1]
            word = max(one.bytes, _BANK_BYTES)
            banks = max(_BANKS * _BANK_BYTES // word, 1)
            parts = max(np.unique(rows // word).size / banks, 1.0)
            known.append(max(float(count_conflicts(rows, word, banks)[0]) / parts, 1.0))
    return sum(known) / len(known) if known else 1.0


_BANKS, _BANK_BYTES = 32, 4
