from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.features.tracing import make_tracing_kernel
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.tracing import TraceSettings, trace_in_session
from kernelcast.records.arguments import Access
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.work_group_trace import StepTimes, Timeline, TraceMethod, WorkGroupTrace
from kernelcast.sampling.instrumented import build_marked, list_clocks, trace_box
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.plan import box_near
from kernelcast.sampling.problems import ProblemArguments
from kernelcast.sampling.scratch import ScratchArguments
from kernelcast.sampling.session import DeviceSession
from support.device_queues import read
from support.problems import buffer_of, number_of, write_problem

pytestmark = pytest.mark.device

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = {"nbody": 2048, "matmul_tiled": 512, "triangular": 8192}

# Work-items that return before a barrier must do so all together; PoCL hangs otherwise.
NOSY = """
#define LEAVE return
kernel void k(global float *a, int n)
{
    const int i = get_global_id(0);
    if (STAYS_AWAY) LEAVE;
    for (int j = 0; j < 300; ++j)
        a[i] = a[i] * 0.5f + 1.0f;
    if (get_local_id(0) & 1) { if (ENDS_EARLY) return; else a[i] += 1; }
    a[i] += get_num_groups(0) + get_group_id(0) * get_global_size(0);
    BARRIER;
}
"""
ALONE = {"STAYS_AWAY": "i >= n", "ENDS_EARLY": "i > 70", "BARRIER": ""}
TOGETHER = {
    "STAYS_AWAY": "get_group_id(0) % 2 == n % 2",
    "ENDS_EARLY": "false",
    "BARRIER": "barrier(CLK_LOCAL_MEM_FENCE)",
}


def make_nosy(words: Mapping[str, str]) -> Problem:
    """Make a problem whose kernel returns early and asks for the sizes of the launch."""
    source = NOSY
    for word, meaning in words.items():
        source = source.replace(word, meaning)
    ndrange = NDRange(global_size=(64 * 32,), local_size=(32,), global_offset=(64,))
    problem = write_problem(source, buffer_of("float32", 66 * 32), number_of(2000))
    return replace(problem, ndrange=ndrange)


def check_timeline(trace: WorkGroupTrace) -> None:
    timeline = trace.outcome
    assert isinstance(timeline, Timeline)
    starts, finishes = np.array(timeline.starts_s), np.array(timeline.finishes_s)
    assert starts.min() == 0
    assert (starts <= finishes).all()
    # The device's clock agrees with the launch's own time, but for the launch itself.
    assert finishes.max() <= 1.05 * timeline.launch_s + 1e-3
    assert finishes.max() >= 0.2 * timeline.launch_s - 1e-3
    assert (finishes - starts).sum() <= trace.concurrency * finishes.max() * 1.0001
    assert 0 < timeline.resolution_s < 1e-4
    assert trace.p_sat is not None
    assert 1 <= trace.concurrency <= trace.p_sat * trace.compute_units


@pytest.mark.parametrize("name", SMALL)
def test_every_work_group_is_traced(session: DeviceSession, name: str) -> None:
    """Gives a timeline of all work-groups by a clock, or steps and the reason without one."""
    path = EXAMPLES / name / f"{name}.yaml"
    problem = read_problem(path, parameters={"N": SMALL[name]})
    trace = trace_in_session(session, problem, TraceSettings())
    if not list_clocks(session.description, ()):
        assert isinstance(trace.outcome, StepTimes)
        assert trace.reason == "the device has no clock that kernels can read"
        return
    check_timeline(trace)
    assert trace.method is TraceMethod.CLOCK
    assert trace.work_groups == trace.ndrange.work_group_count


def test_kernels_without_marks_are_timed_in_steps(session: DeviceSession) -> None:
    """Falls back to steps, and says why, where the kernel has a form that cannot be marked."""
    problem = make_nosy(ALONE)
    source = f"kernel void k(global float *a, int n);\n{problem.kernel.source}"
    ahead = replace(problem, kernel=replace(problem.kernel, source=source))
    trace = trace_in_session(session, ahead, TraceSettings())
    assert trace.method is TraceMethod.STEPS
    assert "declares it ahead" in trace.reason


@pytest.mark.parametrize("words", [ALONE, TOGETHER], ids=["alone", "together"])
@pytest.mark.parametrize("work_groups", [7, 64])
def test_the_traced_kernel_computes_the_same(
    session: DeviceSession, words: Mapping[str, str], work_groups: int
) -> None:
    """Leaves the user's buffers as they are, and in the copies what the kernel itself writes."""
    problem = make_nosy(words)
    arguments = ProblemArguments(session, problem, [None, None], seed=3).arguments
    like = np.empty(problem.arguments[0].count, np.float32)
    before = read(session.queue, arguments[0], like)
    copies = ScratchArguments(session.buffers, arguments, [Access.READ_WRITE, None])
    with OpenCLLaunch(session, problem.kernel, problem.ndrange, copies) as launch:
        box = box_near(0, work_groups, launch.ndrange.group_counts)
        marked, reason = build_marked(launch, make_tracing_kernel(problem.kernel), box)
        if marked is None:
            pytest.skip(reason)
        launch.settle()
        launch.time_boxes([box])
        expected = read(session.queue, launch.scratch.arguments[0], like)
        timeline = trace_box(launch, marked, box)
        written = read(session.queue, launch.scratch.arguments[0], like)
    assert len(timeline.starts_s) == work_groups
    np.testing.assert_array_equal(written, expected)
    assert (written != before).any()
    np.testing.assert_array_equal(read(session.queue, arguments[0], like), before)


def test_non_uniform_work_groups_are_traced(session: DeviceSession) -> None:
    """Traces a smaller last work-group where the device has them."""
    has_clock = bool(list_clocks(session.description, ()))
    if not (session.description.has_non_uniform_work_groups and has_clock):
        pytest.skip("the device has no non-uniform work-groups, or no clock")
    source = "kernel void k(global float *a) { a[get_global_id(0)] += 1; }"
    problem = write_problem(source, buffer_of("float32", 1000), items=(1000,))
    problem = replace(problem, kernel=replace(problem.kernel, build_options=("-cl-std=CL3.0",)))
    trace = trace_in_session(session, problem, TraceSettings())
    check_timeline(trace)
    assert trace.work_groups == 16
