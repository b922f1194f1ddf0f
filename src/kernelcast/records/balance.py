"""One kernel over several devices: how the index space is cut, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import GroupBox, NDRange

Span = tuple[int, int]
"""First slab, and the one behind the last."""


class MergeRule(StrEnum):
    """How the devices' copies of a buffer become one."""

    READ = "read"
    """The kernel only reads it: nothing to merge."""
    RANGES = "ranges"
    """Work-groups write places of their own, known from the address expressions."""
    COMPARE = "compare"
    """Where it is written is not known before: elements that differ from before have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlabSpace:
    """An index space cut into slabs across one dimension: what devices are given.

    Examples
    --------
    >>> ndrange = NDRange(global_size=(64, 100), local_size=(8, 1))
    >>> space = SlabSpace(ndrange=ndrange, axis=1, thickness=30)
    >>> space.count, space.box((2, 4))
    (4, GroupBox(start=(0, 60), shape=(8, 40)))
    """

    ndrange: NDRange
    """The index space, local size chosen."""
    axis: int
    thickness: int
    """Work-groups of a slab along that dimension; the last slab may have fewer."""

    @property
    def layers(self) -> int:
        """Work-groups along the dimension."""
        return self.ndrange.group_counts[self.axis]

    @property
    def count(self) -> int:
        """Number of slabs."""
        return -(-self.layers // self.thickness)

    def box(self, span: Span) -> GroupBox:
        """Find the work-groups of some slabs.

        Raises
        ------
        InputError
            If there are no such slabs.
        """
        first, stop = span
        if not 0 <= first < stop <= self.count:
            msg = f"slabs {first} to {stop - 1} asked for; there are 0 to {self.count - 1}"
            raise InputError(msg)
        start = [0] * self.ndrange.dimensions
        shape = list(self.ndrange.group_counts)
        start[self.axis] = first * self.thickness
        shape[self.axis] = min(stop * self.thickness, self.layers) - start[self.axis]
        return GroupBox(start=tuple(start), shape=tuple(shape))

    def work_groups(self, spans: Sequence[Span]) -> int:
        """Count the work-groups of some slabs."""
        return sum(self.box(span).work_group_count for span in spans)


class Activity(StrEnum):
    """What a device, or the host, is busy with."""

    PREPARE = "prepare"
    """Building the kernel and taking the buffers."""
    SAMPLE = "sample"
    """Running a first slab, then a few that tell the speed; they count as done."""
    RUN = "run"
    """Running its share."""
    COLLECT = "collect"
    """Giving its results back."""
    MERGE = "merge"
    """Putting results together (the host)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A stretch of the timeline."""

    device: int
    """Number of the device, or the number of devices for the host."""
    activity: Activity
    start_s: float
    end_s: float
    """From the beginning of the whole, in seconds."""
    work_groups: int = 0
    """That were run in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShare:
    """What one device was expected to do and did."""

    device_id: str
    device: str
    cores: tuple[int, ...] = ()
    """Processor cores it was bound to; empty if to none."""
    work_groups: int = 0
    """That it ran, samples included."""
    share: float = 0.0
    estimated_share: float = 0.0
    """Of the work-groups; as ran, and as the estimates said before the main part began."""
    estimated_s: float | None = None
    """Time that it would need for the whole launch by its samples, in seconds; None if it has
    taken none."""
    low_s: float | None = None
    high_s: float | None = None
    """Interval of that."""
    real_s: float = 0.0
    """Device time of what it ran, in seconds."""
    failure: str = ""
    """Why it dropped out; empty if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceReport:
    """How a launch over several devices went."""

    kernel: str
    space: SlabSpace
    """How the index space was cut."""
    merges: Mapping[str, MergeRule]
    """Rule of each buffer, by its name."""
    shares: tuple[DeviceShare, ...]
    bars: tuple[Bar, ...]
    """The timeline."""
    estimated_s: float | None
    """Time from when all devices were prepared to the last result, as estimated before the main
    part began; None if the launch was over before."""
    real_s: float
    """The same as it was, in seconds."""
    prepare_s: float
    merge_s: float
    total_s: float
    """Until all devices were prepared; putting the results together; everything."""
    notes: tuple[str, ...] = field(default=())
    """What the reader should know."""
