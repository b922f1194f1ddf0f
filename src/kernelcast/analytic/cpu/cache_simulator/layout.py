"""A hierarchy's state as three flat arrays, which compiled code works on.

Measured with numba 0.68: a function that takes the arrays in a named tuple spends ten times as
long, on counting references to them. So there are few arrays, and they are passed one by one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
    Replacement,
)

IntArray = npt.NDArray[np.int64]

# Columns of the table of levels; memory is its last row.
FIRST, SETS, WAYS, SHIFT, MASK, POLICY = range(6)
BACK, ALLOCATE, COMBINING, INCLUSIVE, LOAD_FROM, VICTIM = range(6, 12)
LOADS, HITS, MISSES, STORES, EVICTS = range(12, 17)
BYTES = 5
"""Added to the column of a count: that of its bytes."""
CLOCK, SEED = 22, 23
_COLUMNS = 24
# Rows of the array of lines.
TAG, STAMP, DIRTY, WRITTEN, TREE = range(5)
_ROWS = 5
# Policies; the first two note each use by a stamp.
LRU, MRU, FIFO, RANDOM, TREE_PLRU = range(5)
LAST_STAMPED = MRU
_POLICIES = {
    Replacement.LRU: LRU, Replacement.FIFO: FIFO, Replacement.MRU: MRU,
    Replacement.RANDOM: RANDOM, Replacement.TREE_PLRU: TREE_PLRU,
}  # fmt: skip
NONE = -1
EMPTY = -(1 << 62)
"""Tag of a way that has never held a line; like any tag below 0, it holds none."""
LEFT = -1
"""Tag of a way that a line has left again."""
_FIRST_SEED = 0x1E3779B97F4A7C15
_TASK_COLUMNS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """What the simulator remembers: 40 bytes per line of cache, and no more however long it runs.

    Parameters
    ----------
    table : ndarray of shape (levels + 1, 24)
        Geometry, policy, neighbours and counts of each level, memory last; the first row has the
        clock and the random numbers' state.
    lines : ndarray of shape (5, lines)
        Of each way of all levels: number of the line it holds, time that ranks it, whether it is
        modified, bytes written; of the first way of each set, the bits of tree-PLRU.
    tasks : ndarray of shape (depth, 5)
        Stack of what is still to do for the present access.
    """

    table: IntArray
    lines: IntArray
    tasks: IntArray


def make_state(hierarchy: CacheHierarchy) -> State:
    """Make the state of empty caches."""
    levels = hierarchy.levels
    table = np.zeros((len(levels) + 1, _COLUMNS), dtype=np.int64)
    first = 0
    for at, level in enumerate(levels):
        table[at, :LOADS] = _describe(levels, at, first)
        first += level.lines
    table[-1, FIRST] = first
    table[0, SEED] = _FIRST_SEED
    lines = np.zeros((_ROWS, first), dtype=np.int64)
    lines[TAG] = EMPTY
    tasks = np.zeros((_stack_depth(levels), _TASK_COLUMNS), dtype=np.int64)
    return State(table=table, lines=lines, tasks=tasks)


def _describe(levels: tuple[CacheLevel, ...], at: int, first: int) -> list[int]:
    level = levels[at]
    is_power = level.sets & (level.sets - 1) == 0
    has_victim = at + 1 < len(levels) and levels[at + 1].role is CacheRole.VICTIM
    return [
        first, level.sets, level.ways, level.line_bytes.bit_length() - 1,
        level.sets - 1 if is_power else NONE, _POLICIES[level.replacement], level.writes_back,
        level.writes_allocate and level.role is CacheRole.CACHE,
        level.role is CacheRole.WRITE_COMBINING, level.is_inclusive, _load_from(levels, at),
        at + 1 if has_victim else NONE,
    ]  # fmt: skip


def _load_from(levels: tuple[CacheLevel, ...], at: int) -> int:
    """Find the next level that loads go to: a plain cache, or memory."""
    for place in range(at + 1, len(levels)):
        if levels[place].role is CacheRole.CACHE:
            return place
    return len(levels)


def _stack_depth(levels: tuple[CacheLevel, ...]) -> int:
    """Bound the tasks that one access leaves open: few per level, and one per piece of a line."""
    longest = max(level.line_bytes for level in levels)
    shortest = min(level.line_bytes for level in levels)
    return 16 * len(levels) * (1 + max(longest // shortest, 64)) + 64
