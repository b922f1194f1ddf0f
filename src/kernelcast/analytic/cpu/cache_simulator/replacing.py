"""A line comes into a level, and another one leaves it.

Arguments and results are as in `serving`.
"""

from kernelcast.analytic.cpu.cache_simulator.compiling import compiled
from kernelcast.analytic.cpu.cache_simulator.layout import (
    COMBINING,
    DIRTY,
    NONE,
    SHIFT,
    TAG,
    VICTIM,
    WRITTEN,
    IntArray,
)
from kernelcast.analytic.cpu.cache_simulator.tasks import (
    TASK_FILL,
    TASK_STORE,
    TASK_WRITE_BACK,
    Task,
    mask_of,
    pass_on,
)
from kernelcast.analytic.cpu.cache_simulator.ways import choose_way, drop_nearer, place_line


@compiled
def fill(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Put a line in a way, and send what it held to where it belongs."""
    _, level, line, is_dirty, written = task
    way = choose_way(table, lines, level, line)
    old, old_dirty, old_written = lines[TAG, way], lines[DIRTY, way], lines[WRITTEN, way]
    place_line(table, lines, level, line, way)
    lines[DIRTY, way] = is_dirty
    lines[WRITTEN, way] = written
    if old < 0:
        return depth
    old_dirty |= drop_nearer(table, lines, level, old)
    if old_dirty or table[level, VICTIM] != NONE:
        return send_line(table, tasks, depth, (TASK_FILL, level, old, old_dirty, old_written))
    return depth


@compiled
def send_line(table: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Send an evicted line on: whole, or of a write-combining cache what was written of it."""
    _, level, line, is_dirty, written = task
    length = 1 << table[level, SHIFT]
    if table[level, COMBINING] and written != mask_of(0, length):
        return _send_runs(table, tasks, depth, task)
    return pass_on(table, tasks, depth, (TASK_WRITE_BACK, level, line * length, length, is_dirty))


@compiled
def _send_runs(table: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Send each stretch of written bytes as a store of its own."""
    _, level, line, _, written = task
    length = 1 << table[level, SHIFT]
    at = 0
    while at < length:
        end = at
        while end < length and (written >> end) & 1:
            end += 1
        if end > at:
            run = (TASK_STORE, level, line * length + at, end - at, 0)
            depth = pass_on(table, tasks, depth, run)
        at = end + 1
    return depth
