"""What is known of a device, of a kernel that its compiler has built, and of long work on it."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Generic, TypeVar

from kernelcast.records.errors import InputError, UnknownDeviceError
from kernelcast.records.kernel import Dialect

T = TypeVar("T", int, float, str, bool)


class TraitSource(StrEnum):
    REPORTED = "reported"
    """The driver or the operating system said so."""
    MEASURED = "measured"
    ASSUMED = "assumed"
    """Nobody said so; it is our default."""
    COMPUTED = "computed"
    """It follows from published rules and reported numbers."""
    PUBLISHED = "published"
    """Somebody measured or documented it for this kind of device; `origin` says who."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait(Generic[T]):
    """A number that says where it comes from, so that a guess stays visible as a guess."""

    value: T
    low: T | None = None
    high: T | None = None
    """95 % interval of a measured number."""
    source: TraitSource
    origin: str = ""
    """What told it: a benchmark, a document, a file."""


class DeviceKind(StrEnum):
    CPU = "cpu"
    GPU = "gpu"
    ACCELERATOR = "accelerator"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDescription:
    id: str
    """Stable name: the same after a reboot and in any order of the platforms."""
    name: str
    platform: str
    vendor: str
    driver: str
    opencl_version: str
    kind: DeviceKind
    compute_units: int
    local_memory_bytes: int
    global_memory_bytes: int
    max_allocation_bytes: int
    max_work_group_size: int
    max_work_item_sizes: tuple[int, ...]
    extensions: tuple[str, ...]
    has_non_uniform_work_groups: bool
    has_fp64: bool
    dialect: Dialect | None = None
    """What its compiler defines; None where no driver was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerCheck:
    """How the device's event timer compares with the host clock on a kernel of known length."""

    event_s: float
    host_s: float
    """The same launch by profiling event and by the host clock around it, in seconds."""
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    description: DeviceDescription
    timer: TimerCheck | None = None
    broken_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturationPoint:
    """P_sat, the work-groups active at once on one compute unit, from each source there is."""

    p_sat: Trait[int]
    concurrency: int
    """Work-groups active at once on the whole device: as counted where P_sat is measured, for
    software devices may report more compute units than they have, else P_sat times those."""
    computed: int | None = None
    measured: int | None = None
    limiter: str | None = None
    parts: int = 1
    """Equal contiguous parts of a launch that its cores get beforehand, one each (llvmpipe); 1
    where the next work-groups go to whichever core is free."""

    @property
    def disagreement(self) -> str | None:
        """A sentence on both values if they differ, else None."""
        if self.p_sat.source is TraitSource.REPORTED and self.computed != self.p_sat.value:
            rules = "nothing known" if self.computed is None else self.computed
            return f"P_sat: {rules} by occupancy rules, the driver's {self.p_sat.value} is used"
        if self.computed is None or self.measured is None or self.computed == self.measured:
            return None
        return (
            f"P_sat: {self.computed} by occupancy rules, {self.measured} measured; "
            f"sampling uses {self.p_sat.value} ({self.p_sat.source})"
        )


# Sizes of something that is there: a kernel always has work-groups of at least one work-item.
_AT_LEAST_ONE = frozenset({
    "preferred_work_group_multiple",
    "max_work_group_size",
    "sub_group_size",
    "sub_groups_per_work_group",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerFacts:
    """Resources of a compiled kernel; None stands for "nobody says", never for zero."""

    private_bytes_per_work_item: Trait[int] | None = None
    """Private memory that does not fit into registers."""
    local_bytes_per_work_group: Trait[int] | None = None
    """Local memory that the kernel declares; local arguments come on top."""
    preferred_work_group_multiple: Trait[int] | None = None
    max_work_group_size: Trait[int] | None = None
    sub_group_size: Trait[int] | None = None
    """Work-items per sub-group (warp, wavefront, vector) at this local size."""
    sub_groups_per_work_group: Trait[int] | None = None
    registers_per_work_item: Trait[int] | None = None
    stack_frame_bytes_per_work_item: Trait[int] | None = None
    """Call stack, arrays and spilled registers together."""
    spill_store_bytes_per_work_item: Trait[int] | None = None
    spill_load_bytes_per_work_item: Trait[int] | None = None
    """Bytes moved by the instructions that spill registers, each counted once."""
    ptx_virtual_register_count: Trait[int] | None = None
    """Registers of any width that the kernel's PTX declares, before those of the hardware."""
    ptx_instruction_count: Trait[int] | None = None
    """Instructions in the PTX of the kernel's own body, each counted once."""

    def __post_init__(self) -> None:
        for name, trait in self.known.items():
            least = 1 if name in _AT_LEAST_ONE else 0
            if trait.value < least:
                raise InputError(
                    f"compiler facts: {name} is {trait.value}; give a number of at least {least}, "
                    "or None where it is not known"
                )

    @property
    def known(self) -> dict[str, Trait[int]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: trait for name, trait in values.items() if trait is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where long work on a device stands, as those are told who wait for it."""

    device_id: str
    done: int
    total: int
    """Microbenchmarks, kernels on devices, configurations, or runs while these are measured."""
    title: str = ""
    stage: str = ""
    """What is done with it; empty where it begins."""
    rows: int | None = None
    remaining_s: float | None = None
    """About what the rest will take, in seconds; None as long as nobody knows."""

    @property
    def words(self) -> str:
        return ": ".join(filter(None, [self.title, self.stage]))


def match_device_id(wanted: str, ids: Iterable[str]) -> str:
    known = sorted(ids)
    if wanted in known:
        return wanted
    matches = [key for key in known if wanted and key.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    what = "unknown" if not matches else f"the beginning of {len(matches)} ids"
    msg = f"device {wanted!r} is {what}; the devices here are: {', '.join(known)}"
    raise UnknownDeviceError(msg)
