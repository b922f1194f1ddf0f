"""Compiled operations on the ways of one level: find, use, replace.

All take the arrays `table` and `lines` of `State`, and the number of a level.
"""

from kernelcast.analytic.cpu.cache_simulator.compiling import compiled
from kernelcast.analytic.cpu.cache_simulator.layout import (
    CLOCK,
    DIRTY,
    FIFO,
    FIRST,
    INCLUSIVE,
    LAST_STAMPED,
    LEFT,
    MASK,
    MRU,
    NONE,
    POLICY,
    RANDOM,
    SEED,
    SETS,
    SHIFT,
    STAMP,
    TAG,
    TREE,
    TREE_PLRU,
    WAYS,
    WRITTEN,
    IntArray,
)


@compiled
def find_set(table: IntArray, level: int, line: int) -> int:
    """Give the first way of the set that a line belongs to."""
    mask = table[level, MASK]
    place = line & mask if mask != NONE else line % table[level, SETS]
    return table[level, FIRST] + place * table[level, WAYS]  # type: ignore[no-any-return]


@compiled
def find_way(table: IntArray, lines: IntArray, level: int, line: int) -> int:
    """Give the way that holds a line, -1 if none does."""
    first = find_set(table, level, line)
    for way in range(first, first + table[level, WAYS]):
        if lines[TAG, way] == line:
            return way
    return NONE


@compiled
def touch_way(table: IntArray, lines: IntArray, level: int, way: int) -> None:
    """Note that a line was used."""
    policy = table[level, POLICY]
    if policy <= LAST_STAMPED:
        table[0, CLOCK] += 1
        lines[STAMP, way] = table[0, CLOCK]
    elif policy == TREE_PLRU:
        _turn_tree(table, lines, level, way)


@compiled
def place_line(table: IntArray, lines: IntArray, level: int, line: int, way: int) -> None:
    """Put a line into a way."""
    lines[TAG, way] = line
    if table[level, POLICY] == FIFO:
        table[0, CLOCK] += 1
        lines[STAMP, way] = table[0, CLOCK]
    else:
        touch_way(table, lines, level, way)


@compiled
def drop_way(lines: IntArray, way: int) -> None:
    """Empty a way."""
    lines[TAG, way] = LEFT
    lines[DIRTY, way] = 0
    lines[WRITTEN, way] = 0


@compiled
def choose_way(table: IntArray, lines: IntArray, level: int, line: int) -> int:
    """Give the way that a new line goes to: an empty one first."""
    ways = table[level, WAYS]
    first = find_set(table, level, line)
    for way in range(first, first + ways):
        if lines[TAG, way] < 0:
            return way
    policy = table[level, POLICY]
    if policy == RANDOM:
        return first + _draw(table) % ways  # type: ignore[no-any-return]
    if policy == TREE_PLRU:
        return first + _follow_tree(lines, first, ways)
    best = first
    for way in range(first + 1, first + ways):
        if (lines[STAMP, way] > lines[STAMP, best]) == (policy == MRU):
            best = way
    return best


@compiled
def drop_nearer(table: IntArray, lines: IntArray, level: int, line: int) -> int:
    """Take a line that an inclusive level evicts out of the levels in front of it.

    Returns
    -------
    int
        1 if one of them had modified it.
    """
    is_dirty = 0
    if not table[level, INCLUSIVE]:
        return is_dirty
    start = line << table[level, SHIFT]
    last = start + (1 << table[level, SHIFT]) - 1
    for nearer in range(level):
        shift = table[nearer, SHIFT]
        for inner in range(start >> shift, (last >> shift) + 1):
            way = find_way(table, lines, nearer, inner)
            if way != NONE:
                is_dirty |= lines[DIRTY, way]
                drop_way(lines, way)
    return is_dirty


@compiled
def _draw(table: IntArray) -> int:
    """Draw a number below 2**31 (linear congruences modulo 2**64, Knuth's MMIX)."""
    table[0, SEED] = table[0, SEED] * 6364136223846793005 + 1442695040888963407
    return (table[0, SEED] >> 33) & 0x7FFFFFFF  # type: ignore[no-any-return]


@compiled
def _turn_tree(table: IntArray, lines: IntArray, level: int, way: int) -> None:
    """Turn the bits on the way to a line away from it."""
    ways = table[level, WAYS]
    inside = (way - table[level, FIRST]) % ways
    first = way - inside
    bits, node, half = lines[TREE, first], 1, ways >> 1
    while half > 0:
        if inside & half:
            bits &= ~(1 << node)
            node = 2 * node + 1
        else:
            bits |= 1 << node
            node = 2 * node
        half >>= 1
    lines[TREE, first] = bits


@compiled
def _follow_tree(lines: IntArray, first: int, ways: int) -> int:
    """Give the way that the bits point to, counted within its set."""
    bits = lines[TREE, first]
    node = 1
    while node < ways:
        node = 2 * node + ((bits >> node) & 1)
    return node - ways
