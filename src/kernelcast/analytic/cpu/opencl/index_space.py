"""Values of all symbols for the work-items of a work-group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from kernelcast.expressions import Symbol, Value
from kernelcast.expressions.axes import Axis, bind_names, list_axes
from kernelcast.expressions.evaluation import IntArray
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.ndrange import NDRange

Place = tuple[int, int, int]
_PLACES = (0.2, 0.5, 0.8)
"""Where in the index space work-groups are looked at, as shares of each dimension."""
_ONLY = [0] * len(_PLACES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundGroups:
    """Values of all symbols but loops for the work-items of several work-groups.

    Parameters
    ----------
    places : tuple of (int, int, int)
        The work-groups.
    sizes : tuple of int
        Work-items of each.
    values : dict of Symbol to int or ndarray of int64, shape (work-items of all, 1)
        One after the other; a number where it is the same for all.
    """

    places: tuple[Place, ...]
    sizes: tuple[int, ...]
    values: dict[Symbol, Value]


@dataclass(frozen=True, slots=True)
class Looked:
    """Work-groups that say which lines all of a launch touch.

    Parameters
    ----------
    places : mapping of (int, int, int) to int
        Those that are compared with their neighbours, and for how many each stands.
    shares : mapping of (int, int, int) to int
        They and their neighbours, and of how many each tells the executions.
    """

    places: Mapping[Place, int]
    shares: Mapping[Place, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The grid of work-groups, always of three dimensions.

    Parameters
    ----------
    axes : tuple of Axis
        The three dimensions.
    """

    axes: tuple[Axis, Axis, Axis]

    @classmethod
    def of(cls, ndrange: NDRange) -> "Groups":
        """Widen an index space to three dimensions."""
        return cls(axes=list_axes(ndrange))

    @property
    def count(self) -> int:
        """Work-groups of the launch."""
        return prod(one.groups for one in self.axes)

    def choose(self) -> list[Place]:
        """Choose work-groups that have a neighbour before them in each dimension that has any."""
        return choose_places([one.groups for one in self.axes])

    def before(self, place: Place, axis: int) -> Place | None:
        """Give the neighbour before a work-group; None if the dimension has only one."""
        return find_before(place, axis) if self.axes[axis].groups > 1 else None

    def look(self) -> "Looked":
        """Choose work-groups, each of which stands for itself."""
        places = self.choose()
        near = [self.before(one, axis) for one in places for axis in range(3)]
        every = (*places, *(one for one in near if one is not None))
        return Looked(dict.fromkeys(places, 1), dict.fromkeys(every, 1))

    def bind(self, launch: ModelledLaunch, places: Sequence[Place]) -> BoundGroups:
        """Give the values of all symbols but loops for the work-items of some work-groups."""
        own = np.array(places, dtype=np.int64).T
        extents = np.array([
            np.minimum(axis.local, axis.items - at * axis.local)
            for axis, at in zip(self.axes, own, strict=True)
        ])  # fmt: skip
        sizes = extents.prod(axis=0)
        whose = np.repeat(np.arange(len(places)), sizes)
        rest = (np.arange(len(whose)) - (np.cumsum(sizes) - sizes)[whose])[:, None]

        def widen(values: IntArray) -> Value:
            one = int(values[0])
            return one if (values == one).all() else values[whose][:, None]

        bound: dict[Symbol, Value] = {**bind_names(launch.scalars)}
        for axis, at, extent in zip(self.axes, own, extents, strict=True):
            size = widen(extent)
            bound |= axis.bind(widen(at), rest % size, size)
            rest = rest // size
        return BoundGroups(places=tuple(places), sizes=tuple(sizes.tolist()), values=bound)


def choose_places(counts: Sequence[int]) -> list[Place]:
    """Choose places in a grid of so many work-groups along three dimensions."""
    x, y, z = [[int(share * one) or 1 for share in _PLACES] if one > 1 else _ONLY for one in counts]
    return [*dict.fromkeys(zip(x, y, z, strict=True))]


def find_before(place: Place, axis: int) -> Place:
    """Give the place before another along a dimension."""
    x, y, z = place
    return (x - 1, y, z) if axis == 0 else (x, y - 1, z) if axis == 1 else (x, y, z - 1)
