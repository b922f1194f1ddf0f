"""The index space of a launch, and boxes of work-groups inside it.

Work-groups are numbered in dispatch order, dimension 0 fastest: group (x, y, z) of a grid of
(gx, gy, gz) groups is number ``x + gx * (y + gy * z)``.
"""

import math
from dataclasses import dataclass

from kernelcast.records.errors import NDRangeError

MAX_DIMENSIONS = 3
MOST_WORK_ITEMS = 2**62
"""Sums and differences of two ids fit 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NDRange:
    """A launch's index space: one to three dimensions.

    Raises
    ------
    NDRangeError
        If a size is not positive, ids exceed 2**62, or the dimensions disagree.

    Notes
    -----
    A global size need not be a multiple of the local size: the last work-group of the dimension
    is then smaller (OpenCL 2.0 non-uniform work-groups). Whether the device can do that is the
    device's matter, see `kernelcast.sampling`.

    Examples
    --------
    >>> NDRange(global_size=(1000, 4), local_size=(64, 1)).group_counts
    (16, 4)
    """

    global_size: tuple[int, ...]
    """Work-items per dimension."""
    local_size: tuple[int, ...] | None = None
    """Work-items per work-group and dimension; None lets the device choose."""
    global_offset: tuple[int, ...] = ()
    """First global id per dimension; zeros when left out."""

    def __post_init__(self) -> None:
        dimensions = len(self.global_size)
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            msg = f"global size {self.global_size}: has {dimensions} dimensions; give one to three"
            raise NDRangeError(msg)
        if not self.global_offset:
            object.__setattr__(self, "global_offset", (0,) * dimensions)
        _check_axis("global size", self.global_size, dimensions, minimum=1)
        _check_axis("global offset", self.global_offset, dimensions, minimum=0)
        if max(math.prod(self.global_size), *self.global_offset) > MOST_WORK_ITEMS:
            raise NDRangeError(
                f"global size {self.global_size}, offset {self.global_offset}: more than 2**62 "
                "work-items; give a smaller index space"
            )
        if self.local_size is not None:
            _check_axis("local size", self.local_size, dimensions, minimum=1)
            sizes = zip(self.global_size, self.local_size, strict=True)
            for axis, (size, local) in enumerate(sizes):
                if local > size:
                    raise NDRangeError(
                        f"axis {axis}: local size {local} exceeds global size {size}; "
                        f"give a local size of at most {size}"
                    )

    @property
    def dimensions(self) -> int:
        """Number of dimensions, 1 to 3."""
        return len(self.global_size)

    @property
    def known_local_size(self) -> tuple[int, ...]:
        """The local size, which must have been chosen."""
        if self.local_size is None:
            msg = "the local size is not chosen yet; give one, or ask the device for its choice"
            raise NDRangeError(msg)
        return self.local_size

    @property
    def group_counts(self) -> tuple[int, ...]:
        """Work-groups per dimension."""
        sizes = zip(self.global_size, self.known_local_size, strict=True)
        return tuple([-(-size // local) for size, local in sizes])

    @property
    def work_group_count(self) -> int:
        """Work-groups of the whole index space."""
        return math.prod(self.group_counts)

    @property
    def work_group_size(self) -> int:
        """Work-items of one full work-group."""
        return math.prod(self.known_local_size)

    @property
    def work_item_count(self) -> int:
        """Work-items of the whole index space."""
        return math.prod(self.global_size)

    @property
    def is_uniform(self) -> bool:
        """Whether every work-group is full."""
        sizes = zip(self.global_size, self.known_local_size, strict=True)
        return not any(size % local for size, local in sizes)

    def work_items_of(self, box: "GroupBox") -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Compute the global offset and global size of the launch that runs just `box`."""
        local = self.known_local_size
        offset, size = [], []
        ends = zip(box.start, box.shape, self.group_counts, strict=True)
        for axis, (start, extent, count) in enumerate(ends):
            if start < 0 or extent < 1 or start + extent > count:
                raise NDRangeError(
                    f"axis {axis}: work-groups {start} to {start + extent - 1} asked for, "
                    f"the index space has 0 to {count - 1}"
                )
            begin = start * local[axis]
            offset.append(begin + self.global_offset[axis])
            size.append(min((start + extent) * local[axis], self.global_size[axis]) - begin)
        return tuple(offset), tuple(size)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class GroupBox:
    """A box of work-groups: what one launch can run."""

    start: tuple[int, ...]
    shape: tuple[int, ...]
    """First work-group and number of work-groups per dimension."""

    @property
    def work_group_count(self) -> int:
        return math.prod(self.shape)

    def overlaps(self, other: "GroupBox") -> bool:
        for a, m, b, n in zip(self.start, self.shape, other.start, other.shape, strict=True):
            if a >= b + n or b >= a + m:
                return False
        return True


def _check_axis(what: str, sizes: tuple[int, ...], dimensions: int, *, minimum: int) -> None:
    if len(sizes) != dimensions:
        raise NDRangeError(
            f"{what} {sizes}: has {len(sizes)} dimensions, the global size has {dimensions}; "
            "give one number per dimension"
        )
    for axis, size in enumerate(sizes):
        if size < minimum:
            msg = f"axis {axis}: {what} is {size}; give a number of at least {minimum}"
            raise NDRangeError(msg)
