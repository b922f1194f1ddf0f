"""The compiled state machine: one access after the other through all levels.

The nearest level is looked up in line; all else is done by tasks on a stack, since a miss may
evict a line whose own level then evicts another, and so on. All functions take the arrays of
`State`; those that leave work behind give the new depth of the stack.
"""

from kernelcast.analytic.cpu.cache_simulator.compiling import compiled
from kernelcast.analytic.cpu.cache_simulator.layout import (
    ALLOCATE,
    BACK,
    BYTES,
    CLOCK,
    COMBINING,
    DIRTY,
    EMPTY,
    EVICTS,
    FIRST,
    HITS,
    LAST_STAMPED,
    LOAD_FROM,
    LOADS,
    MISSES,
    NONE,
    POLICY,
    SHIFT,
    STAMP,
    STORES,
    TAG,
    TREE_PLRU,
    VICTIM,
    WRITTEN,
    IntArray,
)
from kernelcast.analytic.cpu.cache_simulator.ways import (
    choose_way,
    drop_nearer,
    drop_way,
    find_way,
    place_line,
    touch_way,
)

# Kinds of tasks. A task is (kind, level, address, bytes, mask), but for _FILL, which is
# (kind, level, number of the line, whether it is modified, mask of the bytes written).
_LOAD, _STORE, _WRITE_BACK, _FILL = range(4)
_ALL_BYTES = -1
_REMEMBERED = 64
"""Places of a loop's body whose last way is remembered; a power of two."""
Task = tuple[int, int, int, int, int]


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
        _access(table, lines, tasks, (_STORE if is_store else _LOAD, 0, address, size, 0))
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
                depth = _send_line(table, tasks, 0, (_FILL, level, lines[TAG, way], 1, written))
                _work(table, lines, tasks, depth)


@compiled
def _access(table: IntArray, lines: IntArray, tasks: IntArray, task: Task) -> None:
    """Do one access of any kind, which may cross lines of the nearest level."""
    kind, _, address, size, _ = task
    shift = table[0, SHIFT]
    end = address + size
    while address < end:
        part = min(end, ((address >> shift) + 1) << shift)
        depth = _push(tasks, 0, (kind, 0, address, part - address, 0))
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
        if kind == _FILL:
            depth = _fill(table, lines, tasks, depth, task)
        elif level == memory:
            _reach_memory(table, task)
        elif kind == _LOAD:
            depth = _load(table, lines, tasks, depth, task)
        elif kind == _STORE:
            depth = _store(table, lines, tasks, depth, task)
        else:
            depth = _take_line(table, lines, tasks, depth, task)


@compiled
def _push(tasks: IntArray, depth: int, task: Task) -> int:
    tasks[depth, 0] = task[0]
    tasks[depth, 1] = task[1]
    tasks[depth, 2] = task[2]
    tasks[depth, 3] = task[3]
    tasks[depth, 4] = task[4]
    return depth + 1


