"""Tasks on the stack of what an access still has to do."""

from kernelcast.analytic.cpu.cache_simulator.compiling import compiled
from kernelcast.analytic.cpu.cache_simulator.layout import BYTES, EVICTS, SHIFT, IntArray

# Kinds of tasks. A task is (kind, level, address, bytes, mask), but for TASK_FILL, which is
# (kind, level, number of the line, whether it is modified, mask of the bytes written).
TASK_LOAD, TASK_STORE, TASK_WRITE_BACK, TASK_FILL = range(4)
ALL_BYTES = -1
"""Mask of a line of which every byte is written."""
Task = tuple[int, int, int, int, int]


@compiled
def push(tasks: IntArray, depth: int, task: Task) -> int:
    """Put a task on top; gives the new depth."""
    tasks[depth, 0] = task[0]
    tasks[depth, 1] = task[1]
    tasks[depth, 2] = task[2]
    tasks[depth, 3] = task[3]
    tasks[depth, 4] = task[4]
    return depth + 1


@compiled
def push_pieces(table: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Push a task for each line of its level that its bytes lie in, first one on top."""
    kind, target, address, size, mask = task
    piece = size
    if target < table.shape[0] - 1:
        piece = min(size, 1 << table[target, SHIFT])
    for start in range(address + size - piece, address - 1, -piece):
        depth = push(tasks, depth, (kind, target, start, piece, mask))
    return depth


@compiled
def count(table: IntArray, level: int, what: int, size: int) -> None:
    """Count something, and its bytes."""
    table[level, what] += 1
    table[level, what + BYTES] += size


@compiled
def pass_on(table: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Send a store, or a line, on to the level behind."""
    kind, level, address, size, mask = task
    count(table, level, EVICTS, size)
    return push_pieces(table, tasks, depth, (kind, level + 1, address, size, mask))


@compiled
def mask_of(offset: int, size: int) -> int:
    """Give a word with a bit set for each byte; only meant for lines of up to 64 bytes."""
    mask = 0
    for byte in range(offset, offset + size):
        mask |= 1 << byte
    return mask
