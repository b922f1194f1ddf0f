from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.occupancy import (
    Limiter,
    UnitLimits,
    compute_p_sat,
    find_limits,
    load_limits,
)

AMD = "Advanced Micro Devices, Inc."
INTEL = "Intel(R) Corporation"
NVIDIA = "NVIDIA Corporation"
SLOTS, WARPS = Limiter.WORK_GROUPS, Limiter.WARPS
REGISTERS, LOCAL = Limiter.REGISTERS, Limiter.LOCAL_MEMORY
KIB = 1024
SHORT = {
    "registers": "registers_per_work_item",
    "local": "local_memory_bytes",
    "width": "sub_group_size",
    "scalars": "scalar_registers_per_sub_group",
    "barriers": "uses_barriers",
}


def compute(name: str, size: int, **demand: Any) -> tuple[int, Limiter]:  # noqa: ANN401
    asked = {SHORT[key]: value for key, value in demand.items()}
    return compute_p_sat(load_limits()[name], work_group_size=size, **asked)


@pytest.mark.parametrize(
    ("name", "size", "demand", "p_sat", "limiter"),
    [
        # The paper's GTX 580: occupancies of 1.0 and 0.833 of 48 warps.
        ("cc 2.0", 256, {"registers": 20}, 6, WARPS),
        ("cc 2.0", 256, {"registers": 22}, 5, REGISTERS),
        # 2.0: 6 warps a group: 48 / 6 = 8; 640 registers a warp: 50 warps. Slots come first.
        ("cc 2.0", 192, {"registers": 20}, 8, SLOTS),
        # 1.3: registers go to work-groups: 6 * 32 * 20 = 3840 -> 4096 of 16384
        ("cc 1.3", 192, {"registers": 20}, 4, REGISTERS),
        # 1.3: three warps take four slots of 32
        ("cc 1.3", 96, {"registers": 8}, 8, SLOTS),
        # 1.3: 4097 bytes -> 4608 of 16384
        ("cc 1.3", 64, {"registers": 8, "local": 4097}, 3, LOCAL),
        # 2.0: 37 * 32 = 1184 -> 1280 as Fermi rounds 37 coarsely: 24 warps, not 26, of 13
        ("cc 2.0", 416, {"registers": 37}, 1, REGISTERS),
        # GCN: 64 VGPRs are 4 of 10 waves on each of four SIMDs
        *((name, 256, {"registers": 64}, 4, REGISTERS)
          for name in ("gfx600", "gfx701", "gfx803", "gfx900", "gfx906")),
        # the example in the manual of llvm-calc-occupancy: all 8 waves
        ("gfx90a", 512, {"registers": 50, "scalars": 30}, 4, WARPS),
        # one wavefront needs no barrier: all 40 slots; two wavefronts: 16 barriers
        ("gfx900", 64, {"registers": 16}, 40, SLOTS),
        ("gfx900", 128, {"registers": 16}, 16, SLOTS),
        # 64 KiB; 21,000 bytes -> 21,504
        ("gfx900", 64, {"registers": 16, "local": 21_000}, 3, LOCAL),
        # 1280-byte granule: 32,768 -> 33,280 of 163,840
        ("gfx950", 256, {"registers": 16, "local": 32 * KIB}, 4, LOCAL),
        # the smaller RDNA 3 chips have 1024 VGPRs: 1024 / 96 = 10 waves
        ("gfx1102", 256, {"registers": 96}, 5, REGISTERS),
        # RDNA 1 has 20 slots and a granule of 8: 1024 / 56 = 18 waves
        ("gfx1010", 256, {"registers": 50}, 9, REGISTERS),
        # wavefronts of 64 take the registers of two of 32
        ("gfx1030", 256, {"registers": 128, "width": 32}, 4, REGISTERS),
        ("gfx1030", 256, {"registers": 128, "width": 64}, 4, REGISTERS),
        # 112 SGPRs: 800 / 112 = 7 of 8 waves; none limit on RDNA
        ("gfx942", 256, {"registers": 4, "scalars": 112}, 7, REGISTERS),
        ("gfx1100", 256, {"registers": 4, "scalars": 106}, 8, WARPS),
        # 16 of 56 threads each
        ("Gen9", 256, {"width": 16}, 3, WARPS),
        # 33 KiB is rounded up to 64 of 128 KiB
        ("Xe-HPG", 64, {"width": 16, "local": 33 * KIB}, 2, LOCAL),
        # large registers: 200 * 16 * 4 = 12,800 of 8,192 bytes halves the 64 threads
        ("Xe-HPC", 256, {"width": 16, "registers": 200}, 2, REGISTERS),
        # Gen9 has no large registers: the same kernel spills
        ("Gen9", 256, {"width": 16, "registers": 200}, 3, WARPS),
        ("Xe-HPG", 32, {"width": 32, "barriers": True}, 32, SLOTS),
        ("Xe-HPG", 32, {"width": 32, "barriers": False}, 128, SLOTS),
    ],
)  # fmt: skip
def test_known_cases(
    name: str, size: int, demand: dict[str, Any], p_sat: int, limiter: Limiter
) -> None:
    """Gives the numbers that follow by hand from the published limits."""
    assert compute(name, size, **demand) == (p_sat, limiter)


