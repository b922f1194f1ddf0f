"""Lines that a launch moves over each boundary, by layer conditions on work-groups.

A core runs work-groups in dispatch order. What a work-group needs is there already if the one
before it along some dimension brought it in, and the cache holds what came in between: a
work-group for neighbours along x, a row of them along y, a plane along z.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from kernelcast.analytic.cpu.opencl.addresses import (
    ABSENT,
    IntArray,
    list_distinct,
    list_lines,
)
from kernelcast.analytic.cpu.opencl.crowding import FEWEST_LINES, Crowd
from kernelcast.analytic.cpu.opencl.device import CpuDevice, DeviceCache
from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.analytic.cpu.opencl.index_space import Groups, Looked, Place
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class LevelTraffic(NamedTuple):
    """What a level sends to and gets from the nearer one, over the whole launch.

    Parameters
    ----------
    name : str
        The farther level: ``L2``, ``L3``, ``DRAM``.
    loaded_bytes, stored_bytes : float
        Towards the cores and away from them.
    seconds : float
        All of its time, as farther levels were measured: with what nearer ones take in it.
    added_s : float
        The same without that.
    """

    name: str
    loaded_bytes: float
    stored_bytes: float
    seconds: float
    added_s: float


@dataclass(slots=True)
class _Fresh:
    """Mean lines of a work-group that are new to it, by what it is compared with.

    ``reached[0]`` are all its lines, ``reached[1]`` those that its neighbour along x has not
    touched, ``reached[2]`` neither the one along y, ``reached[3]`` neither the one along z.
    """

    reached: list[float] = field(default_factory=lambda: [0.0] * 4)
    by_vector: float = 0.0
    """Lines of each vector of work-items alone, added up."""

    @property
    def saved(self) -> tuple[float, float]:
        """Lines that the neighbour along y brought, not the one along x; and z, but not y."""
        _, x, y, z = self.reached
        return x - y, y - z


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedLines:
    """Lines of an average work-group; nothing here changes when a launch has more of the same.

    Parameters
    ----------
    loads, stores : _Fresh
        New lines.
    written_bytes : float
        What a work-group writes.
    jumps : tuple of (str, float, bool)
        Of accesses whose addresses depend on data: buffer, lines per work-group, whether a load.
    named, jumping : frozenset of str
        Buffers that are touched, and those of them at addresses that depend on data.
    crowd : Crowd
        Where neighbouring vectors meet in few sets.
    vectors : float
        Of a work-group.
    steps_together : bool
        Whether all vectors do one part of the kernel before the next.
    """

    loads: _Fresh
    stores: _Fresh
    written_bytes: float
    jumps: tuple[tuple[str, float, bool], ...]
    named: frozenset[str]
    jumping: frozenset[str]
    crowd: Crowd
    vectors: float
    steps_together: bool


def find_lines(
    launch: ModelledLaunch,
    execution: Execution,
    patterns: Sequence[AccessPattern],
    device: CpuDevice,
) -> TouchedLines:
    """Find the lines that a work-group touches, and those that its neighbours have not."""
    grid, line_bytes = Groups.of(launch.ndrange), device.line_bytes
    counter = _Counter(grid, grid.look(), execution, device)
    loads, stores, written = _Fresh(), _Fresh(), 0.0
    buffers: dict[tuple[str, bool], list[AccessPattern]] = defaultdict(list)
    own = [one for one in patterns if not one.is_local]
    for one in own:
        if not one.groups:
            continue
        is_store = one.access.kind is not AccessKind.LOAD
        buffers[one.access.buffer or "", is_store].append(one)
        if is_store:
            written += one.executions * one.access.bytes * launch.ndrange.work_group_size
    for (_, is_store), accesses in buffers.items():
        counter.add(stores if is_store else loads, accesses)
    return TouchedLines(
        loads=loads,
        stores=stores,
        written_bytes=written,
        jumps=tuple(
            (
                one.access.buffer or "",
                _count_lines(one, line_bytes),
                one.access.kind is AccessKind.LOAD,
            )
            for one in own
            if not one.groups and one.recorded
        ),
        named=frozenset(one.buffer or "" for one in launch.accesses),
        jumping=frozenset(one.buffer or "" for one in launch.accesses if one.offset_bytes is None),
        crowd=counter.crowd,
        vectors=launch.ndrange.work_group_size / execution.width,
        steps_together=execution.steps_together,
    )


class Traffic:
    """Says what crosses each boundary on a launch's way through its work-groups.

    Parameters
    ----------
    lines : TouchedLines
        Of a work-group.
    device : CpuDevice
        Its caches.
    """

    def __init__(self, lines: TouchedLines, device: CpuDevice) -> None:
        self._lines = lines
        self._line_bytes = device.line_bytes
        loads, stores = lines.loads.reached, lines.stores.reached
        self._reached = [one + other for one, other in zip(loads, stores, strict=True)]
        self._levels = [self._describe(*pair) for pair in pairwise(device.levels)]

    def count(self, counts: Sequence[int], buffers: Mapping[str, int]) -> list[LevelTraffic]:
        """Count it for a launch.

        Parameters
        ----------
        counts : sequence of int
            Work-groups of the launch per dimension.
        buffers : mapping of str to int
            Bytes of buffers, where known.
        """
        lines, line_bytes = self._lines, self._line_bytes
        loads, stores = lines.loads.saved, lines.stores.saved
        scale = prod(counts) * line_bytes
        x, y, *_ = (*counts, 1, 1)
        row = self._reached[1] * x * line_bytes
        plane = self._reached[2] * x * y * line_bytes
        fresh = self._reached[3] * scale
        total = sum(buffers.get(one, 0) for one in lines.named)
        jumped = sum(buffers.get(one, 0) for one in lines.jumping)
        # What the whole launch touches at most.
        total_bytes = min(fresh + jumped, total) if total else fresh
        found = []
        for level in self._levels:
            cache = level.nearer
            in_row = _share_held(cache.size_bytes, row)
            in_plane = _share_held(cache.size_bytes, plane)
            loaded = level.loaded - in_row * loads[0] - in_plane * loads[1]
            stored = level.stored - in_row * stores[0] - in_plane * stores[1]
            loaded += stored * _count_gaps(stored * line_bytes, lines.written_bytes)
            if lines.jumps:
                loaded += self._miss_randomly(cache, buffers)
                stored += self._miss_randomly(cache, buffers, of_stores=True)
            # A launch that is repeated finds what the last one has left.
            moved = scale * (1 - _share_held(cache.reach_bytes, total_bytes))
            found.append(level.time(loaded * moved, stored * moved))
        return found

    def _describe(self, nearer: DeviceCache, level: DeviceCache) -> "_Level":
        return _Level(
            nearer,
            level,
            self._pass_at_least(nearer, self._lines.loads),
            self._pass_at_least(nearer, self._lines.stores),
            max(0.0, level.load_s_per_byte - nearer.load_s_per_byte),
            max(0.0, level.store_s_per_byte - nearer.store_s_per_byte),
        )

    def _pass_at_least(self, cache: DeviceCache, wanted: _Fresh) -> float:
        """Give the lines of an average work-group that pass by a cache, however many there are.

        It holds those that neighbours along y and z brought, which `count` knows better.
        """
        lines = wanted.reached[0]
        if not self._lines.steps_together:
            alone = (
                self._lines.loads.by_vector + self._lines.stores.by_vector
            ) / self._lines.vectors
            if alone:
                room = self._lines.crowd.room.get(cache.sets, 0.0)
                inside = self._hold(cache, self._reached[0] + room)
                lines += (1 - inside) * max(0.0, wanted.by_vector - lines)
        need = self._reached[0] + self._reached[1]
        return lines - self._hold(cache, need) * (wanted.reached[0] - wanted.reached[1])

    def _miss_randomly(
        self, cache: DeviceCache, buffers: Mapping[str, int], *, of_stores: bool = False
    ) -> float:
        """Give the lines of an average work-group whose addresses depend on data."""
        missed = 0.0
        for buffer, lines, is_load in self._lines.jumps:
            if of_stores and is_load:
                continue
            size = buffers.get(buffer)
            held = min(1.0, cache.size_bytes / size) if size else 0.0
            missed += (1 - held) * lines
        return missed

    def _hold(self, cache: DeviceCache, lines: float) -> float:
        return _share_held(cache.size_bytes, lines * self._line_bytes)


class _Level(NamedTuple):
    """A cache, the level behind it, and lines that pass by unless neighbours brought them."""

    nearer: DeviceCache
    level: DeviceCache
    loaded: float
    stored: float
    load_s_added: float
    """Seconds per byte that the level takes beyond the nearer one."""
    store_s_added: float

    def time(self, loaded_bytes: float, stored_bytes: float) -> LevelTraffic:
        """Say how long transfers take."""
        level = self.level
        return LevelTraffic(
            level.name,
            loaded_bytes,
            stored_bytes,
            loaded_bytes * level.load_s_per_byte + stored_bytes * level.store_s_per_byte,
            loaded_bytes * self.load_s_added + stored_bytes * self.store_s_added,
        )


def _share_held(size_bytes: float, needed_bytes: float) -> float:
    """Give 1 for what fits, 0 for twice as much, and a share between."""
    share = 2 - needed_bytes / size_bytes
    return 1.0 if share > 1 else max(share, 0.0)


def _count_gaps(line_bytes: float, written_bytes: float) -> float:
    """Give the share of stored lines that must be loaded first, since not all of it is written."""
    if not line_bytes:
        return 0.0
    return min(1.0, 2 * max(0.0, 1 - written_bytes / line_bytes))


def _count_lines(pattern: AccessPattern, line_bytes: int) -> float:
    """Give the different lines of a sampled work-group, the mean."""
    found = [one.list_lines(pattern.access.bytes, line_bytes).size for one in pattern.recorded]
    return float(np.mean(found))


class _Counter:
    """Counts lines of work-groups and of their neighbours."""

    def __init__(
        self, grid: Groups, looked: Looked, execution: Execution, device: CpuDevice
    ) -> None:
        self.crowd = Crowd()
        self._grid = grid
        self._places = looked.places
        self._width = execution.width
        self._line = device.line_bytes
        self._sets = {one.sets for one in device.levels if one.sets}

    def add(self, fresh: _Fresh, accesses: Sequence[AccessPattern]) -> None:
        """Add a buffer's lines, averaged over the places looked at."""
        total = sum(self._places.values())
        for place, times in self._places.items():
            repeats = max(one.groups[place].repeats for one in accesses)
            repeats *= times / total
            known = _NOTHING
            own = self._unite(accesses, place)
            new = own.size
            fresh.reached[0] += own.size * repeats
            self._compare_vectors(fresh, accesses, place, times / total)
            for axis in range(3):
                other = self._grid.before(place, axis)
                if other is not None:
                    known = np.concatenate([known, self._unite(accesses, other)])
                    new = _count_new(own, known)
                fresh.reached[axis + 1] += new * repeats

    def _unite(self, accesses: Iterable[AccessPattern], place: Place) -> IntArray:
        parts = [one.groups[place].list_lines(one.access.bytes, self._line) for one in accesses]
        return parts[0] if len(parts) == 1 else list_distinct(np.concatenate(parts))

    def _compare_vectors(
        self, fresh: _Fresh, accesses: Sequence[AccessPattern], place: Place, share: float
    ) -> None:
        """Add what each vector touches on its own, from one in the middle."""
        groups = [one.groups[place] for one in accesses]
        repeats = max(one.repeats for one in groups)
        vectors = len(groups[0].table) / self._width
        lines = self._list_middle(accesses, place, self._width)
        fresh.by_vector += lines.size * vectors * repeats * share
        if lines.size >= FEWEST_LINES:
            has_next = self._grid.axes[0].local >= 2 * self._width
            both = self._list_middle(accesses, place, 2 * self._width) if has_next else lines
            self.crowd.add(lines, both, self._line, self._sets, repeats * share)

    def _list_middle(self, accesses: Sequence[AccessPattern], place: Place, count: int) -> IntArray:
        """List the lines of so many neighbouring work-items in the middle of a work-group."""
        items = len(accesses[0].groups[place].table)
        first = items // count // 2 * count
        parts = []
        for one in accesses:
            group = one.groups[place]
            some = group.table[first : first + count]
            if not group.is_full:
                some = some[some != ABSENT]
            parts.append(list_lines(some, one.access.bytes, self._line))
        return list_distinct(np.concatenate(parts))


def _count_new(own: IntArray, known: IntArray) -> int:
    """Count the values of `own`, all different, that are not among others."""
    return int(list_distinct(np.concatenate([own, known])).size - list_distinct(known).size)
