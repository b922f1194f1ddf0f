"""Accesses whose addresses are listed for some work-groups, and what that says of all.

Addresses that divide, choose or multiply variables are evaluated; addresses that depend on data
were recorded. Pairs of neighbouring work-groups tell how much a further work-group adds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.volumes.affine import Grid
from kernelcast.analytic.gpu.volumes.footprints import PAGE_BYTES, Level, list_stretches
from kernelcast.analytic.gpu.volumes.l1 import FamilyCosts
from kernelcast.analytic.gpu.volumes.listing import evaluate_groups, read_recorded
from kernelcast.analytic.gpu.volumes.unions import IntArray
from kernelcast.analytic.gpu.volumes.warps import ABSENT, measure_addresses
from kernelcast.records.accesses import MemoryAccess
from kernelcast.records.errors import InputError
from kernelcast.records.modelled_launch import ModelledLaunch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedAccess:
    """An access with the addresses of some work-groups.

    Parameters
    ----------
    access : MemoryAccess
        Which.
    groups : mapping of int to ndarray of int64, shape (instructions, warp width)
        Addresses of each listed work-group, `ABSENT` for lanes that take no part.
    repeats : mapping of int to float
        How many instructions each listed one stands for, by work-group: long loops are cut short.
    buffer_bytes : int or None
        Size of the buffer, where known.
    is_random : bool
        Whether addresses depend on data, so that a work-group may hit what any other has touched.
    warps : int
        Warps of a work-group.
    share : float
        Part of all iterations that counts.
    """

    access: MemoryAccess
    groups: Mapping[int, IntArray]
    repeats: Mapping[int, float]
    buffer_bytes: int | None
    is_random: bool
    warps: int
    share: float = 1.0

    def keep_inner(self, loops: int) -> "ListedAccess":
        """Take an iteration's share of the addresses, unless all loops run."""
        if loops >= len(self.access.loops):
            return self
        return replace(self, share=1 / max(1.0, self._iterations()))

    def _iterations(self) -> float:
        """Give executions of a work-item, as if all lanes had taken part in each."""
        executed = sum(rows.shape[0] * self.repeats[group] for group, rows in self.groups.items())
        found: float = max(1.0, executed / len(self.groups) / self.warps)
        return found

    def cost(self, machine: GpuMachine) -> FamilyCosts:
        """Cost it for an average work-group."""
        rows = np.concatenate(list(self.groups.values()))
        count = len(self.groups)
        instructions = sum(
            rows.shape[0] * self.repeats[group] for group, rows in self.groups.items()
        )
        costs = measure_addresses(rows, self.access.bytes, machine)
        unique = self.count_group(machine.l1_sector_bytes)
        lines = self.count_group(machine.l1_line_bytes)
        unshared = max(unique, costs.sectors * instructions / count)
        return FamilyCosts(
            buffer=self.access.buffer or "",
            costs=costs,
            instructions=instructions / count,
            sectors=(unshared, unique) if self.access.loops else (unique,),
            lines=(lines / self._iterations(), lines) if self.access.loops else (lines,),
            reused_share=self._share_reused(machine.l1_line_bytes),
        )

    def count_group(self, granularity: int) -> float:
        """Count the unique sectors of an average work-group."""
        return sum(
            _list_units([rows], self.access.bytes, granularity).size * self.repeats[group]
            for group, rows in self.groups.items()
        ) / len(self.groups)

    def count_growth(self, granularity: int) -> float:
        """Count the sectors that a work-group adds to those of the one before."""
        own = self.count_group(granularity)
        pairs = [(one, one + 1) for one in self.groups if one + 1 in self.groups]
        if not pairs:
            return own
        new = 0.0
        for first, second in pairs:
            one, other = self.groups[first], self.groups[second]
            both = _list_units([one, other], self.access.bytes, granularity).size
            alone = _list_units([one], self.access.bytes, granularity).size
            new += (both - alone) * self.repeats[second]
        return new / len(pairs)

    def count_stretch(self, work_groups: float, granularity: int) -> float:
        """Estimate the unique sectors of consecutive work-groups."""
        own, growth = self.count_group(granularity), self.count_growth(granularity)
        most = self.buffer_bytes / granularity if self.buffer_bytes else math.inf
        room = max(0.0, most - own)
        linear = max(0.0, work_groups - 1) * growth
        if not self.is_random or math.isinf(room):
            return own + min(linear, room)
        return own + (room * -math.expm1(-linear / room) if room else 0.0)

    def _share_reused(self, line: int) -> float:
        reused = total = 0
        for rows in self.groups.values():
            units = np.where(rows == ABSENT, ABSENT, rows // line)
            ordered = np.sort(units, axis=1)
            is_new = ordered != ABSENT
            is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
            _, times = np.unique(ordered[is_new], return_counts=True)
            reused, total = reused + int((times > 1).sum()), total + times.size
        return reused / total if total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFootprint:
    """Footprints estimated from listed addresses.

    Parameters
    ----------
    accesses : tuple of ListedAccess
        They count as if they shared nothing.
    grid : Grid
        The index space.
    """

    accesses: tuple[ListedAccess, ...]
    grid: Grid

    def count_range(self, start: int, end: int, granularity: int) -> float:
        """Estimate the unique bytes of consecutive work-groups."""
        count = min(end, self.grid.work_groups) - max(start, 0)
        return granularity * sum(
            one.share * one.count_stretch(count, granularity) for one in self.accesses
        )

    def count_pages(self, start: int, end: int) -> float:
        """Estimate the pages of consecutive work-groups."""
        return sum(one.count_stretch(end - start, PAGE_BYTES) for one in self.accesses)

    def list_levels(self, wave: int, granularity: int) -> list[Level]:
        """Add up footprints of ever longer stretches of work-groups."""
        count = self.grid.work_groups
        return [
            Level(
                name=name,
                work_groups=length,
                bytes=self.count_range(0, length, granularity) * count / length,
            )
            for name, length in list_stretches(self.grid, wave)
        ]


def list_access(access: MemoryAccess, launch: ModelledLaunch, machine: GpuMachine) -> ListedAccess:
    """List the addresses of an access for some work-groups.

    Parameters
    ----------
    access : MemoryAccess
        Not a box.
    launch : ModelledLaunch
        Index space, scalar arguments and recorded addresses.
    machine : GpuMachine
        Warp width.

    Returns
    -------
    ListedAccess

    Raises
    ------
    InputError
        If the address is not known and was not recorded either.
    """
    is_random = access.offset_bytes is None
    if is_random:
        groups = read_recorded(access, launch, machine.warp_width)
        repeats = dict.fromkeys(groups, 1.0)
    else:
        groups, repeats = evaluate_groups(access, launch, machine.warp_width)
    if not groups:
        name = access.text or access.buffer or "an access"
        msg = (
            f"{launch.kernel}, line {access.line}: the address of {name} is {access.pattern.value}"
            f"{f' ({access.reason})' if access.reason else ''} and no sampled work-group executes "
            "it; record addresses of some work-groups (`kernelcast trace`), or give an affine "
            "stand-in for it"
        )
        raise InputError(msg)
    return ListedAccess(
        access=access,
        groups=groups,
        repeats=repeats,
        buffer_bytes=launch.buffers.get(access.buffer or ""),
        is_random=is_random,
        warps=-(-launch.ndrange.work_group_size // machine.warp_width),
    )


def _list_units(tables: Sequence[IntArray], size: int, granularity: int) -> IntArray:
    flat = np.concatenate([one.ravel() for one in tables])
    kept: npt.NDArray[np.int64] = flat[flat != ABSENT]
    return np.unique(np.concatenate([kept // granularity, (kept + size - 1) // granularity]))
