"""Lines that a launch moves over each boundary, by layer conditions on work-groups.

A core runs work-groups in dispatch order. What a work-group needs is there already if the one
before it along some dimension brought it in, and the cache holds what came in between: a
work-group for neighbours along x, a row of them along y, a plane along z.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelcast.analytic.cpu.opencl.addresses import (
    ABSENT,
    GroupAddresses,
    IntArray,
    list_distinct,
)
from kernelcast.analytic.cpu.opencl.device import CpuDevice, DeviceCache
from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.analytic.cpu.opencl.index_space import Groups, Place
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTraffic:
    """What a level sends to and gets from the nearer one, over the whole launch.

    Parameters
    ----------
    name : str
        The farther level: ``L2``, ``L3``, ``DRAM``.
    loaded_bytes, stored_bytes : float
        Towards the cores and away from them.
    """

    name: str
    loaded_bytes: float
    stored_bytes: float


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
    device: CpuDevice,
    execution: Execution,
    patterns: Sequence[AccessPattern],
) -> list[LevelTraffic]:
    """Count what crosses each boundary."""
    grid = Groups.of(launch.ndrange)
    counter = _Counter(launch, grid, execution, device.line_bytes)
    own = [one for one in patterns if not one.is_local]
    loads, stores, written_bytes = counter.compare(own)
    found = []
    for nearer, farther in zip(device.levels[:-1], device.levels[1:], strict=True):
        loaded = counter.pass_by(nearer, loads, loads, stores)
        stored = counter.pass_by(nearer, stores, loads, stores)
        filled = stored * _count_gaps(stored * device.line_bytes, written_bytes)
        loaded += filled + counter.miss_randomly(nearer, own)
        stored += counter.miss_randomly(nearer, own, of_stores=True)
        scale = grid.count * device.line_bytes
        total = counter.footprint_bytes(loads, stores)
        if total <= nearer.total_bytes:
            loaded, stored = min(loaded, total / scale), min(stored, total / scale)
        found.append(
            LevelTraffic(
                name=farther.name, loaded_bytes=loaded * scale, stored_bytes=stored * scale
            )
        )
    return found


def _count_gaps(line_bytes: float, written_bytes: float) -> float:
    """Give the share of stored lines that must be loaded first, since not all of it is written."""
    if not line_bytes:
        return 0.0
    return min(1.0, 2 * max(0.0, 1 - written_bytes / line_bytes))


class _Counter:
    """Counts lines of work-groups and of their neighbours."""

    def __init__(
        self, launch: ModelledLaunch, grid: Groups, execution: Execution, line_bytes: int
    ) -> None:
        self._launch = launch
        self._grid = grid
        self._execution = execution
        self._line = line_bytes

    def compare(self, patterns: Sequence[AccessPattern]) -> tuple[_Fresh, _Fresh, float]:
        """Give fresh lines of loads and of stores, and the bytes that a work-group writes."""
        loads, stores, written = _Fresh(), _Fresh(), 0.0
        buffers: dict[tuple[str, bool], list[AccessPattern]] = defaultdict(list)
        for one in patterns:
            if not one.groups:
                continue
            is_store = one.access.kind is not AccessKind.LOAD
            buffers[one.access.buffer or "", is_store].append(one)
            if is_store:
                written += one.executions * one.access.bytes * self._launch.ndrange.work_group_size
        for (_, is_store), accesses in buffers.items():
            self._add(stores if is_store else loads, accesses)
        return loads, stores, written

    def pass_by(self, cache: DeviceCache, wanted: _Fresh, loads: _Fresh, stores: _Fresh) -> float:
        """Give the lines of an average work-group that a cache does not hold any more."""
        every = [one + other for one, other in zip(loads.reached, stores.reached, strict=True)]
        x, y, _ = (one.groups for one in self._grid.axes)
        needs = [every[0] + every[1], every[1] * x, every[2] * x * y]
        lines = wanted.reached[0]
        if not self._execution.steps_together:
            alone = (loads.by_vector + stores.by_vector) / self._vectors()
            inside = self._share_held(cache, every[0])
            if alone:
                lines += (1 - inside) * max(0.0, wanted.by_vector - lines)
        for place, need in enumerate(needs):
            held = self._share_held(cache, need)
            lines -= held * (wanted.reached[place] - wanted.reached[place + 1])
        return lines

    def miss_randomly(
        self, cache: DeviceCache, patterns: Sequence[AccessPattern], *, of_stores: bool = False
    ) -> float:
        """Give the lines of an average work-group whose addresses depend on data."""
        missed = 0.0
        for one in patterns:
            if one.groups or (of_stores and one.access.kind is AccessKind.LOAD):
                continue
            size = self._launch.buffers.get(one.access.buffer or "")
            held = min(1.0, cache.size_bytes / size) if size else 0.0
            lines = [group.list_lines(one.access.bytes, self._line).size for group in one.recorded]
            missed += (1 - held) * float(np.mean(lines)) if lines else 0.0
        return missed

    def footprint_bytes(self, loads: _Fresh, stores: _Fresh) -> float:
        """Bound what the whole launch touches."""
        fresh = (loads.reached[3] + stores.reached[3]) * self._grid.count * self._line
        known = self._launch.buffers
        jumping = {one.buffer for one in self._launch.accesses if one.offset_bytes is None}
        named = {one.buffer for one in self._launch.accesses if one.buffer in known}
        total = float(sum(known[one] for one in named if one is not None))
        jumped = float(sum(known.get(one or "", 0) for one in jumping))
        return min(fresh + jumped, total) if total else fresh

    def _share_held(self, cache: DeviceCache, lines: float) -> float:
        """Give 1 for what fits, 0 for twice as much, and a share between."""
        needed = lines * self._line
        return min(1.0, max(0.0, 2 - needed / cache.size_bytes)) if needed else 1.0

    def _vectors(self) -> float:
        return self._launch.ndrange.work_group_size / self._execution.width

    def _add(self, fresh: _Fresh, accesses: Sequence[AccessPattern]) -> None:
        """Add a buffer's lines, averaged over the places looked at."""
        chosen = self._grid.choose()
        for place in chosen:
            near = [self._grid.before(place, axis) for axis in range(3)]
            repeats = max(one.groups[place].repeats for one in accesses) / len(chosen)
            known = _NOTHING
            own = self._unite(accesses, place)
            fresh.reached[0] += own.size * repeats
            fresh.by_vector += self._sum_vectors(accesses, place) * repeats
            for axis, other in enumerate(near):
                if other is not None:
                    known = np.concatenate([known, self._unite(accesses, other)])
                new = _count_new(own, known)
                fresh.reached[axis + 1] += new * repeats

    def _unite(self, accesses: Iterable[AccessPattern], place: Place) -> IntArray:
        parts = [one.groups[place].list_lines(one.access.bytes, self._line) for one in accesses]
        return parts[0] if len(parts) == 1 else list_distinct(np.concatenate(parts))

    def _sum_vectors(self, accesses: Sequence[AccessPattern], place: Place) -> float:
        """Add up what each vector touches on its own, from one in the middle."""
        width = self._execution.width
        items = len(accesses[0].groups[place].table)
        first = items // width // 2 * width
        parts = []
        for one in accesses:
            table = one.groups[place].table[first : first + width]
            if (table != ABSENT).any():
                vector = GroupAddresses(table=table)
                parts.append(vector.list_lines(one.access.bytes, self._line))
        return list_distinct(np.concatenate(parts)).size * items / width if parts else 0.0


def _count_new(own: IntArray, known: IntArray) -> int:
    """Count the values of `own`, all different, that are not among others."""
    if not known.size:
        return int(own.size)
    return int(list_distinct(np.concatenate([own, known])).size - list_distinct(known).size)
