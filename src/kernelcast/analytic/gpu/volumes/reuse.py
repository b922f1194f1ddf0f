"""Lines of the L1 cache that more than one warp instruction of a work-group needs.

What is touched once streams through: the cache replaces it first, and it displaces little (the
paper's section 5.5 leaves the difference to future work). Only lines that are needed again count
as allocation when capacity misses are estimated.
"""

from collections.abc import Sequence

import numpy as np

from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid
from kernelcast.analytic.gpu.volumes.ranges import GroupRange
from kernelcast.analytic.gpu.volumes.unions import IntArray, divide
from kernelcast.analytic.gpu.volumes.work_groups import spread_alignments

_ALIGNMENTS = 4


def share_reused_lines(
    accesses: Sequence[BoxAccess], box: GroupRange, grid: Grid, machine: GpuMachine
) -> float:
    """Give the share of a work-group's lines that several of its warp instructions need.

    Loops run once: what an iteration shares with the next is looked at elsewhere.

    Parameters
    ----------
    box : GroupRange
        Full work-groups over whose alignments to average.

    Returns
    -------
    float
        Between 0 and 1.
    """
    line = machine.l1_line_bytes
    lanes = list_lanes(accesses, grid, machine.warp_width)
    shifts, _ = spread_alignments(accesses[0].group_strides, box, line)
    chosen = shifts[:: max(1, -(-shifts.size // _ALIGNMENTS))]
    reused = total = 0
    for shift in chosen:
        touched = np.sort(_touch_lines(lanes + shift, line))
        again = touched[1:] == touched[:-1]
        lines = touched.size - int(again.sum())
        # Of a line's repetitions, the first says that it is needed again.
        more = int(again[0]) + int((again[1:] & ~again[:-1]).sum()) if again.size else 0
        reused, total = reused + more, total + lines
    return reused / total


def list_lanes(accesses: Sequence[BoxAccess], grid: Grid, width: int) -> IntArray:
    """Give addresses of shape (instructions, lanes); the last warp repeats its last work-item."""
    first = accesses[0]
    size = grid.local[0] * grid.local[1] * grid.local[2]
    items = np.minimum(np.arange(-(-size // width) * width, dtype=np.int64), size - 1)
    x, rest = items % grid.local[0], items // grid.local[0]
    strides = first.local_strides
    own = x * strides[0] + rest % grid.local[1] * strides[1] + rest // grid.local[1] * strides[2]
    bases = np.array([one.base_bytes for one in accesses], dtype=np.int64)
    lanes: IntArray = (bases[:, None] + own).reshape(-1, width)
    return lanes


def _touch_lines(lanes: IntArray, line: int) -> IntArray:
    """List the lines of every instruction, each once per instruction."""
    ordered = divide(lanes, line)
    if (ordered[:, 1:] < ordered[:, :-1]).any():
        ordered.sort(axis=1)
    is_new = np.ones(ordered.shape, dtype=np.bool_)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    touched: IntArray = ordered[is_new]
    return touched