@compiled
def _push_pieces(table: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Push a task for each line of its level that its bytes lie in, first one on top."""
    kind, target, address, size, mask = task
    piece = size
    if target < table.shape[0] - 1:
        piece = min(size, 1 << table[target, SHIFT])
    for start in range(address + size - piece, address - 1, -piece):
        depth = _push(tasks, depth, (kind, target, start, piece, mask))
    return depth


@compiled
def _count(table: IntArray, level: int, what: int, size: int) -> None:
    table[level, what] += 1
    table[level, what + BYTES] += size


@compiled
def _reach_memory(table: IntArray, task: Task) -> None:
    kind, memory, _, size, _ = task
    if kind == _LOAD:
        _count(table, memory, LOADS, size)
        _count(table, memory, HITS, size)
    else:
        _count(table, memory, STORES, size)


@compiled
def _load(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    _, level, address, size, _ = task
    line = address >> table[level, SHIFT]
    _count(table, level, LOADS, size)
    way = find_way(table, lines, level, line)
    if way != NONE:
        _count(table, level, HITS, size)
        touch_way(table, lines, level, way)
        return depth
    _count(table, level, MISSES, size)
    return _fetch(table, lines, tasks, depth, (_FILL, level, line, 0, 0))


@compiled
def _fetch(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Bring a line in from behind: from the victim cache, which gives it up, or past it."""
    _, level, line, is_dirty, written = task
    length = 1 << table[level, SHIFT]
    victim = table[level, VICTIM]
    if victim != NONE:
        way = find_way(table, lines, victim, line)
        if way != NONE:
            _count(table, victim, LOADS, length)
            _count(table, victim, HITS, length)
            is_dirty |= lines[DIRTY, way]
            drop_way(lines, way)
            return _push(tasks, depth, (_FILL, level, line, is_dirty, written))
    depth = _push(tasks, depth, task)
    source = table[level, LOAD_FROM]
    return _push_pieces(table, tasks, depth, (_LOAD, source, line * length, length, 0))


@compiled
def _store(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Store a part of a line: from the core, or passed on by a level in front."""
    _, level, address, size, _ = task
    length = 1 << table[level, SHIFT]
    line = address >> table[level, SHIFT]
    _count(table, level, STORES, size)
    way = find_way(table, lines, level, line)
    written = 0
    if table[level, COMBINING]:
        written = _mask_of(address - line * length, size)
    if way != NONE:
        touch_way(table, lines, level, way)
        if not table[level, BACK]:
            return _pass_on(table, tasks, depth, task)
        lines[DIRTY, way] = 1
        lines[WRITTEN, way] |= written
        return depth
    if table[level, COMBINING]:
        return _push(tasks, depth, (_FILL, level, line, 1, written))
    if not table[level, ALLOCATE]:
        return _pass_on(table, tasks, depth, task)
    _count(table, level, LOADS, length)
    _count(table, level, MISSES, length)
    if not table[level, BACK]:
        depth = _pass_on(table, tasks, depth, task)
    return _fetch(table, lines, tasks, depth, (_FILL, level, line, table[level, BACK], 0))


@compiled
def _take_line(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Take in a line that the level in front evicts; the mask says whether it is modified.

    Where the level holds the line already, that is no use of it: it ages on.
    """
    _, level, address, size, is_dirty = task
    line = address >> table[level, SHIFT]
    way = find_way(table, lines, level, line)
    is_whole = size == 1 << table[level, SHIFT]
    if way == NONE and not (is_whole and _takes_lines(table, level)):
        return _store(table, lines, tasks, depth, task)
    _count(table, level, STORES, size)
    if way == NONE:
        return _push(tasks, depth, (_FILL, level, line, is_dirty, _ALL_BYTES * is_dirty))
    if not table[level, BACK]:
        return _pass_on(table, tasks, depth, task)
    lines[DIRTY, way] |= is_dirty
    if is_dirty:
        lines[WRITTEN, way] |= _mask_of(address - (line << table[level, SHIFT]), size)
    return depth


@compiled
def _takes_lines(table: IntArray, level: int) -> bool:
    """Tell whether a level takes lines in without loading them."""
    if not table[level, BACK]:
        return False
    if table[level, ALLOCATE] or table[level, COMBINING]:
        return True
    return level > 0 and table[level - 1, VICTIM] == level


@compiled
def _pass_on(table: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Send a store, or a line, on to the level behind."""
    kind, level, address, size, mask = task
    _count(table, level, EVICTS, size)
    return _push_pieces(table, tasks, depth, (kind, level + 1, address, size, mask))


@compiled
def _fill(table: IntArray, lines: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Put a line in a way, and send what it held to where it belongs."""
    _, level, line, is_dirty, written = task
    way = choose_way(table, lines, level, line)
    old, old_dirty, old_written = lines[TAG, way], lines[DIRTY, way], lines[WRITTEN, way]
    place_line(table, lines, level, line, way)
    lines[DIRTY, way] = is_dirty
    lines[WRITTEN, way] = written
    if old == EMPTY:
        return depth
    old_dirty |= drop_nearer(table, lines, level, old)
    if old_dirty or table[level, VICTIM] != NONE:
        return _send_line(table, tasks, depth, (_FILL, level, old, old_dirty, old_written))
    return depth


@compiled
def _send_line(table: IntArray, tasks: IntArray, depth: int, task: Task) -> int:
    """Send an evicted line on: whole, or of a write-combining cache what was written of it."""
    _, level, line, is_dirty, written = task
    length = 1 << table[level, SHIFT]
    if table[level, COMBINING] and written != _mask_of(0, length):
        return _send_runs(table, tasks, depth, task)
    return _pass_on(table, tasks, depth, (_WRITE_BACK, level, line * length, length, is_dirty))


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
            run = (_STORE, level, line * length + at, end - at, 0)
            depth = _pass_on(table, tasks, depth, run)
        at = end + 1
    return depth


@compiled
def _mask_of(offset: int, size: int) -> int:
    """Give a word with a bit set for each byte; only meant for lines of up to 64 bytes."""
    mask = 0
    for byte in range(offset, offset + size):
        mask |= 1 << byte
    return mask
