import numpy as np
import pytest

from kernelcast.launches.gpu_sampling import (
    correct_for_write_back,
    find_active_groups,
    find_write_back,
    sample_on_gpu,
)
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling import model_launch
from kernelcast.models.linear import fit_linear
from kernelcast.records.arguments import BufferArgument, ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.testing.fakes import SyntheticLaunch

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


def test_borders_are_neither_sampled_nor_counted() -> None:
    """Estimates a stencil whose borders take no time, from windows inside of them."""
    problem = make_stencil()
    active = find_active_groups(problem.kernel, problem.ndrange, problem.arguments)
    assert active == GroupBox(start=(0, 40), shape=(4, 720))

    def cost(at: tuple[np.ndarray, ...]) -> np.ndarray:
        return np.where((at[1] >= 40) & (at[1] < DEPTH - 40), 1e-5, 0.0) + 0.0 * at[0]

    launch = SyntheticLaunch(problem.ndrange, cost)
    run = sample_on_gpu(launch, SamplingPlan(budget=0.05), problem.kernel, problem.arguments)
    assert fit_linear(run).seconds == pytest.approx(4 * 720 * 1e-5, rel=0.05)


def test_a_copy_is_no_faster_than_memory() -> None:
    """Lifts a line that saw no write-backs to what DRAM needs for loads and stores."""
    count = 1 << 22
    buffer = BufferArgument(element=FLOAT, count=count)
    problem = Problem(
        name="copy",
        kernel=Kernel(name="copy", source=COPY),
        ndrange=NDRange(global_size=(count,), local_size=(256,)),
        arguments=(buffer, buffer),
    )
    machine = find_machine("v100")
    found = find_write_back(model_launch(problem), machine)
    assert found is not None
    volumes, roof = found
    assert volumes.loaded_bytes == pytest.approx(1024)
    assert volumes.stored_bytes == pytest.approx(1024)
    least_s = 8 * count / roof.copy_bytes_per_s
    for rate_s in (0.25 * least_s * 256 / count, 4 * least_s * 256 / count):
        launch = SyntheticLaunch(
            problem.ndrange, lambda at, rate_s=rate_s: rate_s + 0.0 * at[0], launch_overhead_s=0.0
        )
        plan = SamplingPlan(min_launch_s=1e-8)  # the copy takes microseconds
        run = sample_on_gpu(launch, plan, problem.kernel, problem.arguments)
        seconds = correct_for_write_back(fit_linear(run), count // 256, volumes, roof)
        assert seconds == pytest.approx(max(least_s, rate_s * count / 256), rel=0.05)
