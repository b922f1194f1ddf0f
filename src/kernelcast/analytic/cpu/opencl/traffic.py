"""Lines that a launch moves over each boundary, by layer conditions on work-groups.

A core runs work-groups in dispatch order. What a work-group needs is there already if the one
before it along some dimension brought it in, and the cache holds what came in between: a
work-group for neighbours along x, a row of them along y, a plane along z. Rows that are a power of
two apart meet in few sets of caches, and of tables of pages.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from kernelcast.analytic.cpu.opencl.addresses import (
    ABSENT,
    Groups,
    Place,
    list_distinct,
    list_lines,
)
from kernelcast.analytic.cpu.opencl.device import CpuDevice, DeviceCache
from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.evaluation import IntArray
from kernelcast.expressions.modelled_launch import ModelledLaunch

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)
FEWEST_LINES = 8
"""Of a vector, at least."""
_ROW_BYTES = 512
"""Rows that are no multiple of so much apart meet in an eighth of the sets of a cache, or more."""
_PAGE_BYTES = 4096
_TABLE_SETS, _TABLE_PAGES = 128, 2048
"""Of the second translation buffer: 128 sets of 12 to 24 pages on x86-64 cores since 2015."""


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


@dataclass(slots=True)
class _Fresh:
    """Mean lines of a work-group that are new to it, by what it is compared with.

    ``reached[0]`` are all its lines, ``reached[1]`` those that its neighbour along x has not
    touched, ``reached[2]`` neither the one along y, ``reached[3]`` neither the one along z.
    """

    reached: list[float] = field(default_factory=lambda: [0.0] * 4)
    by_vector: float = 0.0
    """Lines of each vector of work-items alone, added up."""


def count_traffic(
    launch: ModelledLaunch,
    execution: Execution,
    patterns: Sequence[AccessPattern],
    device: CpuDevice,
) -> tuple[list[LevelTraffic], float]:
    """Count what crosses each boundary, and the pages of a work-item to look for in memory."""
    found = _Traffic(launch, execution, patterns, device)
    return found.count(launch), found.count_walks()


class _Traffic:
    """Counts what crosses each boundary on a launch's way through its work-groups.

    What is found of an average work-group here does not change when a launch has more of the same.
    """

    def __init__(
        self,
        launch: ModelledLaunch,
        execution: Execution,
        patterns: Sequence[AccessPattern],
        device: CpuDevice,
    ) -> None:
        self._grid = Groups(launch.ndrange)
        self._execution = execution
        self._device = device
        self._written_bytes = 0.0
        self._room: dict[int, float] = defaultdict(float)
        self._pages = self._walked = 0.0
        self._loads, self._stores = _Fresh(), _Fresh()
        self._jumps: list[tuple[str, float, bool]] = []
        """Of accesses whose addresses depend on data: buffer, lines per work-group, if a load."""
        buffers: dict[tuple[str, bool], list[AccessPattern]] = defaultdict(list)
        for one in patterns:
            is_load = one.access.kind is AccessKind.LOAD
            if one.is_local:
                continue
            if one.groups:
                buffers[one.access.buffer or "", is_load].append(one)
                if not is_load:
                    size = one.access.bytes * launch.ndrange.work_group_size
                    self._written_bytes += one.executions * size
            elif one.recorded:
                lines = [
                    group.list_lines(one.access.bytes, device.line_bytes).size
                    for group in one.recorded
                ]
                self._jumps.append((one.access.buffer or "", float(np.mean(lines)), is_load))
        for (_, is_load), accesses in buffers.items():
            self._add(self._loads if is_load else self._stores, accesses)
        self._named = {one.buffer or "" for one in launch.accesses}
        self._jumping = {one.buffer or "" for one in launch.accesses if one.offset_bytes is None}

    def count_walks(self) -> float:
        """Count the pages of a work-item that a core has to look for in memory."""
        if self._execution.steps_together:
            return 0.0
        share = min(1.0, max(0.0, self._pages / _TABLE_PAGES - 1))
        return self._walked * share / self._execution.width

    def count(self, launch: ModelledLaunch) -> list[LevelTraffic]:
        counts, buffers = launch.ndrange.group_counts, launch.buffers
        line_bytes = self._device.line_bytes
        loads, stores = self._loads.reached, self._stores.reached
        both = [one + other for one, other in zip(loads, stores, strict=True)]
        scale = prod(counts) * line_bytes
        x, y, *_ = (*counts, 1, 1)
        row, plane = both[1] * x * line_bytes, both[2] * x * y * line_bytes
        total = sum(buffers.get(one, 0) for one in self._named)
        jumped = sum(buffers.get(one, 0) for one in self._jumping)
        # What the whole launch touches at most.
        fresh = both[3] * scale
        total_bytes = min(fresh + jumped, total) if total else fresh
        found = []
        for nearer, level in pairwise(self._device.levels):
            in_row, in_plane = (_share_held(nearer.size_bytes, one) for one in (row, plane))
            loaded, stored = (
                self._pass_at_least(nearer, one, both)
                - in_row * (one.reached[1] - one.reached[2])
                - in_plane * (one.reached[2] - one.reached[3])
                for one in (self._loads, self._stores)
            )
            loaded += stored * _share_gaps(stored * line_bytes, self._written_bytes)
            for buffer, lines, is_load in self._jumps:
                size = buffers.get(buffer)
                missed = lines * (1 - (min(1.0, nearer.size_bytes / size) if size else 0.0))
                loaded += missed
                stored += 0.0 if is_load else missed
            # A launch that is repeated finds what the last one has left.
            moved = scale * (1 - _share_held(nearer.reach_bytes, total_bytes))
            load_s, store_s = loaded * moved * level.load_s_per_byte, stored * moved
            found.append(
                LevelTraffic(
                    level.name,
                    loaded * moved,
                    stored * moved,
                    load_s + store_s * level.store_s_per_byte,
                    loaded * moved * max(0.0, level.load_s_per_byte - nearer.load_s_per_byte)
                    + store_s * max(0.0, level.store_s_per_byte - nearer.store_s_per_byte),
                )
            )
        return found

    def _pass_at_least(self, cache: DeviceCache, wanted: _Fresh, both: Sequence[float]) -> float:
        """Count the lines of an average work-group that pass by a cache, along a row of them."""
        lines, line_bytes = wanted.reached[0], self._device.line_bytes
        if not self._execution.steps_together:
            room = (both[0] + self._room[cache.sets]) * line_bytes
            held = _share_held(cache.size_bytes, room)
            lines += (1 - held) * max(0.0, wanted.by_vector - lines)
        held = _share_held(cache.size_bytes, (both[0] + both[1]) * line_bytes)
        return lines - held * (wanted.reached[0] - wanted.reached[1])

    def _add(self, fresh: _Fresh, accesses: Sequence[AccessPattern]) -> None:
        """Add a buffer's lines, averaged over the places looked at."""
        line_bytes = self._device.line_bytes
        for place in self._grid.places:
            groups = [one.groups[place] for one in accesses]
            repeats = max(one.repeats for one in groups) / len(self._grid.places)
            own = self._unite(accesses, place)
            new, known = own.size, _NOTHING
            fresh.reached[0] += own.size * repeats
            for axis in range(3):
                other = self._grid.before(place, axis)
                if other is not None:
                    known = list_distinct(np.concatenate([known, self._unite(accesses, other)]))
                    new = int(list_distinct(np.concatenate([own, known])).size - known.size)
                fresh.reached[axis + 1] += new * repeats
            # What each vector touches on its own, from one in the middle.
            width = self._execution.width
            lines = self._list_middle(accesses, place, width)
            fresh.by_vector += lines.size * len(groups[0].table) / width * repeats
            if lines.size >= FEWEST_LINES:
                has_next = self._grid.axes[0].local >= 2 * width
                both = self._list_middle(accesses, place, 2 * width) if has_next else lines
                if find_distance(both) * line_bytes % _ROW_BYTES == 0:
                    self._add_crowd(lines, both, repeats)

    def _add_crowd(self, vector: IntArray, both: IntArray, repeats: float) -> None:
        """Add the room that lines of a vector and the next one take, and their pages."""
        for one in {cache.sets for cache in self._device.levels if cache.sets}:
            self._room[one] += find_room(both, one, repeats)
        lines = _PAGE_BYTES // self._device.line_bytes
        pages = list_distinct(both // lines)
        self._walked += list_distinct(vector // lines).size * repeats
        self._pages += pages.size * repeats + find_room(pages, _TABLE_SETS, repeats)

    def _unite(self, accesses: Iterable[AccessPattern], place: Place) -> IntArray:
        line_bytes = self._device.line_bytes
        parts = [one.groups[place].list_lines(one.access.bytes, line_bytes) for one in accesses]
        return parts[0] if len(parts) == 1 else list_distinct(np.concatenate(parts))

    def _list_middle(self, accesses: Sequence[AccessPattern], place: Place, count: int) -> IntArray:
        """List the lines of so many neighbouring work-items in the middle of a work-group."""
        items = len(accesses[0].groups[place].table)
        first = items // count // 2 * count
        parts = []
        for one in accesses:
            group = one.groups[place]
            some = group.table[first : first + count]
            some = some if group.is_full else some[some != ABSENT]
            parts.append(list_lines(some, one.access.bytes, self._device.line_bytes))
        return list_distinct(np.concatenate(parts))


def _share_held(size_bytes: float, needed_bytes: float) -> float:
    """Compute 1 for what fits, 0 for twice as much, and a share between."""
    return min(1.0, max(0.0, 2 - needed_bytes / size_bytes))


def _share_gaps(line_bytes: float, written_bytes: float) -> float:
    """Compute the share of stored lines that must be loaded first, since not all is written."""
    if not line_bytes:
        return 0.0
    return min(1.0, 2 * max(0.0, 1 - written_bytes / line_bytes))


def find_distance(lines: IntArray) -> int:
    """Find the largest distance that all lines are multiples of apart; 1 where they are few."""
    return int(np.gcd.reduce(np.diff(lines))) if lines.size >= 2 * FEWEST_LINES else 1


def find_room(lines: IntArray, sets: int, repeats: float = 1.0) -> float:
    """Find the room beyond their own that lines take, in lines of a cache that is filled evenly."""
    count = lines.size * repeats
    used = min(count, sets // gcd(find_distance(lines), sets))
    return max(0.0, sets * (count / used - 1) - count)
