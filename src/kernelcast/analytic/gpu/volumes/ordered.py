"""Data that L2 loses between loads which a work-item makes one after the other.

On AMD's GPUs a work-item's loads spread over its life in the order of the program. What work-groups
of neighbouring layers (rows, in two dimensions) share is loaded at different places of their lives:
a stencil that loads the layer before first and the one behind last comes back to data sooner than
one that begins with its own layer. A datum is met by each load at a time that follows from the
layer and from the load's place in the program; between two of them the cache takes in what all
loads touch meanwhile. Nothing in this is fitted: the hit rate is that of all caches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid
from kernelcast.analytic.gpu.volumes.families import Family, group_families
from kernelcast.analytic.gpu.volumes.footprints import BoxFootprint

FloatArray = npt.NDArray[np.float64]
# Folded work-items touch every second, third or eighth layer and row; neighbours in a layer that
# are less than a sixteenth of it apart are of the same layer, those in a row less than a 32nd
# apart are the same data.
_LAYER_PARTS, _ROW_PARTS = 8, 16
# Touches of layers that do not share any.
_NEVER = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedLoads:
    """Loads of a launch without loops, in the order of the program."""

    loads: tuple[BoxAccess, ...]
    """In that order."""
    stores: int
    """Stores behind them."""
    grid: Grid
    axis: int
    """Dimension across which layers of work-groups follow one another."""

    @property
    def layers(self) -> int:
        """Layers of work-groups."""
        return self.grid.counts[self.axis]

    def lose(
        self,
        wave: int,
        granularity: int,
        stored_bytes: float,
        capacity_bytes: float,
        hit_rate: Callable[[float], float],
    ) -> float:
        """Give what DRAM sends again, in bytes of the whole launch."""
        life = wave * self.layers / self.grid.work_groups
        families = group_families(self.loads)
        gaps = [self._list_gaps(one, life) for one in families]
        loaded = [
            BoxFootprint(accesses=tuple(one), grid=self.grid)
            .list_levels(wave, granularity)[-1]
            .bytes
            / (self.layers + self._count_beyond(one))
            for one in families
        ]
        lost = 0.0
        for own, own_bytes in zip(gaps, loaded, strict=True):
            finite = own[own < _NEVER]
            if not finite.size:
                continue
            times, counts = np.unique(np.round(finite, 6), return_counts=True)
            touched = stored_bytes / self.layers * times
            for other, other_bytes in zip(gaps, loaded, strict=True):
                touched = touched + other_bytes * _unite(other, times)
            missed = [1 - hit_rate(one / capacity_bytes) for one in touched.tolist()]
            lost += own_bytes * float(np.dot(missed, counts)) / len(own)
        return lost * self.layers

    def _count_beyond(self, family: Family) -> float:
        """Count the layers of data beyond those of work-groups: a star's ghost layers."""
        bases = [one.base_bytes for one in family]
        layer = family[0].local_strides[self.axis] * self.grid.local[self.axis]
        return (max(bases) - min(bases)) // layer

    def _list_gaps(self, family: Family, life: float) -> FloatArray:
        """List the times between touches of data, in layers, one row per kind of data."""
        origin = min(one.base_bytes for one in family)
        place = {id(one): number for number, one in enumerate(self.loads)}
        instructions = len(self.loads) + self.stores
        depth = self.grid.local[self.axis]
        layers: FloatArray = np.arange(depth, dtype=np.float64)
        kinds: dict[tuple[int, int], list[FloatArray]] = {}
        for one in family:
            residue, shift = self._locate(one, one.base_bytes - origin)
            when = (place[id(one)] + 0.5) / instructions * life
            times: FloatArray = (layers - shift) // depth + np.float64(when)
            kinds.setdefault(residue, []).append(times)
        most = max(len(one) for one in kinds.values())
        rows = np.full((len(kinds) * depth, max(most - 1, 1)), _NEVER)
        for number, touches in enumerate(kinds.values()):
            ordered = np.sort(np.stack(touches, axis=1), axis=1)
            own = rows[number * depth : (number + 1) * depth]
            own[:, : len(touches) - 1] = np.diff(ordered, axis=1)
        return rows

    def _locate(self, access: BoxAccess, offset: int) -> tuple[tuple[int, int], int]:
        """Tell which of the layers and rows that a work-item owns an offset leads to."""
        pitch = access.local_strides[self.axis]
        parts = round(offset / pitch * _LAYER_PARTS)
        shift, residue = divmod(parts, _LAYER_PARTS)
        row = access.local_strides[1] if self.axis > 1 else 0
        rest = offset - parts * pitch / _LAYER_PARTS
        part = round(rest / row * _ROW_PARTS) % _ROW_PARTS if row else 0
        return (residue, part), shift


def _unite(gaps: FloatArray, times: FloatArray) -> FloatArray:
    """Give the layers that loads touch within given times, mean of all kinds of data.

    Loads that follow one another by a gap touch the same layers but for that gap.
    """
    known = np.where(gaps < _NEVER, gaps, 0.0)
    united: FloatArray = times + np.minimum(known[None], times[:, None, None]).sum(axis=2).mean(
        axis=1
    )
    return united


def order_loads(
    loads: Sequence[BoxAccess], stores: Sequence[BoxAccess], grid: Grid
) -> OrderedLoads | None:
    """Order the loads of a launch; None where there are loops, or no layers that share data."""
    axis = max((one for one in range(3) if grid.counts[one] > 1), default=0)
    if axis == 0 or not loads or any(one.loops for one in (*loads, *stores)):
        return None
    if any(one.local_strides[axis] <= 0 for one in loads):
        return None
    return OrderedLoads(loads=tuple(loads), stores=len(stores), grid=grid, axis=axis)
