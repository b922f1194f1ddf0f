"""Cycles and sectors of warp instructions: only different lane patterns and alignments are counted.

What an instruction costs depends on the differences between its lanes' addresses and on its first
address modulo `PERIOD`, nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.addresses import ABSENT
from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid, GroupRange, IntArray
from kernelcast.analytic.gpu.volumes.boxes import spread_alignments

FloatArray = npt.NDArray[np.float64]
PERIOD = 1024
"""Bytes after which costs repeat; also the distance from which two addresses of a half-warp do not
pair in a wavefront (section 4.2)."""
_HALF_WARP = 16
_MOST_ROWS = 256
"""Enough for every alignment of power-of-two local sizes; others have up to seven times as many."""


class WarpCosts(NamedTuple):
    sectors: float
    lines: float
    data_cycles: float
    tag_cycles: float
    cycles: float
    half_warp_cycles: float
    """The paper's count, by half-warps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyCosts:
    """What the accesses of one family cost an average work-group."""

    buffer: str
    costs: WarpCosts
    instructions: float
    sectors: tuple[float, ...]
    """Sectors of a work-group if nothing were shared but within one iteration of all loops, within
    the innermost loop, and so on; the last one are the unique sectors."""
    lines: tuple[float, ...]
    """Unique lines of one iteration of all loops, of the innermost loop, and so on; nothing for
    stores, which L1 does not keep."""
    reused_share: float
    """Share of an iteration's lines that several instructions need."""
    warp_sectors: float
    """Sectors of a work-group if data were shared within one warp's iteration of all loops only."""
    is_common: bool = False

    @property
    def requested_sectors(self) -> float:
        # Full warps tell of those that are cut too little: a row of 18 work-items is more than
        # 18/32 of a full warp's sectors.
        return max(self.costs.sectors * self.instructions, self.sectors[-1])

    def sectors_at(self, level: int) -> float:
        """Look up the sectors if data is shared within so many innermost loops."""
        return self.sectors[min(level, len(self.sectors) - 1)]

    def lines_at(self, level: int) -> float:
        """Look up the lines that so many innermost loops touch."""
        return self.lines[min(level, len(self.lines) - 1)] if self.lines else 0.0


