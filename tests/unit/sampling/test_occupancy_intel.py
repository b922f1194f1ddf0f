from typing import Any

import pytest

from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.occupancy import KernelResources, Limiter, OccupancyResult, compute_p_sat
from kernelcast.sampling.occupancy.intel_gpu import INTEL_LIMITS

KIB = 1024


def compute(name: str, size: int, demand: dict[str, Any] | None = None) -> OccupancyResult:
    """P_sat of one launch on one architecture."""
    return compute_p_sat(
        INTEL_LIMITS[name], KernelResources(work_group_size=size, **(demand or {}))
    )


@pytest.mark.parametrize(
    ("name", "threads"),
    [("Gen9", 56), ("Gen11", 56), ("Xe-LP", 112), ("Xe-HPG", 128), ("Xe-HPC", 64)],
)
def test_threads_per_unit(name: str, threads: int) -> None:
    """Holds the EU threads that Intel's calculator lists."""
    assert INTEL_LIMITS[name].max_threads == threads


@pytest.mark.parametrize(
    ("name", "size", "demand", "p_sat", "limiter"),
    [
        # 16 of 56 threads each
        ("Gen9", 256, {"sub_group_size": 16}, 3, Limiter.WARPS),
        ("Xe-LP", 512, {"sub_group_size": 32}, 7, Limiter.WARPS),
        (
            "Xe-LP",
            64,
            {"sub_group_size": 16, "local_memory_bytes": 32 * KIB},
            2,
            Limiter.LOCAL_MEMORY,
        ),
        # 33 KiB is rounded up to 64 of 128 KiB
        (
            "Xe-HPG",
            64,
            {"sub_group_size": 16, "local_memory_bytes": 33 * KIB},
            2,
            Limiter.LOCAL_MEMORY,
        ),
        ("Xe-HPC", 1024, {"sub_group_size": 32}, 2, Limiter.WARPS),
        # large registers: 200 * 16 * 4 = 12,800 of 8,192 bytes halves the 64 threads
        (
            "Xe-HPC",
            256,
            {"sub_group_size": 16, "registers_per_work_item": 200},
            2,
            Limiter.REGISTERS,
        ),
        # Gen9 has no large registers: the same kernel spills
        ("Gen9", 256, {"sub_group_size": 16, "registers_per_work_item": 200}, 3, Limiter.WARPS),
        ("Xe-HPG", 32, {"sub_group_size": 32, "uses_barriers": True}, 32, Limiter.WORK_GROUPS),
        ("Xe-HPG", 32, {"sub_group_size": 32, "uses_barriers": False}, 128, Limiter.WORK_GROUPS),
    ],
)
def test_known_cases(
    name: str, size: int, demand: dict[str, Any], p_sat: int, limiter: Limiter
) -> None:
    """Gives the numbers that follow by hand from the limits of Intel's calculator."""
    result = compute(name, size, demand)
    assert (result.p_sat, result.limiter) == (p_sat, limiter)


def test_barriers_are_named_only_where_they_could_limit() -> None:
    """Names unknown barriers when more work-groups fit than there are barriers, else not."""
    assert "uses_barriers" in compute("Xe-HPG", 16).assumed
    assert "uses_barriers" not in compute("Xe-HPG", 256).assumed


def test_eus_are_opencl_compute_units() -> None:
    """Counts a device's active work-groups per Xe-core although OpenCL reports EUs."""
    result = compute("Xe-HPG", 256, {"sub_group_size": 16})
    assert result.p_sat == 8
    assert result.count_active_work_groups(512) == 32 * 8


@pytest.mark.parametrize(
    ("name", "size", "demand", "message"),
    [
        ("Gen9", 512, {}, "work-group size is 512, the device allows 256"),
        ("Gen9", 64, {"local_memory_bytes": 65 * KIB}, "is 66560, the device allows 65536"),
        ("Xe-HPC", 64, {"sub_group_size": 8}, "sub-group size 8 given"),
        (
            "Xe-HPC",
            1024,
            {"sub_group_size": 16, "registers_per_work_item": 200},
            "limited by registers",
        ),
    ],
)
def test_refuses_what_never_fits(
    name: str, size: int, demand: dict[str, Any], message: str
) -> None:
    """Refuses a work-group that an empty unit cannot hold, with the numbers."""
    with pytest.raises(DeviceLimitError, match=message):
        compute(name, size, demand)
