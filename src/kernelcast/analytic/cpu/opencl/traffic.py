"""Lines that a launch moves over each boundary, by layer conditions on work-groups.

A core runs work-groups in dispatch order. What a work-group needs is there already if the one
before it along some dimension brought it in, and the cache holds what came in between: a
work-group for neighbours along x, a row of them along y, a plane along z.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.opencl.addresses import Groups, Place, list_distinct
from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.evaluation import IntArray
from kernelcast.expressions.modelled_launch import ModelledLaunch

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class LevelTraffic(NamedTuple):
    """What a level sends to and gets from the nearer one, over the whole launch."""

    name: str
    """The farther level: ``L2``, ``L3``, ``DRAM``."""
    loaded_bytes: float
    stored_bytes: float
    """Towards the cores and away from them."""
    seconds: float
    """All of its time, as farther levels were measured: with what nearer ones take in it."""
    added_s: float
    """The same without that."""


def count_traffic(
    launch: ModelledLaunch, patterns: Sequence[AccessPattern], device: CpuDevice
) -> list[LevelTraffic]:
    """Count what crosses each boundary on a launch's way through its work-groups."""
    grid, line_bytes, buffers = Groups(launch.ndrange), device.line_bytes, launch.buffers
    jumps: list[tuple[str, float, bool]] = []  # buffer, lines of a work-group, whether a load
    by_buffer: dict[tuple[str, bool], list[AccessPattern]] = defaultdict(list)
    for one in patterns:
        buffer, is_load = one.access.buffer or "", one.access.kind is AccessKind.LOAD
        if one.groups and not one.is_local:
            by_buffer[buffer, is_load].append(one)
        elif one.recorded and not one.is_local:
            size = one.access.bytes
            touched = [group.list_lines(size, line_bytes).size for group in one.recorded]
            jumps.append((buffer, float(np.mean(touched)), is_load))
    # Loads and stores: all lines of a work-group, those that its neighbour along x has not
    # touched, neither the one along y, neither the one along z.
    fresh: dict[bool, npt.NDArray[np.float64]] = {True: np.zeros(4), False: np.zeros(4)}
    for (_, is_load), accesses in by_buffer.items():
        fresh[is_load] += _count_fresh(accesses, grid, line_bytes)
    both = fresh[True] + fresh[False]
    x, y, z = (one.groups for one in grid.axes)
    scale = x * y * z * line_bytes
    group, row, plane = both[0] + both[1], both[1] * x, both[2] * x * y
    # What the whole launch touches at most.
    total_bytes = both[3] * scale
    if total := sum(buffers.get(one, 0) for one in {one.buffer or "" for one in launch.accesses}):
        jumping = {one.buffer or "" for one in launch.accesses if one.offset_bytes is None}
        total_bytes = min(total_bytes + sum(buffers.get(one, 0) for one in jumping), total)
    found = []
    for nearer, level in pairwise(device.levels):
        # A share of the lines is there for neighbours along x, y and z.
        held = [_share_held(nearer.size_bytes, one * line_bytes) for one in (group, row, plane)]
        loaded, stored = (
            float(fresh[is_load][0] + np.dot(held, np.diff(fresh[is_load])))
            for is_load in (True, False)
        )
        for buffer, lines, is_load in jumps:
            known = buffers.get(buffer)
            missed = lines * (1 - (min(1.0, nearer.size_bytes / known) if known else 0.0))
            loaded += missed
            stored += 0.0 if is_load else missed
        # A launch that is repeated finds what the last one has left.
        moved = scale * (1 - _share_held(nearer.reach_bytes, total_bytes))
        load, store = loaded * moved, stored * moved
        found.append(
            LevelTraffic(
                level.name,
                load,
                store,
                load * level.load_s_per_byte + store * level.store_s_per_byte,
                load * max(0.0, level.load_s_per_byte - nearer.load_s_per_byte)
                + store * max(0.0, level.store_s_per_byte - nearer.store_s_per_byte),
            )
        )
    return found


def _count_fresh(
    accesses: Sequence[AccessPattern], grid: Groups, line_bytes: int
) -> npt.NDArray[np.float64]:
    """Count a buffer's lines that are new to a work-group, averaged over the places looked at."""

    def unite(place: Place) -> IntArray:
        parts = [one.groups[place].list_lines(one.access.bytes, line_bytes) for one in accesses]
        return parts[0] if len(parts) == 1 else list_distinct(np.concatenate(parts))

    fresh = np.zeros(4)
    for place in grid.places:
        repeats = max(one.groups[place].repeats for one in accesses) / len(grid.places)
        own = unite(place)
        new, known = own.size, _NOTHING
        fresh[0] += own.size * repeats
        for axis in range(3):
            other = grid.before(place, axis)
            if other is not None:
                known = list_distinct(np.concatenate([known, unite(other)]))
                new = int(list_distinct(np.concatenate([own, known])).size - known.size)
            fresh[axis + 1] += new * repeats
    return fresh


def _share_held(size_bytes: float, needed_bytes: float) -> float:
    """Compute 1 for what fits, 0 for twice as much, and a share between."""
    return min(1.0, max(0.0, 2 - needed_bytes / size_bytes))
