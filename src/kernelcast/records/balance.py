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
    RANGES = "ranges"
    """Work-groups write places of their own, known from the address expressions."""
    COMPARE = "compare"
    """Where it is written is not known before: elements that differ from before have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlabSpace:
    """An index space cut into slabs across one dimension: what devices are given."""

    ndrange: NDRange
    axis: int
    thickness: int
    """Work-groups of a slab along that dimension; the last slab may have fewer."""

    @property
    def layers(self) -> int:
        return self.ndrange.group_counts[self.axis]

    @property
    def count(self) -> int:
        return -(-self.layers // self.thickness)

    def box(self, span: Span) -> GroupBox:
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
        return sum(self.box(span).work_group_count for span in spans)


class Activity(StrEnum):
    PREPARE = "prepare"
    SAMPLE = "sample"
    """Running a first slab, then a few that tell the speed; they count as done."""
    RUN = "run"
    COLLECT = "collect"
    MERGE = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    device: int
    """Number of the device, or the number of devices for the host."""
    activity: Activity
    start_s: float
    end_s: float
    work_groups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShare:
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
    """Time of the whole launch by its samples, in seconds; None if it has taken none."""
    low_s: float | None = None
    high_s: float | None = None
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