def cost_warps(
    family: Sequence[BoxAccess], box: GroupRange, grid: Grid, machine: GpuMachine
) -> WarpCosts:
    """Average the costs of all instructions of a family over warps and work-groups."""
    # Different patterns of lanes; which of them each warp has, and where its first lane is.
    patterns = list_lanes(family[0].local_strides, grid, machine.warp_width)
    firsts = patterns[:, 0].copy()
    patterns -= firsts[:, None]
    patterns.ravel()[prod(grid.local) :] = ABSENT
    warps_of: IntArray = np.zeros(len(firsts), dtype=np.int64)
    # Work-groups of equal rows have one pattern; comparing with the first is much cheaper.
    if (patterns == patterns[0]).all():
        patterns = patterns[:1]
    else:
        patterns, which = np.unique(patterns, axis=0, return_inverse=True)
        warps_of = which.ravel()
    # The different (pattern, first address modulo PERIOD), and how often each occurs.
    bases = np.array([one.base_bytes for one in family], dtype=np.int64)
    residues = (bases[:, None] + firsts[None, :]) % PERIOD
    keys = (warps_of[None, :] * PERIOD + residues).ravel()
    found = np.bincount(keys, minlength=len(patterns) * PERIOD).astype(np.float64)
    places, residues = np.nonzero(found.reshape(-1, PERIOD))
    times = found[places * PERIOD + residues]
    moves = [spread_alignments(family[0].group_strides, box, PERIOD)]
    moves.extend(
        spread_alignments((stride, 0, 0), ((0, trips), (0, 1), (0, 1)), PERIOD)
        for stride, trips in family[0].loops
        if stride % PERIOD
    )
    for shifts, weights in moves:
        shares = weights / weights.sum()
        keys = places[:, None] * PERIOD + (residues[:, None] + shifts[None, :]) % PERIOD
        spread = np.bincount(keys.ravel(), weights=(times[:, None] * shares[None, :]).ravel())
        kept = np.flatnonzero(spread)
        places, residues = kept // PERIOD, kept % PERIOD
        times = spread[kept]
    step = max(-(-times.size // _MOST_ROWS), 1)
    places, residues, times = places[::step], residues[::step], times[::step]
    lanes = patterns[places]
    addresses = np.where(lanes == ABSENT, ABSENT, lanes + residues[:, None])
    shares = times / times.sum()
    return measure_addresses(addresses, shares, family[0].access.bytes, machine)


def list_lanes(strides: tuple[int, int, int], grid: Grid, width: int) -> IntArray:
    """List offsets by warp and lane; the last warp repeats the last work-item."""
    size = prod(grid.local)
    items = np.minimum(np.arange(-(-size // width) * width, dtype=np.int64), size - 1)
    x, rest = items % grid.local[0], items // grid.local[0]
    offsets = (
        x * strides[0] + rest % grid.local[1] * strides[1] + rest // grid.local[1] * strides[2]
    )
    table: IntArray = offsets.reshape(-1, width)
    return table


def measure_addresses(
    addresses: IntArray, weights: FloatArray, size: int, machine: GpuMachine
) -> WarpCosts:
    """Average the costs of instructions over rows of addresses by their weights."""
    family, width = machine.architecture, addresses.shape[1]
    # Rows are sorted once; whatever they are divided by, they stay sorted, absent lanes first.
    ordered = np.sort(addresses, axis=1)
    # Cycles of all passes: of the data stage, of the tag stage, the larger of both.
    data_sum, tag_sum, cycle_sum = (np.zeros(addresses.shape[0]) for _ in range(3))
    for first in range(0, width, family.lanes_per_pass):
        own = ordered
        if family.lanes_per_pass < width:
            own = np.sort(addresses[:, first : first + family.lanes_per_pass], axis=1)
        data = count_conflicts(own, max(size, 4), max(1, family.l1_banks_bytes // max(size, 4)))
        # Cycles of the tag stage, and the least cycles of an instruction.
        lines, least = _divide(own, machine.l1_line_bytes), np.ones(len(own))
        if family.name == "nvidia":
            least *= family.lanes_per_pass * max(size, 4) / machine.l1_cycle_bytes
            tag = np.ceil((np.maximum(count_different(lines), 1) + 2) / 4)
        else:
            # AMD: lines with even and with odd numbers have tag banks of their own.
            banks = (np.sort(np.where(lines % 2 == odd, lines, ABSENT), axis=1) for odd in (0, 1))
            tag = np.maximum(*(count_different(one) for one in banks)).astype(np.float64)
        if family.name == "cdna":  # serves four lanes a cycle unless words are small and in a row
            is_dense = (np.diff(own, axis=1) == size).all(axis=1) & (size == 4)
            least = np.where(is_dense, 1.0, 4.0)
        is_used = own[:, -1] != ABSENT
        data_sum += np.where(is_used, np.maximum(data, least), 0)
        tag_sum += np.where(is_used, tag, 0)
        cycle_sum += np.where(is_used, np.maximum(np.maximum(data, tag), least), 0)
    half: IntArray | FloatArray = cycle_sum
    if family.name == "nvidia":
        half = np.zeros(addresses.shape[0], dtype=np.int64)
        for first in range(0, width, _HALF_WARP):
            # 16 banks of 8 bytes, far addresses do not pair.
            own = np.sort(addresses[:, first : first + _HALF_WARP], axis=1)
            conflicts = count_conflicts(own, 8, _HALF_WARP)
            half += np.maximum(conflicts, count_different(_divide(own, PERIOD)))
    costs = (
        _count_units(ordered, size, machine.l1_sector_bytes),
        _count_units(ordered, size, machine.l1_line_bytes),
        data_sum, tag_sum, cycle_sum, half,
    )  # fmt: skip
    return WarpCosts(*(float(one @ weights / weights.sum()) for one in costs))


def _divide(ordered: IntArray, unit: int) -> IntArray:
    divided: IntArray = np.where(ordered == ABSENT, ABSENT, ordered // unit)
    return divided


def _count_units(ordered: IntArray, size: int, unit: int) -> IntArray:
    """Count unique units that each row's lanes touch; an access may straddle two."""
    first = _divide(ordered, unit)
    last = np.where(ordered == ABSENT, ABSENT, (ordered + size - 1) // unit)
    return count_different(np.sort(np.concatenate((first, last), axis=1), axis=1))


def count_different(ordered: IntArray) -> IntArray:
    """Count different numbers in sorted rows, but for `ABSENT`."""
    found: IntArray = (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1) + (ordered[:, 0] != ABSENT)
    return found


def count_conflicts(ordered: IntArray, word: int, banks: int) -> IntArray:
    """Count the most different words that one bank must deliver."""
    words = _divide(ordered, word)
    is_new = words != ABSENT
    is_new[:, 1:] &= words[:, 1:] != words[:, :-1]
    rows = np.arange(words.shape[0])[:, None] * banks
    counts = np.bincount((rows + words % banks)[is_new], minlength=words.shape[0] * banks)
    most: IntArray = counts.reshape(-1, banks).max(axis=1)
    return most
