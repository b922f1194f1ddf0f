"""Ready-made records for tests that do not care about most of their fields."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.estimates import Estimate, Interval, Tier
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import SampleRun, TimedLaunch


def make_description(*, compute_units: int = 2) -> DeviceDescription:
    """Describe a device that does not exist."""
    return DeviceDescription(
        id="fake-device-0000",
        name="Fake device",
        platform="Fake",
        vendor="kernelcast",
        driver="1",
        opencl_version="OpenCL 3.0 fake",
        kind=DeviceKind.CPU,
        compute_units=compute_units,
        local_memory_bytes=2**15,
        global_memory_bytes=2**30,
        max_allocation_bytes=2**28,
        max_work_group_size=1024,
        max_work_item_sizes=(1024, 1024, 1024),
        extensions=("cl_khr_fp64",),
        has_non_uniform_work_groups=True,
        has_fp64=True,
    )


def make_sample_run(
    samples: Sequence[tuple[int, int, float]],
    *,
    work_groups: int,
    launch_overhead_s: float = 1e-6,
    is_even: bool = True,
) -> SampleRun:
    """Make a one-dimensional run from the window, work-groups and seconds of each launch."""
    launches, start = [], 0
    for window, count, duration_s in samples:
        box = GroupBox(start=(start,), shape=(count,))
        launches.append(TimedLaunch(box=box, window=window, duration_s=duration_s))
        start += count
    return SampleRun(
        ndrange=NDRange(global_size=(8 * work_groups,), local_size=(8,)),
        launches=tuple(launches),
        launch_overhead_s=launch_overhead_s,
        is_even=is_even,
    )


def make_estimate(seconds: float = 1.0, **changes: Any) -> Estimate:  # noqa: ANN401 - fields
    """Make an estimate by samples, within a tenth, of a launch on a device that does not exist."""
    estimate = Estimate(
        device="Fake device", device_id="fake-device-0000", kernel="k",
        ndrange=NDRange(global_size=(64,), local_size=(64,)), compute_units=2, saturation=None,
        sample_work_groups=(2, 3), sampled_work_groups=5,
        interval=Interval(seconds=seconds, low=0.9 * seconds, high=1.1 * seconds, coverage=0.9),
        tier=Tier.LINEAR, estimates_s={"linear": seconds}, sampling_seconds=0.0,
        overhead_seconds=0.0,
    )  # fmt: skip
    return replace(estimate, **changes)
