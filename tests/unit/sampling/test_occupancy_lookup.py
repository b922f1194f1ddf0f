import pytest

from kernelcast.sampling.occupancy import DeviceLimits, find_limits
from kernelcast.sampling.occupancy.amd import AMD_LIMITS
from kernelcast.sampling.occupancy.intel_gpu import INTEL_LIMITS
from kernelcast.sampling.occupancy.nvidia import NVIDIA_LIMITS

AMD = "Advanced Micro Devices, Inc."
INTEL = "Intel(R) Corporation"
NVIDIA = "NVIDIA Corporation"


@pytest.mark.parametrize(
    ("vendor", "device", "capability", "name"),
    [
        (NVIDIA, "GeForce GTX 580", (2, 0), "cc 2.0"),
        ("The pocl project", "NVIDIA A100", (8, 0), "cc 8.0"),
        (AMD, "gfx90a:sramecc+:xnack-", None, "gfx90a"),
        (AMD, "gfx1100", None, "gfx1100"),
        (AMD, "Tahiti", None, "gfx600"),
        (INTEL, "Intel(R) UHD Graphics 630", None, "Gen9"),
        (INTEL, "Intel(R) HD Graphics P530", None, "Gen9"),
        (INTEL, "Intel(R) Iris(R) Plus Graphics 655", None, "Gen9"),
        (INTEL, "Intel(R) Iris(R) Plus Graphics", None, "Gen11"),
        (INTEL, "Intel(R) Iris(R) Xe Graphics", None, "Xe-LP"),
        (INTEL, "Intel(R) UHD Graphics 770", None, "Xe-LP"),
        (INTEL, "Intel(R) Arc(TM) A770 Graphics", None, "Xe-HPG"),
        (INTEL, "Intel(R) Data Center GPU Flex 170", None, "Xe-HPG"),
        (INTEL, "Intel(R) Data Center GPU Max 1550", None, "Xe-HPC"),
        (INTEL, "Intel(R) Graphics [0x9a49]", None, "Xe-LP"),
    ],
)
def test_finds_a_known_device(
    vendor: str, device: str, capability: tuple[int, int] | None, name: str
) -> None:
    """Finds the architecture from what OpenCL reports."""
    limits = find_limits(vendor, device, capability)
    assert limits is not None
    assert limits.name == name


@pytest.mark.parametrize(
    ("vendor", "device", "capability"),
    [
        (INTEL, "Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz", None),
        (INTEL, "AMD EPYC 7763 64-Core Processor", None),
        (AMD, "AMD Ryzen 7 5800X 8-Core Processor", None),
        (AMD, "Cayman", None),
        (AMD, "gfx9999", None),
        ("The pocl project", "pthread-Intel(R) Xeon(R)", None),
        ("Mesa/X.org", "AMD Radeon RX 6800 (radeonsi, navi21)", None),
        (NVIDIA, "a device of tomorrow", (99, 0)),
        (NVIDIA, "a driver that does not tell", None),
        (INTEL, "Intel(R) HD Graphics 5500", None),
        (INTEL, "Intel(R) UHD Graphics 605", None),
        (INTEL, "Intel(R) Arc(TM) B580 Graphics", None),
        (INTEL, "Intel(R) Graphics [0xe20b]", None),
        ("", "", None),
    ],
)
def test_knows_nothing_of_the_rest(
    vendor: str, device: str, capability: tuple[int, int] | None
) -> None:
    """Gives None for processors and for devices no table knows, instead of a guess."""
    assert find_limits(vendor, device, capability) is None


def test_tables_are_consistent() -> None:
    """Holds tables whose parts are not larger than their wholes, each row with its source."""
    for nvidia in NVIDIA_LIMITS.values():
        assert nvidia.registers_per_work_group <= nvidia.registers
        reserved = nvidia.local_memory_per_work_group_bytes + nvidia.reserved_local_memory_bytes
        assert reserved <= nvidia.local_memory_bytes
        assert nvidia.max_work_group_size <= nvidia.max_warps * nvidia.warp_size
    for amd in AMD_LIMITS.values():
        assert amd.local_memory_per_work_group_bytes <= amd.local_memory_bytes
        assert amd.vector_registers % amd.vector_register_granule == 0
    for intel in INTEL_LIMITS.values():
        assert intel.local_memory_sizes_bytes == tuple(sorted(intel.local_memory_sizes_bytes))
        assert intel.local_memory_sizes_bytes[-1] <= intel.local_memory_bytes
    every: list[DeviceLimits] = [
        *NVIDIA_LIMITS.values(),
        *AMD_LIMITS.values(),
        *INTEL_LIMITS.values(),
    ]
    assert all(limits.source for limits in every)
    assert len({limits.name for limits in every}) == len(every)
