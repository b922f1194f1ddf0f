import pytest

from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.occupancy import KernelResources, Limiter, OccupancyResult, compute_p_sat
from kernelcast.sampling.occupancy.amd import AMD_LIMITS

KIB = 1024


def compute(
    name: str,
    size: int,
    vgprs: int | None = None,
    local_bytes: int = 0,
    sgprs: int | None = None,
    sub_group_size: int | None = None,
) -> OccupancyResult:
    """P_sat of one launch on one device."""
    return compute_p_sat(
        AMD_LIMITS[name],
        KernelResources(
            work_group_size=size,
            registers_per_work_item=vgprs,
            local_memory_bytes=local_bytes,
            sub_group_size=sub_group_size,
            scalar_registers_per_sub_group=sgprs,
        ),
    )


@pytest.mark.parametrize("name", ["gfx600", "gfx701", "gfx803", "gfx900", "gfx906"])
def test_gcn_runs_four_waves_per_simd_with_64_vgprs(name: str) -> None:
    """Gives 4 of 10 waves on each of GCN's four SIMDs for 64 VGPRs."""
    result = compute(name, 256, vgprs=64)
    assert (result.p_sat, result.limiter) == (4, Limiter.REGISTERS)
    assert result.occupancy == pytest.approx(0.4)


def test_agrees_with_the_compilers_example() -> None:
    """Gives full occupancy for the example in the manual of llvm-calc-occupancy."""
    result = compute("gfx90a", 512, vgprs=50, sgprs=30)
    assert (result.p_sat, result.occupancy, result.assumed) == (4, 1.0, ())


@pytest.mark.parametrize(
    ("name", "size", "vgprs", "local_bytes", "p_sat", "limiter"),
    [
        # one wavefront needs no barrier: all 40 slots
        ("gfx900", 64, 16, 0, 40, Limiter.WORK_GROUPS),
        # two wavefronts: 16 barriers
        ("gfx900", 128, 16, 0, 16, Limiter.WORK_GROUPS),
        ("gfx900", 1024, 16, 0, 2, Limiter.WARPS),
        # 64 KiB; 21,000 bytes -> 21,504
        ("gfx900", 64, 16, 21_000, 3, Limiter.LOCAL_MEMORY),
        # 1280-byte granule: 32,768 -> 33,280 of 163,840
        ("gfx950", 256, 16, 32 * KIB, 4, Limiter.LOCAL_MEMORY),
        # WGP: 4 SIMDs * 16 waves of 32
        ("gfx1100", 256, 96, 0, 8, Limiter.WARPS),
        # the smaller RDNA 3 chips have 1024 VGPRs: 1024 / 96 = 10 waves
        ("gfx1102", 256, 96, 0, 5, Limiter.REGISTERS),
        # RDNA 1 has 20 slots and a granule of 8: 1024 / 56 = 18 waves
        ("gfx1010", 256, 50, 0, 9, Limiter.REGISTERS),
        # 128 KiB per WGP
        ("gfx1030", 64, 16, 64 * KIB, 2, Limiter.LOCAL_MEMORY),
    ],
)
def test_known_cases(
    name: str, size: int, vgprs: int, local_bytes: int, p_sat: int, limiter: Limiter
) -> None:
    """Gives the numbers that follow by hand from the published limits."""
    result = compute(name, size, vgprs, local_bytes)
    assert (result.p_sat, result.limiter) == (p_sat, limiter)


def test_scalar_registers_limit_before_rdna_only() -> None:
    """Lowers GCN and CDNA for many SGPRs, and leaves RDNA alone."""
    # 112 SGPRs: 800 / 112 = 7 of 8 waves
    assert compute("gfx942", 256, vgprs=4, sgprs=112).occupancy == pytest.approx(0.875)
    assert compute("gfx1100", 256, vgprs=4, sgprs=106).occupancy == 1.0


def test_wider_wavefronts_take_the_same_registers() -> None:
    """Gives the same work-groups for wavefronts of 64 where registers limit alone."""
    narrow = compute("gfx1030", 256, vgprs=128, sub_group_size=32)
    wide = compute("gfx1030", 256, vgprs=128, sub_group_size=64)
    assert narrow.p_sat == wide.p_sat == 4


def test_unknowns_are_named() -> None:
    """Names what was unknown and matters on this architecture."""
    assert compute("gfx900", 256).assumed == (
        "registers_per_work_item",
        "scalar_registers_per_sub_group",
    )
    assert compute("gfx1100", 256).assumed == ("registers_per_work_item", "sub_group_size")


@pytest.mark.parametrize(
    ("name", "demand", "message"),
    [
        ("gfx900", {"size": 2048}, "work-group size is 2048"),
        ("gfx900", {"size": 64, "vgprs": 257}, "VGPRs per work-item is 257"),
        ("gfx900", {"size": 64, "sgprs": 113}, "SGPRs per wavefront is 113"),
        ("gfx900", {"size": 64, "sub_group_size": 32}, "sub-group size 32 given"),
        ("gfx600", {"size": 64, "local_bytes": 33 * KIB}, "is 33792, the device allows 32768"),
        # 500 of 512 registers: one wave per SIMD, and the group has eight
        ("gfx90a", {"size": 512, "vgprs": 500}, "limited by registers"),
    ],
)
def test_refuses_what_never_fits(name: str, demand: dict[str, int], message: str) -> None:
    """Refuses a work-group that an empty unit cannot hold, with the numbers."""
    with pytest.raises(DeviceLimitError, match=message):
        compute(name, **demand)
