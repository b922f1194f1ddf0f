import pytest

from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.occupancy import KernelResources, Limiter, OccupancyResult, compute_p_sat
from kernelcast.sampling.occupancy.nvidia import NVIDIA_LIMITS

GTX_280, GTX_580, GTX_680 = (1, 3), (2, 0), (3, 0)
KIB = 1024


def compute(
    capability: tuple[int, int], size: int, registers: int | None = None, local_bytes: int = 0
) -> OccupancyResult:
    """P_sat of one launch on one device."""
    return compute_p_sat(
        NVIDIA_LIMITS[capability],
        KernelResources(
            work_group_size=size,
            registers_per_work_item=registers,
            local_memory_bytes=local_bytes,
        ),
    )


def test_gtx_580_holds_eight_work_groups_and_48_warps() -> None:
    """Holds what the paper says of the GTX 580: 8 active work-groups, 48 warps."""
    limits = NVIDIA_LIMITS[GTX_580]
    assert (limits.max_work_groups, limits.max_warps) == (8, 48)


@pytest.mark.parametrize(("registers", "p_sat", "occupancy"), [(20, 6, 1.0), (22, 5, 5 / 6)])
def test_paper_examples_of_occupancy(registers: int, p_sat: int, occupancy: float) -> None:
    """Gives the paper's pairs for 256 work-items: occupancy 1.0 is six, 0.833 is five."""
    result = compute(GTX_580, 256, registers)
    assert result.p_sat == p_sat
    assert result.occupancy == pytest.approx(occupancy)


def test_of_several_limiters_slots_are_named() -> None:
    """Names slots where several limiters give the same number."""
    # 6 warps a group: 48 / 6 = 8; 20 * 32 = 640 registers a warp, 2 * (16384 // 640) = 50 warps.
    result = compute(GTX_580, 192, 20)
    assert result.p_sat == 8
    assert result.limiter is Limiter.WORK_GROUPS


@pytest.mark.parametrize(
    ("capability", "size", "registers", "local_bytes", "p_sat", "limiter"),
    [
        # 1.3: registers go to work-groups: 6 * 32 * 20 = 3840 -> 4096 of 16384
        (GTX_280, 192, 20, 0, 4, Limiter.REGISTERS),
        # 1.3: three warps take four slots of 32
        (GTX_280, 96, 8, 0, 8, Limiter.WORK_GROUPS),
        # 1.3: 4097 bytes -> 4608 of 16384
        (GTX_280, 64, 8, 4097, 3, Limiter.LOCAL_MEMORY),
        # 2.0: 37 * 32 = 1184 -> 1280 as Fermi rounds 37 coarsely: 24 warps, not 26, of 13
        (GTX_580, 416, 37, 0, 1, Limiter.REGISTERS),
        # 3.0: 63 * 32 = 2016 -> 2048: 32 warps of 8
        (GTX_680, 256, 63, 0, 4, Limiter.REGISTERS),
        (GTX_680, 64, 32, 0, 16, Limiter.WORK_GROUPS),
        # 8.0: 104 * 32 = 3328: 4 * 4 warps of 8
        ((8, 0), 256, 104, 0, 2, Limiter.REGISTERS),
        ((8, 0), 128, 128, 0, 4, Limiter.REGISTERS),
        # 8.0: one more KiB is the driver's: 164 / (40 + 1)
        ((8, 0), 128, 32, 40 * KIB, 4, Limiter.LOCAL_MEMORY),
        ((8, 0), 128, 32, 163 * KIB, 1, Limiter.LOCAL_MEMORY),
        ((8, 6), 256, 32, 0, 6, Limiter.WARPS),
        # 9.0: 168 * 32 = 5376: 4 * 3 warps of 12
        ((9, 0), 384, 168, 0, 1, Limiter.REGISTERS),
        # 9.0: 228 / (48 + 1)
        ((9, 0), 256, 32, 48 * KIB, 4, Limiter.LOCAL_MEMORY),
        ((12, 0), 32, 32, 0, 24, Limiter.WORK_GROUPS),
    ],
)
def test_known_cases(
    capability: tuple[int, int],
    size: int,
    registers: int,
    local_bytes: int,
    p_sat: int,
    limiter: Limiter,
) -> None:
    """Gives the numbers that follow by hand from the published limits."""
    result = compute(capability, size, registers, local_bytes)
    assert (result.p_sat, result.limiter) == (p_sat, limiter)


# Computed by cuda_occupancy.h of CUDA 13.0, given the same slots, registers and memory per SM.
@pytest.mark.parametrize(
    ("capability", "size", "registers", "local_bytes", "p_sat"),
    [
        ((3, 0), 664, 35, 0, 2),
        ((3, 5), 391, 24, 6841, 4),
        ((3, 7), 307, 38, 4639, 6),
        ((5, 0), 712, 22, 0, 2),
        ((5, 2), 737, 32, 19772, 2),
        ((5, 3), 937, 26, 0, 2),
        ((6, 0), 50, 121, 0, 8),
        ((6, 1), 31, 22, 0, 32),
        ((6, 2), 472, 38, 1583, 3),
        ((7, 0), 96, 24, 19349, 5),
        ((7, 2), 949, 18, 4647, 2),
        ((7, 5), 43, 94, 1504, 10),
        ((8, 0), 968, 18, 0, 2),
        ((8, 6), 412, 39, 0, 3),
        ((8, 7), 360, 41, 0, 3),
        ((8, 9), 485, 21, 0, 3),
        ((9, 0), 386, 69, 15949, 2),
        ((10, 0), 403, 50, 0, 2),
        ((10, 3), 593, 17, 11813, 3),
        ((11, 0), 167, 119, 1967, 2),
        ((12, 0), 638, 32, 0, 2),
        ((12, 1), 115, 69, 0, 7),
    ],
)
def test_agrees_with_the_toolkit(
    capability: tuple[int, int], size: int, registers: int, local_bytes: int, p_sat: int
) -> None:
    """Gives what the toolkit's own header computes."""
    assert compute(capability, size, registers, local_bytes).p_sat == p_sat


def test_unknown_registers_are_named() -> None:
    """Skips the register limiter when the number is unknown, and says so."""
    result = compute((8, 0), 256)
    assert result.assumed == ("registers_per_work_item",)
    assert result.limiter is not Limiter.REGISTERS


@pytest.mark.parametrize(
    ("capability", "size", "registers", "local_bytes", "message"),
    [
        (GTX_280, 513, 8, 0, "work-group size is 513, the device allows 512"),
        ((8, 0), 1024, 100, 0, "does not fit into an empty compute unit, limited by registers"),
        ((8, 0), 64, 256, 0, "registers per work-item is 256, the device allows 255"),
        ((8, 0), 64, 32, 164 * KIB, "is 167936, the device allows 166912"),
        # 5.3 grants a work-group only half of the register file
        ((5, 3), 1024, 40, 0, "limited by registers"),
    ],
)
def test_refuses_what_never_fits(
    capability: tuple[int, int], size: int, registers: int, local_bytes: int, message: str
) -> None:
    """Refuses a work-group that an empty SM cannot hold, with the numbers."""
    with pytest.raises(DeviceLimitError, match=message):
        compute(capability, size, registers, local_bytes)


def test_refuses_another_sub_group_size() -> None:
    """Refuses a sub-group size that is not the warp's."""
    with pytest.raises(DeviceLimitError, match="sub-group size 16 given"):
        compute_p_sat(NVIDIA_LIMITS[8, 0], KernelResources(work_group_size=64, sub_group_size=16))
