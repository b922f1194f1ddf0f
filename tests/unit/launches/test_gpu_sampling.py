from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.launches import weighing
from kernelcast.launches.estimation import estimate_runs, sample_launch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling import model_launch
from kernelcast.launches.recordings import read_recordings, write_recordings
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.weighing import (
    find_active_groups,
    find_least_rate,
    read_least_rate,
)
from kernelcast.predictor.answering.measuring import record
from kernelcast.records.arguments import BufferArgument, ElementType, ScalarArgument
from kernelcast.records.device import DeviceKind
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.plan import SamplingPlan
from support.fakes import Cost, SyntheticLaunch

INTEGER, FLOAT = ElementType.parse("int32"), ElementType.parse("float32")
STENCIL = """kernel void star(global const float *a, global float *b, int w, int d) {
  int x = get_global_id(0), z = get_global_id(1);
  if (z < 40 || z >= d - 40) return;
  b[z * w + x] = a[(z - 40) * w + x] + a[(z + 40) * w + x]; }"""
COPY = """kernel void copy(global const float *a, global float *b) {
  int i = get_global_id(0);
  b[i] = a[i]; }"""
WIDTH, DEPTH = 128, 800


def make_stencil() -> Problem:
    """Make a stencil whose first and last 40 rows do nothing."""
    buffer = BufferArgument(element=FLOAT, count=WIDTH * DEPTH)
    sizes = [ScalarArgument(element=INTEGER, values=(one,)) for one in (WIDTH, DEPTH)]
    return Problem(
        name="star",
        kernel=Kernel(name="star", source=STENCIL),
        ndrange=NDRange(global_size=(WIDTH, DEPTH), local_size=(32, 1)),
        arguments=(buffer, buffer, *sizes),
    )


class GpuLaunch(SyntheticLaunch):
    """A launch on a GPU that holds 32 work-groups at once."""

    def __init__(self, ndrange: NDRange, cost: Cost, launch_overhead_s: float = 2e-6) -> None:
        super().__init__(ndrange, cost, launch_overhead_s=launch_overhead_s)
        self.device = replace(self.device, kind=DeviceKind.GPU)
        self.saturation = replace(self.saturation, concurrency=32)
        self.asked_together: list[int] = []

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Note how many boxes run right behind each other."""
        self.asked_together.append(len(boxes))
        return super().time_boxes(boxes)


def test_borders_are_neither_sampled_nor_counted() -> None:
    """Estimates a stencil whose borders take no time, from warmed windows inside of them."""
    problem = make_stencil()
    active = find_active_groups(problem.kernel, problem.ndrange, problem.arguments)
    assert active == GroupBox(start=(0, 40), shape=(4, 720))

    def cost(at: tuple[np.ndarray, ...]) -> np.ndarray:
        return np.where((at[1] >= 40) & (at[1] < DEPTH - 40), 1e-5, 0.0) + 0.0 * at[0]

    launch = GpuLaunch(problem.ndrange, cost)
    sampled = sample_launch(
        launch, problem.kernel, EstimateSettings(), arguments=problem.arguments, wait=lambda _: None
    )
    assert sampled.estimate.seconds == pytest.approx(4 * 720 * 1e-5, rel=0.05)
    assert set(launch.asked_together) == {2}
    # Warm-ups and the one launch that compiles are a part of what was asked for.
    asked = sum(one.work_group_count for one in launch.asked)
    assert sampled.estimate.sampling_seconds == pytest.approx((asked - 1) * 1e-5, rel=0.1)


def test_nobody_waits_for_a_moment_that_is_not_taken() -> None:
    """Concludes at once where the budget has no room for another pair."""
    problem = make_stencil()
    waits: list[float] = []
    launch = GpuLaunch(problem.ndrange, lambda at: 1e-5 + 0.0 * at[0])
    sampled = sample_launch(
        launch, problem.kernel, EstimateSettings(), arguments=problem.arguments, wait=waits.append
    )
    assert (len(sampled.runs), waits) == (1, [])


def make_copy(count: int) -> Problem:
    """Make a copy of so many numbers."""
    buffer = BufferArgument(element=FLOAT, count=count)
    return Problem(
        name="copy",
        kernel=Kernel(name="copy", source=COPY),
        ndrange=NDRange(global_size=(count,), local_size=(256,)),
        arguments=(buffer, buffer),
    )


def test_a_copy_is_no_faster_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lifts a line that saw no write-backs to what DRAM needs for loads and stores."""
    count = 1 << 22
    problem = make_copy(count)
    machine = find_machine("v100")
    memory = machine.memory("global")
    assert memory is not None
    assert memory.copy_bytes_per_s is not None
    least_s = 8 * count / memory.copy_bytes_per_s.value
    rate = find_least_rate(model_launch(problem), machine)
    assert rate * count / 256 == pytest.approx(least_s, rel=0.05)
    monkeypatch.setattr(weighing, "find_own_machine", lambda _: machine)
    for rate_s in (0.25 * rate, 4 * rate):
        launch = GpuLaunch(problem.ndrange, lambda at, rate_s=rate_s: rate_s + 0.0 * at[0], 0.0)
        settings = EstimateSettings(plan=SamplingPlan(min_launch_s=1e-8))  # it takes microseconds
        sampled = sample_launch(
            launch, problem.kernel, settings, arguments=problem.arguments, wait=lambda _: None
        )
        assert sampled.estimate.seconds == pytest.approx(
            max(least_s, rate_s * count / 256), rel=0.05
        )
        is_lifted = any("L2 cache" in one for one in sampled.estimate.warnings)
        assert is_lifted == (rate_s < rate)
        file = tmp_path / "samples.json"
        write_recordings(file, [record(launch, "copy", sampled.runs)])
        [again] = read_recordings(file)
        replayed = estimate_runs(again, "copy", again.runs, sampled.estimate.coverage)
        assert replayed.estimate.interval == sampled.estimate.interval


def test_what_fits_into_the_cache_is_not_written_back() -> None:
    """Leaves the line of a launch as it is whose buffers the L2 cache holds."""
    assert find_least_rate(model_launch(make_copy(1 << 16)), find_machine("v100")) == 0


def test_a_machine_that_was_not_calibrated_lifts_nothing() -> None:
    """Samples a launch on a GPU of which no description is known by its line alone."""
    problem = make_copy(1 << 22)
    launch = GpuLaunch(problem.ndrange, lambda at: 1e-9 + 0.0 * at[0], 0.0)
    assert read_least_rate(launch, problem.kernel, problem.arguments) == 0


def test_a_gpu_of_a_shipped_chip_is_bounded_without_calibration() -> None:
    """Takes DRAM's rate from the description of an A100, which the device's name tells."""
    problem = make_copy(1 << 22)
    launch = GpuLaunch(problem.ndrange, lambda at: 1e-9 + 0.0 * at[0], 0.0)
    launch.device = replace(
        launch.device, id="nvidia-a100-sxm4-40gb-0a1b", name="NVIDIA A100-SXM4-40GB",
        compute_units=108,
    )  # fmt: skip
    found = read_least_rate(launch, problem.kernel, problem.arguments)
    assert found == find_least_rate(model_launch(problem), find_machine("a100")) > 0