# Computed by cuda_occupancy.h of CUDA 13.0, given the same slots, registers and memory per SM.
@pytest.mark.parametrize(
    ("capability", "size", "registers", "local_bytes", "p_sat"),
    [
        ("3.0", 664, 35, 0, 2), ("3.5", 391, 24, 6841, 4), ("3.7", 307, 38, 4639, 6),
        ("5.0", 712, 22, 0, 2), ("5.2", 737, 32, 19772, 2), ("5.3", 937, 26, 0, 2),
        ("6.0", 50, 121, 0, 8), ("6.1", 31, 22, 0, 32), ("6.2", 472, 38, 1583, 3),
        ("7.0", 96, 24, 19349, 5), ("7.2", 949, 18, 4647, 2), ("7.5", 43, 94, 1504, 10),
        ("8.0", 968, 18, 0, 2), ("8.6", 412, 39, 0, 3), ("8.7", 360, 41, 0, 3),
        ("8.9", 485, 21, 0, 3), ("9.0", 386, 69, 15949, 2), ("10.0", 403, 50, 0, 2),
        ("10.3", 593, 17, 11813, 3), ("11.0", 167, 119, 1967, 2), ("12.0", 638, 32, 0, 2),
        ("12.1", 115, 69, 0, 7),
    ],
)  # fmt: skip
def test_agrees_with_the_toolkit(
    capability: str, size: int, registers: int, local_bytes: int, p_sat: int
) -> None:
    """Gives what the toolkit's own header computes."""
    assert compute(f"cc {capability}", size, registers=registers, local=local_bytes)[0] == p_sat


@pytest.mark.parametrize(
    ("name", "size", "demand", "message"),
    [
        ("cc 1.3", 513, {"registers": 8}, "work-group size is 513, the device allows 512"),
        ("cc 8.0", 1024, {"registers": 100}, "not fit into an empty compute unit, limited by reg"),
        ("cc 8.0", 64, {"registers": 256}, "registers per work-item is 256, the device allows 255"),
        # 5.3 grants a work-group only half of the register file
        ("cc 5.3", 1024, {"registers": 40}, "limited by registers"),
        ("gfx900", 64, {"registers": 257}, "registers per work-item is 257"),
        ("gfx900", 64, {"scalars": 113}, "registers per sub-group is 113"),
        # 500 of 512 registers: one wave per SIMD, and the group has eight
        ("gfx90a", 512, {"registers": 500}, "limited by registers"),
        ("Gen9", 64, {"local": 65 * KIB}, "is 66560, the device allows 65536"),
    ],
)
def test_refuses_what_never_fits(
    name: str, size: int, demand: dict[str, Any], message: str
) -> None:
    """Refuses a work-group that an empty unit cannot hold, with the numbers."""
    with pytest.raises(DeviceLimitError, match=f"^{name}: .*{message}.*; "):
        compute(name, size, **demand)


