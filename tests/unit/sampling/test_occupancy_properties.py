from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import DeviceLimitError, InputError
from kernelcast.sampling.occupancy import (
    DeviceLimits,
    KernelResources,
    Limiter,
    OccupancyResult,
    compute_p_sat,
)
from kernelcast.sampling.occupancy.amd import AMD_LIMITS
from kernelcast.sampling.occupancy.intel_gpu import INTEL_LIMITS
from kernelcast.sampling.occupancy.nvidia import NVIDIA_LIMITS

LIMITS = st.sampled_from([*NVIDIA_LIMITS.values(), *AMD_LIMITS.values(), *INTEL_LIMITS.values()])
REGISTERS = st.integers(0, 512)
LOCAL_BYTES = st.integers(0, 256 * 1024)
RESOURCES = st.builds(
    KernelResources,
    work_group_size=st.integers(1, 1024),
    registers_per_work_item=st.none() | st.integers(0, 128),
    local_memory_bytes=st.integers(0, 32 * 1024),
    scalar_registers_per_sub_group=st.none() | st.integers(0, 104),
    uses_barriers=st.none() | st.booleans(),
)


def count(limits: DeviceLimits, resources: KernelResources) -> int:
    """Work-groups active at once, 0 where not even one fits."""
    try:
        return compute_p_sat(limits, resources).p_sat
    except DeviceLimitError:
        return 0


@given(limits=LIMITS, resources=RESOURCES, registers=st.tuples(REGISTERS, REGISTERS))
def test_more_registers_never_raise_p_sat(
    limits: DeviceLimits, resources: KernelResources, registers: tuple[int, int]
) -> None:
    """Never fits more work-groups when a work-item takes more registers."""
    few, many = sorted(registers)
    with_few = count(limits, replace(resources, registers_per_work_item=few))
    assert count(limits, replace(resources, registers_per_work_item=many)) <= with_few
    assert with_few <= count(limits, replace(resources, registers_per_work_item=None))


@given(limits=LIMITS, resources=RESOURCES, local_bytes=st.tuples(LOCAL_BYTES, LOCAL_BYTES))
def test_more_local_memory_never_raises_p_sat(
    limits: DeviceLimits, resources: KernelResources, local_bytes: tuple[int, int]
) -> None:
    """Never fits more work-groups when each takes more local memory."""
    few, many = sorted(local_bytes)
    with_few = count(limits, replace(resources, local_memory_bytes=few))
    assert count(limits, replace(resources, local_memory_bytes=many)) <= with_few


@given(limits=LIMITS, resources=RESOURCES)
def test_answers_or_says_why_not(limits: DeviceLimits, resources: KernelResources) -> None:
    """Gives at least one work-group and an occupancy in (0, 1], or names the device and why."""
    if count(limits, resources) == 0:
        with pytest.raises(DeviceLimitError, match=f"^{limits.name}: .*; "):
            compute_p_sat(limits, resources)
        return
    result = compute_p_sat(limits, resources)
    assert result.p_sat >= 1
    assert 0.0 < result.occupancy <= 1.0
    unknown = resources.registers_per_work_item is None
    assert ("registers_per_work_item" in result.assumed) == unknown


@pytest.mark.parametrize(
    "demand",
    [
        {"work_group_size": 0},
        {"work_group_size": 1, "registers_per_work_item": -1},
        {"work_group_size": 1, "local_memory_bytes": -1},
        {"work_group_size": 1, "sub_group_size": 0},
        {"work_group_size": 1, "scalar_registers_per_sub_group": -1},
    ],
)
def test_refuses_impossible_resources(demand: dict[str, Any]) -> None:
    """Refuses numbers that no kernel can ask for."""
    with pytest.raises(InputError, match="give a number of at least"):
        KernelResources(**demand)


@pytest.mark.parametrize(("p_sat", "occupancy"), [(0, 0.5), (1, 0.0), (1, 1.01)])
def test_refuses_impossible_results(p_sat: int, occupancy: float) -> None:
    """Refuses a result without active work-groups or with more warps than there are."""
    with pytest.raises(InputError, match="occupancy: "):
        OccupancyResult(p_sat=p_sat, limiter=Limiter.WARPS, occupancy=occupancy)
