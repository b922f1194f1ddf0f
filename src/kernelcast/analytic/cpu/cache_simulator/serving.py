"""What a level does when it is asked for a line, or given one.

All functions take the arrays of `State`, the depth of the stack and a task; they give the new
depth, with what is to be done next on top.
"""

from kernelcast.analytic.cpu.cache_simulator.compiling import compiled
from kernelcast.analytic.cpu.cache_simulator.layout import (
    ALLOCATE,
    BACK,
    COMBINING,
    DIRTY,
    HITS,
    LOAD_FROM,
    LOADS,
    MISSES,
    NONE,
    SHIFT,
    STORES,
    VICTIM,
    WRITTEN,
    IntArray,
)
from kernelcast.analytic.cpu.cache_simulator.tasks import (
    ALL_BYTES,
    TASK_FILL,
    TASK_LOAD,
    Task,
    count,
    mask_of,
    pass_on,
    push,
    push_pieces,
)
from kernelcast.analytic.cpu.cache_simulator.ways import drop_way, find_way, touch_way


@compiled
def load(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Load from a level: it hits, or the line comes in from behind."""
    _, level, address, size, _ = task
    line = address >> table[level, SHIFT]
    count(table, level, LOADS, size)
    way = find_way(table, lines, level, line)
    if way != NONE:
        count(table, level, HITS, size)
        touch_way(table, lines, level, way)
        return depth
    count(table, level, MISSES, size)
    return fetch(table, lines, tasks, depth, (TASK_FILL, level, line, 0, 0))


@compiled
def fetch(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Bring a line in from behind: from the victim cache, which gives it up, or past it."""
    _, level, line, is_dirty, written = task
    length = 1 << table[level, SHIFT]
    victim = table[level, VICTIM]
    if victim != NONE:
        way = find_way(table, lines, victim, line)
        if way != NONE:
            count(table, victim, LOADS, length)
            count(table, victim, HITS, length)
            is_dirty |= lines[DIRTY, way]
            drop_way(lines, way)
            return push(tasks, depth, (TASK_FILL, level, line, is_dirty, written))
    depth = push(tasks, depth, task)
    source = table[level, LOAD_FROM]
    return push_pieces(table, tasks, depth, (TASK_LOAD, source, line * length, length, 0))


@compiled
def store(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Store a part of a line: from the core, or passed on by a level in front."""
    _, level, address, size, _ = task
    length = 1 << table[level, SHIFT]
    line = address >> table[level, SHIFT]
    count(table, level, STORES, size)
    way = find_way(table, lines, level, line)
    written = 0
    if table[level, COMBINING]:
        written = mask_of(address - line * length, size)
    if way != NONE:
        touch_way(table, lines, level, way)
        if not table[level, BACK]:
            return pass_on(table, tasks, depth, task)
        lines[DIRTY, way] = 1
        lines[WRITTEN, way] |= written
        return depth
    if table[level, COMBINING]:
        return push(tasks, depth, (TASK_FILL, level, line, 1, written))
    if not table[level, ALLOCATE]:
        return pass_on(table, tasks, depth, task)
    count(table, level, LOADS, length)
    count(table, level, MISSES, length)
    if not table[level, BACK]:
        depth = pass_on(table, tasks, depth, task)
    return fetch(table, lines, tasks, depth, (TASK_FILL, level, line, table[level, BACK], 0))


@compiled
def take_line(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Take in a line that the level in front evicts; the mask says whether it is modified.

    Where the level holds the line already, that is no use of it: it ages on.
    """
    _, level, address, size, is_dirty = task
    line = address >> table[level, SHIFT]
    way = find_way(table, lines, level, line)
    is_whole = size == 1 << table[level, SHIFT]
    if way == NONE and not (is_whole and _takes_lines(table, level)):
        return store(table, lines, tasks, depth, task)
    count(table, level, STORES, size)
    if way == NONE:
        return push(tasks, depth, (TASK_FILL, level, line, is_dirty, ALL_BYTES * is_dirty))
    if not table[level, BACK]:
        return pass_on(table, tasks, depth, task)
    lines[DIRTY, way] |= is_dirty
    if is_dirty:
        lines[WRITTEN, way] |= mask_of(address - (line << table[level, SHIFT]), size)
    return depth


@compiled
def _takes_lines(table: IntArray, level: int) -> bool:
    """Tell whether a level takes lines in without loading them."""
    if not table[level, BACK]:
        return False
    if table[level, ALLOCATE] or table[level, COMBINING]:
        return True
    return level > 0 and table[level - 1, VICTIM] == level