@pytest.mark.parametrize(
    ("vendor", "device", "capability", "name"),
    [
        (NVIDIA, "GeForce GTX 580", (2, 0), "cc 2.0"),
        ("The pocl project", "NVIDIA A100", (8, 0), "cc 8.0"),
        (AMD, "gfx90a:sramecc+:xnack-", None, "gfx90a"),
        (AMD, "Tahiti", None, "gfx600"),
        (INTEL, "Intel(R) UHD Graphics 630", None, "Gen9"),
        (INTEL, "Intel(R) Iris(R) Plus Graphics 655", None, "Gen9"),
        (INTEL, "Intel(R) Iris(R) Plus Graphics", None, "Gen11"),
        (INTEL, "Intel(R) Iris(R) Xe Graphics", None, "Xe-LP"),
        (INTEL, "Intel(R) Arc(TM) A770 Graphics", None, "Xe-HPG"),
        (INTEL, "Intel(R) Data Center GPU Max 1550", None, "Xe-HPC"),
        (INTEL, "Intel(R) Graphics [0x9a49]", None, "Xe-LP"),
        # Processors, and devices that no table knows: nothing instead of a guess.
        (INTEL, "Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz", None, None),
        (AMD, "AMD Ryzen 7 5800X 8-Core Processor", None, None),
        (AMD, "gfx9999", None, None),
        ("The pocl project", "pthread-Intel(R) Xeon(R)", None, None),
        ("Mesa/X.org", "AMD Radeon RX 6800 (radeonsi, navi21)", None, None),
        (NVIDIA, "a device of tomorrow", (99, 0), None),
        (INTEL, "Intel(R) Arc(TM) B580 Graphics", None, None),
    ],
)
def test_finds_a_device_by_what_opencl_reports(
    vendor: str, device: str, capability: tuple[int, int] | None, name: str | None
) -> None:
    """Finds the architecture of known GPUs, and nothing for the rest."""
    limits = find_limits(vendor, device, capability)
    assert (limits and limits.name) == name


def test_tables_are_consistent() -> None:
    """Holds tables whose parts are not larger than their wholes."""
    for one in load_limits().values():
        assert one.work_group_registers <= one.registers
        reserved = one.work_group_local_bytes + one.reserved_local_bytes
        assert reserved <= one.local_bytes
        assert one.max_work_group_size <= one.max_warps * max(one.warp_sizes)
        assert one.registers % (one.register_granule * one.register_partitions) == 0
        assert list(one.local_sizes_bytes) == sorted(one.local_sizes_bytes)
        assert max(one.local_sizes_bytes, default=0) in (0, one.work_group_local_bytes)


@given(
    limits=st.sampled_from([*load_limits().values()]),
    resources=st.fixed_dictionaries({
        "work_group_size": st.integers(1, 1024),
        "registers_per_work_item": st.none() | st.integers(0, 128),
        "local_memory_bytes": st.integers(0, 32 * 1024),
        "scalar_registers_per_sub_group": st.none() | st.integers(0, 104),
        "uses_barriers": st.none() | st.booleans(),
    }),
    registers=st.tuples(st.integers(0, 512), st.integers(0, 512)).map(sorted),
    local_bytes=st.tuples(st.integers(0, 256 * 1024), st.integers(0, 256 * 1024)).map(sorted),
)  # fmt: skip
def test_asking_for_more_never_raises_p_sat(
    limits: UnitLimits, resources: dict[str, Any], registers: list[int], local_bytes: list[int]
) -> None:
    """Never fits more work-groups when each takes more; says why where it fits none."""

    def count(**demand: int | None) -> int:
        try:
            return compute_p_sat(limits, **{**resources, **demand})[0]
        except DeviceLimitError as error:
            assert str(error).startswith(f"{limits.name}: ")  # noqa: PT017 - one of two outcomes
            return 0

    few, many = (count(registers_per_work_item=one) for one in registers)
    assert many <= few <= count(registers_per_work_item=None)
    few, many = (count(local_memory_bytes=one) for one in local_bytes)
    assert many <= few
