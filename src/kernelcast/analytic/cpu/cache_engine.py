"""A set-associative cache simulator: what a stream of loads and stores moves between levels.

The state is two flat arrays: with numba 0.68 a function that takes arrays in a named tuple spends
ten times as long, on counting references to them.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.machine import CpuCache

IntArray = npt.NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., object])

# Columns of the table: geometry, neighbours and counts of a level, a row each, memory last.
FIRST, SETS, WAYS, BACK, ALLOCATE, TAKES, INCLUSIVE, LOAD_FROM, VICTIM = range(9)
LOADS, HITS, MISSES, STORES, EVICTS = range(9, 14)
CLOCK = 14
"""Of all levels, in the first row."""
# Rows of the array of lines: number of the line that a way holds, time of its last use, whether it
# is modified.
TAG, STAMP, DIRTY = range(3)
NEAREST = cast("int", np.int64(0))
# Kinds of requests, and whether a line is modified. They are no literals: machine code of recursive
# calls with literals cannot be kept (numba issue 6061).
LOAD, STORE, EVICTED = cast("list[int]", list(map(np.int64, range(3))))
CLEAN = cast("int", np.int64(0))
KEEP, FILL, FETCH = range(3)
NONE = -1
EMPTY = -(1 << 62)
"""Tag of a way that has never held a line; like any tag below 0, it holds none."""
LEFT = -1
"""Tag of a way that a line has left again."""
_REMEMBERED = 64
"""Places of a loop's body whose last way is remembered; a power of two."""
# Without numba's runtime, which counts references to arrays at each call: four times as fast as
# with it (numba 0.68). Compiled functions cannot allocate then, and need not. It is no documented
# option, and only compiling shows whether the numba at hand takes it; else it compiles as usual.
_OPTIONS: dict[str, Any] = {"nogil": True}
_QUICK = {**_OPTIONS, "_nrt": False}
with suppress(KeyError):
    numba.njit("int64(int64)", **_QUICK)(lambda number: number)
    _OPTIONS = _QUICK


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays when it is first called."""
    try:
        return cast("Function", numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:  # numba found no folder for its cache: each process compiles anew
        return cast("Function", numba.njit(**_OPTIONS)(function))


class Simulator:
    """Caches with what they hold, nearest first; empty to begin with.

    A store that brings its line in is a load as well; loads that miss a victim cache do not count.
    Evictions are modified lines, stores passed through, and all lines that go to a victim cache.
    """

    def __init__(self, caches: Sequence[CpuCache]) -> None:
        self._table = np.zeros((len(caches) + 1, CLOCK + 1), dtype=np.int64)
        first = 0
        for at, cache_ in enumerate(caches):
            plain = (place for place in range(at + 1, len(caches)) if not caches[place].is_victim)
            has_victim = at + 1 < len(caches) and caches[at + 1].is_victim
            allocates = cache_.writes_allocate and not cache_.is_victim
            self._table[at, :LOADS] = (
                first, cache_.sets, cache_.ways, cache_.writes_back, allocates,
                cache_.writes_back and (allocates or cache_.is_victim), cache_.is_inclusive,
                next(plain, len(caches)), at + 1 if has_victim else NONE,
            )  # fmt: skip
            first += cache_.sets * cache_.ways
        self._table[-1, FIRST] = first
        self._lines = np.zeros((3, first), dtype=np.int64)
        self._lines[TAG] = EMPTY
        self._tried = np.zeros(_REMEMBERED, dtype=np.int64)
        self._shift = caches[0].line_bytes.bit_length() - 1

    def feed(self, addresses: IntArray, kinds: IntArray) -> None:
        """Run accesses through the caches; `kinds` says whether each one writes, and its bytes."""
        consume(self._table, self._lines, self._tried, self._shift, addresses, kinds)

    def reset_counts(self) -> None:
        """Count from 0 again; the caches keep what they hold."""
        self._table[:, LOADS:CLOCK] = 0

    @property
    def is_full(self) -> bool:
        """Whether every way has held a line: those of a victim cache are rarely full at once."""
        return not (self._lines[TAG] == EMPTY).any()

    @property
    def counts(self) -> list[list[int]]:
        """Loads, hits, misses, stores and evictions of each level; of memory last."""
        counts: list[list[int]] = self._table[:, LOADS:CLOCK].tolist()
        return counts


@compiled
def consume(
    table: IntArray,
    lines: IntArray,
    tried: IntArray,
    shift: int,
    addresses: IntArray,
    kinds: IntArray,
) -> None:
    """Run accesses through the caches, see `Simulator.feed`; rows of `kinds` repeat."""
    # Most accesses hit, and most of those hit the line that the same place of the loop's body hit
    # the time before: so that way is tried first, and counts stay in registers. Nothing is called
    # for them; that makes it four times as fast.
    hits = stores = kind = 0
    clock = table[0, CLOCK]
    for at in range(addresses.shape[0]):
        is_store, size = kinds[kind, 0], kinds[kind, 1]
        place = kind & (_REMEMBERED - 1)
        kind += 1
        if kind == kinds.shape[0]:
            kind = 0
        line, last = addresses[at] >> shift, (addresses[at] + size - 1) >> shift
        if line == last and (table[0, BACK] == 1 or not is_store):
            way = tried[place]
            if lines[TAG, way] != line:
                way = _find_way(table, lines, 0, line)
            if way != NONE:
                tried[place] = way
                clock += 1
                lines[STAMP, way] = clock
                if is_store:
                    stores += 1
                    lines[DIRTY, way] = 1
                else:
                    hits += 1
                continue
        table[0, CLOCK] = clock
        while line <= last:
            _request(table, lines, NEAREST, STORE if is_store else LOAD, line, CLEAN)
            line += 1
        clock = table[0, CLOCK]
    table[0, CLOCK] = clock
    table[0, LOADS] += hits
    table[0, HITS] += hits
    table[0, STORES] += stores


@compiled
def _request(  # noqa: C901 - compiled functions may call themselves, but not each other
    table: IntArray, lines: IntArray, level: int, kind: int, line: int, is_dirty: int
) -> int:
    """Ask a level for a line, store something in it, or give it an evicted one."""
    if level == table.shape[0] - 1:  # memory
        table[level, LOADS if kind == LOAD else STORES] += 1
        if kind == LOAD:
            table[level, HITS] += 1
        return level
    way = _find_way(table, lines, level, line)
    then, new_dirty, passes = KEEP, 0, False
    if kind == LOAD:
        table[level, LOADS] += 1
        table[level, HITS if way != NONE else MISSES] += 1
        if way != NONE:
            _touch(table, lines, way)
        else:
            then = FETCH
    else:
        table[level, STORES] += 1
        if way != NONE:
            passes = not table[level, BACK]
            if kind == STORE:  # an evicted line is no use of it: it ages on
                _touch(table, lines, way)
            if not passes and (kind == STORE or is_dirty):
                lines[DIRTY, way] = 1
        elif kind == EVICTED and table[level, TAKES]:
            then, new_dirty = FILL, is_dirty
        elif table[level, ALLOCATE]:
            table[level, LOADS] += 1
            table[level, MISSES] += 1
            then, new_dirty, passes = FETCH, table[level, BACK], not table[level, BACK]
        else:
            passes = True
    if then == FETCH:
        victim = table[level, VICTIM]
        held = _find_way(table, lines, victim, line) if victim != NONE else NONE
        if held != NONE:  # the victim cache gives its line up
            table[victim, LOADS] += 1
            table[victim, HITS] += 1
            new_dirty |= lines[DIRTY, held]
            lines[TAG, held], lines[DIRTY, held] = LEFT, 0
        else:
            _request(table, lines, table[level, LOAD_FROM], LOAD, line, CLEAN)
    if then != KEEP:
        # To an empty way, else to the least recently used.
        first = way = _find_set(table, level, line)
        for place in range(first, first + table[level, WAYS]):
            if lines[TAG, place] < 0:
                way = place
                break
            if lines[STAMP, place] < lines[STAMP, way]:
                way = place
        old, old_dirty = lines[TAG, way], lines[DIRTY, way]
        lines[TAG, way], lines[DIRTY, way] = line, new_dirty
        _touch(table, lines, way)
        if old >= 0:
            for nearer in range(level if table[level, INCLUSIVE] else 0):
                held = _find_way(table, lines, nearer, old)
                if held != NONE:
                    old_dirty |= lines[DIRTY, held]
                    lines[TAG, held], lines[DIRTY, held] = LEFT, 0
            if old_dirty or table[level, VICTIM] != NONE:
                table[level, EVICTS] += 1
                _request(table, lines, level + 1, EVICTED, old, old_dirty)
    if passes:
        table[level, EVICTS] += 1
        _request(table, lines, level + 1, kind, line, is_dirty)
    return level


@compiled
def _find_set(table: IntArray, level: int, line: int) -> int:
    """Find the first way of the set that a line belongs to."""
    sets = table[level, SETS]
    place = line & (sets - 1) if sets & (sets - 1) == 0 else line % sets
    return table[level, FIRST] + place * table[level, WAYS]  # type: ignore[no-any-return]


@compiled
def _find_way(table: IntArray, lines: IntArray, level: int, line: int) -> int:
    """Find the way that holds a line; `NONE` if none does."""
    first = _find_set(table, level, line)
    for way in range(first, first + table[level, WAYS]):
        if lines[TAG, way] == line:
            return way
    return NONE


@compiled
def _touch(table: IntArray, lines: IntArray, way: int) -> None:
    table[0, CLOCK] += 1
    lines[STAMP, way] = table[0, CLOCK]
