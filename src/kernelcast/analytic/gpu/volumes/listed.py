"""Accesses whose addresses are listed for some work-groups, and what that says of all.

Addresses that divide, choose or multiply variables are evaluated; addresses that depend on data
were recorded. Pairs of neighbouring work-groups tell how much a further work-group adds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.volumes.affine import BoxAccess
from kernelcast.analytic.gpu.volumes.hulls import find_hull
from kernelcast.analytic.gpu.volumes.l1 import FamilyCosts
from kernelcast.analytic.gpu.volumes.listing import evaluate_groups, read_recorded
from kernelcast.analytic.gpu.volumes.unions import IntArray
from kernelcast.analytic.gpu.volumes.warps import ABSENT, measure_addresses
from kernelcast.expressions import Expr, Symbol
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedAccess:
    """An access with the addresses of some work-groups.

    Parameters
    ----------
    groups : mapping of int to ndarray of int64, shape (instructions, warp width)
        Addresses of each listed work-group, `ABSENT` for lanes that take no part.
    repeats : mapping of int to float
        How many instructions each listed one stands for, by work-group: long loops are cut short.
    buffer_bytes : int or None
        Size of the buffer, where known.
    is_random : bool
        Whether addresses depend on data and work-groups far apart touch the same part of the
        buffer, so that a work-group may hit what any other has touched.
    warps : int
        Warps of a work-group.
    hull : BoxAccess or None
        A box around all its addresses, where there is one.
    share : float
        Part of all iterations that counts.
    known : dict
        Counts that were asked for already.
    """

    access: MemoryAccess
    groups: Mapping[int, IntArray]
    repeats: Mapping[int, float]
    buffer_bytes: int | None
    is_random: bool
    warps: int
    hull: BoxAccess | None = None
    share: float = 1.0
    known: dict[tuple[str, int], float] = field(default_factory=dict, repr=False)

    def keep_inner(self, loops: int) -> "ListedAccess":
        """Take an iteration's share of the addresses, unless all loops run."""
        if loops >= len(self.access.loops):
            return self
        hull = None if self.hull is None else self.hull.keep_inner(loops)
        return replace(self, share=1 / max(1.0, self._iterations()), hull=hull)

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
        key = "group", granularity
        if key not in self.known:
            found = sum(
                _list_units([rows], self.access.bytes, granularity).size * self.repeats[group]
                for group, rows in self.groups.items()
            ) / len(self.groups)
            self.known[key] = min(found, self.count_buffer(granularity))
        return self.known[key]

    def count_largest(self, granularity: int) -> float:
        """Count the unique sectors of the listed work-group that has the most."""
        key = "largest", granularity
        if key not in self.known:
            self.known[key] = max(
                _list_units([rows], self.access.bytes, granularity).size * self.repeats[group]
                for group, rows in self.groups.items()
            )
        return self.known[key]

    def count_buffer(self, granularity: int) -> float:
        """Count the sectors of the whole buffer; infinitely many if its size is not known."""
        shift = self.access.bytes - 1  # a buffer need not begin with a sector
        if not self.buffer_bytes:
            return math.inf
        return float(-(-(self.buffer_bytes + shift) // granularity))

    def count_growth(self, granularity: int) -> float:
        """Count the sectors that a work-group adds to those of the one before.

        Neighbours often share the sector between them, at every place alike: then the bytes that
        a work-group adds tell more than the sectors.
        """
        pairs = [(one, one + 1) for one in self.groups if one + 1 in self.groups]
        if not pairs:
            return self.count_group(granularity)
        key, size = ("growth", granularity), self.access.bytes
        if key not in self.known:
            whole, exact = (self._compare(pairs, one) for one in (granularity, size))
            self.known[key] = max(whole, exact * size / granularity)
        return self.known[key]

    def count_stretch(self, work_groups: float, granularity: int) -> float:
        """Estimate the unique sectors of consecutive work-groups."""
        own, growth = self.count_group(granularity), self.count_growth(granularity)
        room = max(0.0, self.count_buffer(granularity) - own)
        linear = max(0.0, work_groups - 1) * growth
        if not self.is_random or math.isinf(room):
            return own + min(linear, room)
        return own + (room * -math.expm1(-linear / room) if room else 0.0)

    def _compare(self, pairs: Sequence[tuple[int, int]], granularity: int) -> float:
        new = 0.0
        for first, second in pairs:
            one, other = self.groups[first], self.groups[second]
            both = _list_units([one, other], self.access.bytes, granularity).size
            alone = _list_units([one], self.access.bytes, granularity).size
            new += (both - alone) * self.repeats[second]
        return new / len(pairs)

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


def list_access(
    access: MemoryAccess,
    launch: ModelledLaunch,
    machine: GpuMachine,
    bound: Mapping[Symbol, Expr | Symbol | int],
) -> ListedAccess | None:
    """List the addresses of an access for some work-groups.

    Parameters
    ----------
    access : MemoryAccess
        Not a box.
    launch : ModelledLaunch
        Index space, scalar arguments and recorded addresses.
    bound : mapping of Symbol to value
        From `bind_sizes`.

    Returns
    -------
    ListedAccess or None
        None if its address is known and no sampled work-group executes it.

    Raises
    ------
    InputError
        If the address is not known and was not recorded either.
    """
    is_known = access.offset_bytes is not None
    if is_known:
        groups, repeats = evaluate_groups(access, launch, machine.warp_width)
    else:
        groups = read_recorded(access, launch, machine.warp_width)
        repeats = dict.fromkeys(groups, 1.0)
    if not groups:
        if is_known:
            return None
        raise access.refuse_unknown(launch.kernel)
    return ListedAccess(
        access=access,
        groups=groups,
        repeats=repeats,
        buffer_bytes=launch.buffers.get(access.buffer or ""),
        is_random=not is_known and _is_mixed(groups),
        warps=-(-launch.ndrange.work_group_size // machine.warp_width),
        hull=find_hull(access, launch, bound),
    )


def _is_mixed(groups: Mapping[int, IntArray]) -> bool:
    """Tell whether work-groups far apart touch the same part of a buffer."""
    used = {group: rows[rows != ABSENT] for group, rows in groups.items()}
    spans = {group: (rows.min(), rows.max()) for group, rows in used.items() if rows.size}
    for one, other in combinations(sorted(spans), 2):
        (low, high), (start, end) = spans[one], spans[other]
        shared = min(high, end) - max(low, start)
        if other > one + 1 and 2 * shared > min(high - low, end - start):
            return True
    # A single place tells nothing; what depends on data is mostly spread.
    return all(other <= one + 1 for one, other in combinations(sorted(spans), 2))


def _list_units(tables: Sequence[IntArray], size: int, granularity: int) -> IntArray:
    flat = np.concatenate([one.ravel() for one in tables])
    kept: npt.NDArray[np.int64] = flat[flat != ABSENT]
    return np.unique(np.concatenate([kept // granularity, (kept + size - 1) // granularity]))
