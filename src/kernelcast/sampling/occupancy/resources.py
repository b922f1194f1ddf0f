"""What one work-group asks of a compute unit, and how many of them are active at once."""

from dataclasses import dataclass
from enum import StrEnum

from kernelcast.records.errors import DeviceLimitError, InputError


class Limiter(StrEnum):
    """What keeps one more work-group from becoming active; ties go to the first in this order."""

    WORK_GROUPS = "work_groups"
    WARPS = "warps"
    REGISTERS = "registers"
    LOCAL_MEMORY = "local_memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """What one launch of a kernel asks for; None stands for "not known".

    Examples
    --------
    >>> KernelResources(work_group_size=256).local_memory_bytes
    0
    """

    work_group_size: int
    """Work-items per work-group."""
    registers_per_work_item: int | None = None
    """32-bit registers per work-item: NVIDIA's registers, AMD's VGPRs (on CDNA 2 and later with the
    accumulation VGPRs), on Intel the 32-bit values that live in the register file."""
    local_memory_bytes: int = 0
    """Local memory per work-group, in bytes, static and passed as arguments."""
    sub_group_size: int | None = None
    """Work-items per warp, wavefront or EU thread, as the compiler chose."""
    scalar_registers_per_sub_group: int | None = None
    """SGPRs per wavefront; counts on AMD's GCN and CDNA only."""
    uses_barriers: bool | None = None
    """Whether the kernel waits at barriers; counts on Intel only."""

    def __post_init__(self) -> None:
        for name, minimum in (
            ("work_group_size", 1),
            ("registers_per_work_item", 0),
            ("local_memory_bytes", 0),
            ("sub_group_size", 1),
            ("scalar_registers_per_sub_group", 0),
        ):
            value = getattr(self, name)
            if value is not None and value < minimum:
                msg = f"kernel resources: {name} is {value}; give a number of at least {minimum}"
                raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyResult:
    """How many work-groups of one launch are active at once per compute unit."""

    p_sat: int
    """Active work-groups per hardware unit (SM, compute unit, WGP, subslice, Xe-core)."""
    limiter: Limiter
    """What keeps it from being more."""
    occupancy: float
    """Active over possible warps, in (0, 1]."""
    assumed: tuple[str, ...] = ()
    """Fields of `KernelResources` that were unknown and could have lowered the result."""
    compute_units_sharing: int = 1
    """How many of OpenCL's compute units make up that hardware unit: Intel's driver counts EUs, all
    others the unit itself."""

    def __post_init__(self) -> None:
        if self.p_sat < 1 or self.compute_units_sharing < 1:
            msg = (
                f"occupancy: p_sat is {self.p_sat}, compute_units_sharing "
                f"{self.compute_units_sharing}; give numbers of at least 1"
            )
            raise InputError(msg)
        if not 0.0 < self.occupancy <= 1.0:
            msg = f"occupancy: {self.occupancy} active warps per possible one; give one in (0, 1]"
            raise InputError(msg)

    def count_active_work_groups(self, compute_units: int) -> int:
        """Count the work-groups active at once on a whole device.

        Parameters
        ----------
        compute_units : int
            As OpenCL reports them (``CL_DEVICE_MAX_COMPUTE_UNITS``).

        Examples
        --------
        >>> result = OccupancyResult(
        ...     p_sat=8, limiter=Limiter.WARPS, occupancy=1.0, compute_units_sharing=16
        ... )
        >>> result.count_active_work_groups(512)
        256
        """
        return self.p_sat * max(1, compute_units // self.compute_units_sharing)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounts:
    """A vendor's answer: work-groups that fit by each limiter, and what they are made of."""

    by_limiter: tuple[tuple[Limiter, int], ...]
    """Work-groups that fit if this limiter were the only one, in the order of `Limiter`."""
    warps_per_group: int
    """Warps of one work-group."""
    max_warps: int
    """Warps the hardware unit can hold."""
    assumed: tuple[str, ...]
    """Unknown fields of `KernelResources`."""


def round_up(value: int, unit: int) -> int:
    """Round `value` up to a multiple of `unit`.

    Examples
    --------
    >>> round_up(640, 256)
    768
    """
    return -(-value // unit) * unit


def check_group(
    device: str, resources: KernelResources, *, most_work_items: int, most_local_bytes: int
) -> None:
    """Refuse a work-group that is too large or takes too much local memory."""
    check_fits(
        device,
        "the work-group size",
        resources.work_group_size,
        most_work_items,
        "give a smaller local size",
    )
    check_fits(
        device,
        "local memory per work-group, in bytes,",
        resources.local_memory_bytes,
        most_local_bytes,
        "use less local memory",
    )


def check_fits(device: str, what: str, given: int, largest: int, advice: str) -> None:
    """Refuse a demand that this device never grants."""
    if given > largest:
        msg = f"{device}: {what} is {given}, the device allows {largest}; {advice}"
        raise DeviceLimitError(msg)
