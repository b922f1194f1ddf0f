"""The compiled state machine: one access after the other through all levels.

The state is two flat arrays. Measured with numba 0.68: a function that takes arrays in a named
tuple spends ten times as long, on counting references to them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.cache_simulator.hierarchy import CacheHierarchy, CacheRole

IntArray = npt.NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., object])

# Columns of the table: geometry, neighbours and counts of a level, a row each, memory last.
FIRST, SETS, WAYS, SHIFT = range(4)
BACK, ALLOCATE, COMBINING, INCLUSIVE, LOAD_FROM, VICTIM = range(4, 10)
LOADS, HITS, MISSES, STORES, EVICTS = range(10, 15)
BYTES = 5
"""Added to the column of a count: that of its bytes."""
CLOCK = 20
"""Of all levels, in the first row."""
_COLUMNS = 21
# Rows of the array of lines: number of the line that a way holds, time of its last use, whether it
# is modified, bytes written.
TAG, STAMP, DIRTY, WRITTEN = range(4)
NEAREST = cast("int", np.int64(0))
# Kinds of requests, and whether a line is modified. They are no literals: machine code of recursive
# calls with literals cannot be kept (numba issue 6061). SEND gives a line that leaves its level to
# the one behind; its size is the mask of bytes written.
LOAD, STORE, EVICTED, SEND = cast("list[int]", list(map(np.int64, range(4))))
CLEAN, MODIFIED = cast("list[int]", list(map(np.int64, range(2))))
KEEP, FILL, FETCH = range(3)
NONE = -1
ALL_BYTES = -1
EMPTY = -(1 << 62)
"""Tag of a way that has never held a line; like any tag below 0, it holds none."""
LEFT = -1
"""Tag of a way that a line has left again."""
_REMEMBERED = 64
"""Places of a loop's body whose last way is remembered; a power of two."""
_WITHOUT_RUNTIME = "_nrt"
"""Off: without numba's runtime, which counts references to arrays at each call; four times as fast
as with it (numba 0.68). Compiled functions cannot allocate then, and need not. No documented
option: a numba that does not know it compiles as usual."""


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays when it is first called.

    Machine code is kept beside the module or, where that may not be written, in numba's folder
    for the user; where neither can be, it is compiled anew in each process.
    """
    options: dict[str, Any] = {"nogil": True}
    if knows_option(_WITHOUT_RUNTIME):
        options[_WITHOUT_RUNTIME] = False
    try:
        return cast("Function", numba.njit(cache=True, **options)(function))
    except RuntimeError:  # numba found no folder for its cache
        return cast("Function", numba.njit(**options)(function))


@cache
def knows_option(name: str) -> bool:
    """Tell whether the numba at hand takes an option, which only compiling shows."""
    options: dict[str, Any] = {name: False}
    try:
        numba.njit("int64(int64)", **options)(lambda number: number)
    except KeyError:
        return False
    return True


def make_state(hierarchy: CacheHierarchy) -> tuple[IntArray, IntArray]:
    """Make the table and the lines of empty caches."""
    levels = hierarchy.levels
    table = np.zeros((len(levels) + 1, _COLUMNS), dtype=np.int64)
    first = 0
    for at, level in enumerate(levels):
        plain = (
            place for place in range(at + 1, len(levels)) if levels[place].role is CacheRole.CACHE
        )
        has_victim = at + 1 < len(levels) and levels[at + 1].role is CacheRole.VICTIM
        table[at, :LOADS] = (
            first, level.sets, level.ways, level.line_bytes.bit_length() - 1, level.writes_back,
            level.writes_allocate and level.role is CacheRole.CACHE,
            level.role is CacheRole.WRITE_COMBINING, level.is_inclusive,
            next(plain, len(levels)), at + 1 if has_victim else NONE,
        )  # fmt: skip
        first += level.lines
    table[-1, FIRST] = first
    lines = np.zeros((4, first), dtype=np.int64)
    lines[TAG] = EMPTY
    return table, lines


@compiled
def consume(
    table: IntArray, lines: IntArray, tried: IntArray, addresses: IntArray, kinds: IntArray
) -> None:
    """Run accesses through the caches.

    Parameters
    ----------
    table, lines : ndarray
        Those of `make_state`; are changed.
    tried : ndarray of shape (64,)
        The way that each place of the loop's body hit last; is changed.
    addresses : ndarray of shape (n,)
        First byte of each access.
    kinds : ndarray of shape (m, 2)
        Whether each access writes, and its bytes; they repeat where m is less than n.

    Notes
    -----
    Most accesses hit, and most of those hit the line that the same place of the loop's body hit
    the time before: so that way is tried first, and counts stay in registers. Nothing is called
    for them; that makes it four times as fast.
    """
    shift = table[0, SHIFT]
    hits = hit_bytes = stores = stored_bytes = kind = 0
    clock = table[0, CLOCK]
    for at in range(addresses.shape[0]):
        address = addresses[at]
        is_store, size = kinds[kind, 0], kinds[kind, 1]
        place = kind & (_REMEMBERED - 1)
        kind += 1
        if kind == kinds.shape[0]:
            kind = 0
        line = address >> shift
        is_plain = table[0, BACK] == 1 or not is_store
        if is_plain and line == (address + size - 1) >> shift:
            way = tried[place]
            if lines[TAG, way] != line:
                way = _find_way(table, lines, 0, line)
            if way != NONE:
                tried[place] = way
                clock += 1
                lines[STAMP, way] = clock
                if is_store:
                    stores += 1
                    stored_bytes += size
                    lines[DIRTY, way] = 1
                else:
                    hits += 1
                    hit_bytes += size
                continue
        table[0, CLOCK] = clock
        _request(table, lines, NEAREST, STORE if is_store else LOAD, address, size, CLEAN)
        clock = table[0, CLOCK]
    table[0, CLOCK] = clock
    table[0, LOADS] += hits
    table[0, LOADS + BYTES] += hit_bytes
    table[0, HITS] += hits
    table[0, HITS + BYTES] += hit_bytes
    table[0, STORES] += stores
    table[0, STORES + BYTES] += stored_bytes


@compiled
def write_back_all(table: IntArray, lines: IntArray) -> None:
    """Write all modified lines back to memory, nearest level first; lines stay, unmodified."""
    for level in range(table.shape[0] - 1):
        for way in range(table[level, FIRST], table[level + 1, FIRST]):
            if lines[DIRTY, way]:
                address, written = lines[TAG, way] << table[level, SHIFT], lines[WRITTEN, way]
                lines[DIRTY, way] = lines[WRITTEN, way] = 0
                _request(table, lines, level, SEND, address, written, MODIFIED)


@compiled
def _request(  # noqa: C901 - compiled functions may call themselves, but not each other
    table: IntArray,
    lines: IntArray,
    level: int,
    kind: int,
    address: int,
    size: int,
    is_dirty: int,
) -> int:
    """Ask a level for bytes, store some in it, give it an evicted line, or send one on."""
    if level == table.shape[0] - 1:  # memory
        _count(table, level, LOADS if kind == LOAD else STORES, size)
        if kind == LOAD:
            _count(table, level, HITS, size)
        return level
    length = 1 << table[level, SHIFT]
    if kind == SEND:
        if table[level, COMBINING] and size != _mask(0, length):
            end = 0
            for start in range(length):  # each stretch of written bytes is a store of its own
                if start >= end and (size >> start) & 1:
                    end = start
                    while end < length and (size >> end) & 1:
                        end += 1
                    _count(table, level, EVICTS, end - start)
                    _request(table, lines, level + 1, STORE, address + start, end - start, CLEAN)
        else:
            _count(table, level, EVICTS, length)
            _request(table, lines, level + 1, EVICTED, address, length, is_dirty)
        return level
    behind = address + size
    while address < behind:
        line = address >> table[level, SHIFT]
        part = min(behind, (line + 1) * length) - address
        way = _find_way(table, lines, level, line)
        then, new_dirty, written, passes = KEEP, 0, 0, False
        if kind == LOAD:
            _count(table, level, LOADS, part)
            _count(table, level, HITS if way != NONE else MISSES, part)
            if way != NONE:
                _touch(table, lines, way)
            else:
                then = FETCH
        else:
            _count(table, level, STORES, part)
            if table[level, COMBINING]:
                written = _mask(address - line * length, part)
            if kind == EVICTED and way != NONE:  # no use of the line: it ages on
                passes = not table[level, BACK]
                if not passes and is_dirty:
                    lines[DIRTY, way] = 1
                    lines[WRITTEN, way] |= written
            elif kind == EVICTED and part == length and _takes_lines(table, level):
                then, new_dirty, written = FILL, is_dirty, ALL_BYTES * is_dirty
            elif way != NONE:
                _touch(table, lines, way)
                passes = not table[level, BACK]
                if not passes:
                    lines[DIRTY, way] = 1
                    lines[WRITTEN, way] |= written
            elif table[level, COMBINING]:
                then, new_dirty = FILL, 1
            elif table[level, ALLOCATE]:
                _count(table, level, LOADS, length)
                _count(table, level, MISSES, length)
                then, new_dirty, passes = FETCH, table[level, BACK], not table[level, BACK]
            else:
                passes = True
        if then == FETCH:
            victim = table[level, VICTIM]
            held = _find_way(table, lines, victim, line) if victim != NONE else NONE
            if held != NONE:  # the victim cache gives its line up
                _count(table, victim, LOADS, length)
                _count(table, victim, HITS, length)
                new_dirty |= lines[DIRTY, held]
                _drop(lines, held)
            else:
                _request(table, lines, table[level, LOAD_FROM], LOAD, line * length, length, CLEAN)
        if then != KEEP:
            way = _choose_way(table, lines, level, line)
            old, old_dirty, old_written = lines[TAG, way], lines[DIRTY, way], lines[WRITTEN, way]
            lines[TAG, way] = line
            lines[DIRTY, way] = new_dirty
            lines[WRITTEN, way] = written
            _touch(table, lines, way)
            if old >= 0:
                old_dirty |= _drop_nearer(table, lines, level, old)
                if old_dirty or table[level, VICTIM] != NONE:
                    _request(table, lines, level, SEND, old * length, old_written, old_dirty)
        if passes:
            _count(table, level, EVICTS, part)
            _request(table, lines, level + 1, kind, address, part, is_dirty)
        address += part
    return level


@compiled
def _count(table: IntArray, level: int, what: int, size: int) -> None:
    table[level, what] += 1
    table[level, what + BYTES] += size


@compiled
def _mask(offset: int, size: int) -> int:
    """Set a bit for each byte; only of use for lines of up to 64 bytes."""
    mask = 0
    for byte in range(offset, offset + size):
        mask |= 1 << byte
    return mask


@compiled
def _takes_lines(table: IntArray, level: int) -> bool:
    """Tell whether a level takes whole lines in without loading them."""
    if not table[level, BACK]:
        return False
    is_victim = level > 0 and table[level - 1, VICTIM] == level
    return is_victim or bool(table[level, ALLOCATE]) or bool(table[level, COMBINING])


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
    """Note that a line was used."""
    table[0, CLOCK] += 1
    lines[STAMP, way] = table[0, CLOCK]


@compiled
def _choose_way(table: IntArray, lines: IntArray, level: int, line: int) -> int:
    """Choose the way that a new line goes to: an empty one, else the least recently used."""
    first = _find_set(table, level, line)
    best = first
    for way in range(first, first + table[level, WAYS]):
        if lines[TAG, way] < 0:
            return way
        if lines[STAMP, way] < lines[STAMP, best]:
            best = way
    return best


@compiled
def _drop(lines: IntArray, way: int) -> None:
    lines[TAG, way] = LEFT
    lines[DIRTY, way] = lines[WRITTEN, way] = 0


@compiled
def _drop_nearer(table: IntArray, lines: IntArray, level: int, line: int) -> int:
    """Take what an inclusive level evicts out of nearer levels; 1 if one had modified it."""
    is_dirty = 0
    start, behind = line << table[level, SHIFT], (line + 1) << table[level, SHIFT]
    for nearer in range(level if table[level, INCLUSIVE] else 0):
        shift = table[nearer, SHIFT]
        for inner in range(start >> shift, ((behind - 1) >> shift) + 1):
            way = _find_way(table, lines, nearer, inner)
            if way != NONE:
                is_dirty |= lines[DIRTY, way]
                _drop(lines, way)
    return is_dirty
