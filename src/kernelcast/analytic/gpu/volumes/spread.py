"""Work-items whose loads do not fit into registers at once, as folded ones: loads spread over time.

Where all values fit, a work-group asks for everything at its start, and work-groups follow one
another in dispatch order. Where they do not, a work-item loads some, computes, and loads others;
work-groups that share a cache move through their loads side by side, some ahead and some behind.
What one has loaded another asks for later by the distance between the two places in the order of
the loads, plus the lead of the one over the other. Two work-items of which each may stand anywhere
in its life are apart by a triangularly distributed share of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid, GroupRange
from kernelcast.analytic.gpu.volumes.families import group_families
from kernelcast.analytic.gpu.volumes.record import Reload
from kernelcast.analytic.gpu.volumes.unions import BoolArray, IntArray, divide
from kernelcast.analytic.gpu.volumes.work_groups import spread_alignments
from kernelcast.expressions.modelled_launch import ModelledLaunch

_ALIGNMENTS = 4


def share_reused_lines(
    accesses: Sequence[BoxAccess], box: GroupRange, grid: Grid, machine: GpuMachine
) -> float:
    """Give the share of a work-group's lines that several of its warp instructions need.

    Loops run once: what an iteration shares with the next is looked at elsewhere.
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


FloatArray = npt.NDArray[np.float64]
USABLE_SHARE = 0.75
"""Share of a cache within which data is found again. Chosen, as `STREAM_WEIGHT`, on L2 loads of the
25-point stencil, as if its loads were spread, and used for both caches. The form of this model was
found on a 13-point stencil with two cells a work-item; the constants were not fitted to it."""
STREAM_WEIGHT = 0.5
"""What a line that only one warp instruction needs displaces, against one that is needed again."""
_REGISTER_BYTES = 4
_BUFFER_UNITS = 1 << 40


def is_spread(launch: ModelledLaunch, loads: Sequence[BoxAccess]) -> bool:
    """Tell whether what a work-item loads outside loops exceeds its registers."""
    if launch.registers is None or any(one.loops for one in loads):
        return False
    return sum(one.access.bytes for one in loads) > launch.registers * _REGISTER_BYTES


def exceed_room(room: FloatArray | float, gap: FloatArray | float = 0.0) -> FloatArray:
    """Give the probability that two uses of data lie further apart than a cache remembers."""
    beyond: FloatArray = _tail(np.asarray(room - gap)) + _tail(np.asarray(room + gap))
    return beyond


def _tail(lead: FloatArray) -> FloatArray:
    """Give the probability that one of two runs ahead of the other by more than so much."""
    lead = np.clip(lead, -1.0, 1.0)
    return np.where(lead > 0, (1 - lead) ** 2 / 2, 1 - (1 + lead) ** 2 / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Touches:
    """Units of memory that warps touch: unit by unit, in the order of the loads, warp by warp."""

    units: IntArray
    places: IntArray
    warps: IntArray

    @property
    def is_again(self) -> BoolArray:
        """Whether the touch before was of the same unit."""
        found = np.zeros(self.units.size, dtype=np.bool_)
        found[1:] = self.units[1:] == self.units[:-1]
        return found


def lose_in_l1(
    loads: Sequence[BoxAccess], box: GroupRange, grid: Grid, machine: GpuMachine, work_groups: int
) -> Reload:
    """Give what an L1 cache loses of a work-group between two of its loads."""
    count = len(loads)
    sectors = _list_touches(loads, box, grid, machine)
    lines = _merge(sectors, machine.l1_line_bytes // machine.l1_sector_bytes)
    windows = _weigh_windows(lines, count) * work_groups * machine.l1_line_bytes
    again = sectors.is_again
    before = np.flatnonzero(again) - 1
    first, last = sectors.places[before], sectors.places[again]
    gaps = np.where(first == last, 0.0, windows[first, last])
    life = windows[0, count - 1]
    room = USABLE_SHARE * machine.l1_bytes
    own = sectors.warps[before] == sectors.warps[again]
    # A warp never runs ahead of itself.
    lost = np.where(own, gaps > room, exceed_room(room / life, gaps / life))
    return Reload(
        bytes=float(lost.sum()) * machine.l1_sector_bytes,
        oversubscription=life / machine.l1_bytes,
        loops=0,
        is_spread=True,
    )


def _list_touches(
    loads: Sequence[BoxAccess], box: GroupRange, grid: Grid, machine: GpuMachine
) -> _Touches:
    width = machine.warp_width
    warps = -(-(grid.local[0] * grid.local[1] * grid.local[2]) // width)
    first = np.array([start for start, _ in box], dtype=np.int64)
    place = {id(one): number for number, one in enumerate(loads)}
    buffers: dict[str | None, int] = {}
    keys = []
    for family in group_families(loads):
        addresses = list_lanes(family, grid, width).reshape(len(family), warps, width)
        addresses += np.array(family[0].group_strides) @ first
        units = divide(addresses, machine.l1_sector_bytes)
        units += _BUFFER_UNITS * buffers.setdefault(family[0].access.buffer, len(buffers))
        if (np.diff(addresses[0]) < 0).any():
            units.sort(axis=2)
        is_new = np.ones(units.shape, dtype=np.bool_)
        is_new[:, :, 1:] = units[:, :, 1:] != units[:, :, :-1]
        places = np.array([place[id(one)] for one in family], dtype=np.int64)
        keys.append(
            ((units * len(loads) + places[:, None, None]) * warps + np.arange(warps)[:, None])[
                is_new
            ]
        )
    return _sort(np.concatenate(keys), len(loads), warps)


def _sort(keys: IntArray, count: int, warps: int) -> _Touches:
    keys = np.sort(keys)
    rest = keys // warps
    return _Touches(units=rest // count, places=rest % count, warps=keys % warps)


def _merge(sectors: _Touches, ratio: int) -> _Touches:
    """Give the touches of lines."""
    count, warps = int(sectors.places.max()) + 1, int(sectors.warps.max()) + 1
    keys = (sectors.units // ratio * count + sectors.places) * warps + sectors.warps
    return _sort(np.unique(keys), count, warps)


def _weigh_windows(lines: _Touches, count: int) -> FloatArray:
    """Count the lines that the loads from one place to another touch; streams count less."""
    again = lines.is_again
    starts = np.flatnonzero(~again)
    times = np.diff(starts, append=again.size)
    weights = np.repeat(np.where(times > 1, 1.0, STREAM_WEIGHT), times)
    before = np.where(again, np.roll(lines.places, 1), -1)
    is_new = before != lines.places
    table = np.zeros((count + 1, count))
    np.add.at(table, (before[is_new] + 1, lines.places[is_new]), weights[is_new])
    # A load adds the lines that no load since the start of the window has touched.
    earlier = table.cumsum(axis=0)[:count]
    added = np.triu(earlier)
    windows: FloatArray = added.cumsum(axis=1)
    return windows
