"""The compiled state machine: one access after the other through all levels.

The nearest level is looked up in line; all else is done by tasks on a stack, since a miss may
evict a line whose own level then evicts another, and so on. All functions take the arrays of
`State`; those that leave work behind give the new depth of the stack.
"""

from kernelcast.analytic.cpu.cache_simulator.compiling import compiled
from kernelcast.analytic.cpu.cache_simulator.layout import (
    BACK,
    BYTES,
    CLOCK,
    DIRTY,
    FIRST,
    HITS,
    LAST_STAMPED,
    LOADS,
    NONE,
    POLICY,
    SHIFT,
    STAMP,
    STORES,
    TAG,
    TREE_PLRU,
    WRITTEN,
    IntArray,
)
from kernelcast.analytic.cpu.cache_simulator.replacing import fill, send_line
from kernelcast.analytic.cpu.cache_simulator.serving import load, store, take_line
from kernelcast.analytic.cpu.cache_simulator.tasks import (
    TASK_FILL,
    TASK_LOAD,
    TASK_STORE,
    Task,
    count,
    push,
)
from kernelcast.analytic.cpu.cache_simulator.ways import find_way

_REMEMBERED = 64
"""Places of a loop's body whose last way is remembered; a power of two."""


@compiled
def consume(
    table: IntArray,
    lines: IntArray,
    tasks: IntArray,
    addresses: IntArray,
    kinds: IntArray,
) -> None:
    """Run accesses through the caches.

    Parameters
    ----------
    table, lines, tasks : ndarray
        Those of `State`; are changed.
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
    shift, policy = table[0, SHIFT], table[0, POLICY]
    stamps_hits = policy <= LAST_STAMPED
    is_plain = stamps_hits or policy != TREE_PLRU
    keeps_stores = table[0, BACK] == 1
    tried = tasks[-_REMEMBERED:, 0]
    hits = hit_bytes = stores = stored_bytes = 0
    clock = table[0, CLOCK]
    kind = 0
    for at in range(addresses.shape[0]):
        address = addresses[at]
        is_store, size = kinds[kind, 0], kinds[kind, 1]
        place = kind & (_REMEMBERED - 1)
        kind += 1
        if kind == kinds.shape[0]:
            kind = 0
        line = address >> shift
        if is_plain and (keeps_stores or not is_store) and line == (address + size - 1) >> shift:
            way = tried[place]
            if lines[TAG, way] != line:
                way = find_way(table, lines, 0, line)
            if way != NONE:
                tried[place] = way
                if stamps_hits:
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
        _access(table, lines, tasks, (TASK_STORE if is_store else TASK_LOAD, 0, address, size, 0))
        clock = table[0, CLOCK]
    table[0, CLOCK] = clock
    table[0, LOADS] += hits
    table[0, LOADS + BYTES] += hit_bytes
    table[0, HITS] += hits
    table[0, HITS + BYTES] += hit_bytes
    table[0, STORES] += stores
    table[0, STORES + BYTES] += stored_bytes


@compiled
def write_back_all(table: IntArray, lines: IntArray, tasks: IntArray) -> None:
    """Write all modified lines back to memory, nearest level first; lines stay, unmodified."""
    for level in range(table.shape[0] - 1):
        for way in range(table[level, FIRST], table[level + 1, FIRST]):
            if lines[DIRTY, way]:
                lines[DIRTY, way] = 0
                written = lines[WRITTEN, way]
                lines[WRITTEN, way] = 0
                depth = send_line(table, tasks, 0, (TASK_FILL, level, lines[TAG, way], 1, written))
                _work(table, lines, tasks, depth)


@compiled
def _access(table: IntArray, lines: IntArray, tasks: IntArray, task: Task) -> None:
    """Do one access of any kind, which may cross lines of the nearest level."""
    kind, _, address, size, _ = task
    shift = table[0, SHIFT]
    end = address + size
    while address < end:
        part = min(end, ((address >> shift) + 1) << shift)
        depth = push(tasks, 0, (kind, 0, address, part - address, 0))
        _work(table, lines, tasks, depth)
        address = part


@compiled
def _work(table: IntArray, lines: IntArray, tasks: IntArray, depth: int) -> None:
    """Do the tasks on the stack, and those that they bring, last one first."""
    memory = table.shape[0] - 1
    while depth > 0:
        depth -= 1
        kind, level = tasks[depth, 0], tasks[depth, 1]
        task = (kind, level, tasks[depth, 2], tasks[depth, 3], tasks[depth, 4])
        if kind == TASK_FILL:
            depth = fill(table, lines, tasks, depth, task)
        elif level == memory:
            _reach_memory(table, task)
        elif kind == TASK_LOAD:
            depth = load(table, lines, tasks, depth, task)
        elif kind == TASK_STORE:
            depth = store(table, lines, tasks, depth, task)
        else:
            depth = take_line(table, lines, tasks, depth, task)


@compiled
def _reach_memory(table: IntArray, task: Task) -> None:
    kind, memory, _, size, _ = task
    if kind == TASK_LOAD:
        count(table, memory, LOADS, size)
        count(table, memory, HITS, size)
    else:
        count(table, memory, STORES, size)
