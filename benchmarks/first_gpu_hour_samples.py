"""Samples against whole runs, and the write-back of a clean L2 cache, for `first_gpu_hour.py`."""

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.collection.sizes import find_anchor
from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.gpu_sampling import find_active_groups
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.weighing import weigh_run
from kernelcast.models.linear import fit_linear, two_point
from kernelcast.records.arguments import Access, BufferArgument, ElementType
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import sample
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.windows import box_near
from kernelcast.training_data.applications.loading import find_kernels
from kernelcast.training_data.applications.records import CorpusKernel

Add = Callable[[str, object], None]
Part = Callable[[str], AbstractContextManager[None]]

# Streams, stencils, products, borders, uneven work, data-dependent work: what matters first.
SAMPLED = (
    "dense_solve/transpose_padded", "jacobi2d/sweep", "gemm/naive", "fractal/mandelbrot",
    "heat3d/heat_points", "scan/scan_bundles", "transpose/transpose_naive", "gemm/syrk",
    "dot_product/dot_product", "npb_lu/setiv", "reductions/sum_divergent", "cp/cp",
    "dense_solve/rank_one_update", "npb_ft/evolve", "mri_gridding/binning",
    "radix_sort/reorder_data_keys", "sad/calc_16", "image_filters/clahe_map",
    "sorting_networks/merge_global", "reductions/extremes_atomic",
)  # fmt: skip
GOAL_S = 0.05
SHORTEST_S = 0.01
ROUNDS = 3
_MOST_S_PER_KERNEL = 20.0

STREAMS = """
kernel void kc_copy(global const float *from, global float *to)
{ int i = get_global_id(0); to[i] = from[i]; }
kernel void kc_read(global const float *from, global float *to)
{ int i = get_global_id(0); float x = from[i]; if (x == -1.0f) to[0] = x; }
"""
_LOCAL = 256
_LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_MOST_BYTES = 256 << 20


def measure_sampling(session: DeviceSession, add: Add, part: Part) -> None:
    """Sample each kernel as the product does, as on a CPU and as the paper does, and run it."""
    for name in SAMPLED:
        with part(name):
            [kernel] = find_kernels(name)
            problem = _choose_problem(session, kernel)
            add(name, _compare(session, problem))


def _choose_problem(session: DeviceSession, kernel: CorpusKernel) -> Problem:
    """Find a size at which the kernel takes about the goal."""
    folder = Path(tempfile.gettempdir()) / "kernelcast-first-hour"
    size = kernel.size
    ends_s = time.monotonic() + _MOST_S_PER_KERNEL

    def make(value: int) -> Problem:
        return prepare_launch(
            kernel, {size.parameter: value}, local_size=kernel.local_sizes[0], cache_folder=folder
        ).problem

    def run(value: int) -> float:
        if time.monotonic() > ends_s:
            return GOAL_S  # good enough: the time is over
        with prepared_launch(session, make(value), OpenCLLaunch, seed=0) as launch:
            launch.time_whole()
            return launch.time_whole()

    value, _ = find_anchor(size, size.least, GOAL_S, run)
    return make(value)


def _compare(session: DeviceSession, problem: Problem) -> dict[str, Any]:
    kernel, arguments = problem.kernel, problem.arguments
    found: dict[str, Any] = {"global_size": problem.ndrange.global_size, "rounds": []}
    for round_ in range(ROUNDS):
        with prepared_launch(session, problem, OpenCLLaunch, seed=0) as launch:
            total = launch.ndrange.work_group_count
            found |= {"work_groups": total, "concurrency": launch.saturation.concurrency}
            one: dict[str, Any] = {}
            settings = EstimateSettings(plan=SamplingPlan(seed=round_), seed=round_)
            estimate = sample_launch(launch, kernel, settings, arguments=arguments)
            one["product_s"] = estimate.fit.seconds
            one["product_launches"] = [_list_launches(run.launches) for run in estimate.runs]
            plan = SamplingPlan(seed=round_)
            plain = weigh_run(sample(launch, plan), kernel, arguments)
            one["plain_s"] = fit_linear(plain).seconds
            one["plain_launches"] = _list_launches(plain.launches)
            one["first_s"], one["first_launches_s"] = _sample_first(launch)
            one["whole_s"] = [launch.time_whole() for _ in range(2)]
            found["active"] = find_active_groups(kernel, launch.ndrange, arguments)
        found["rounds"].append(one)
        if max(one["whole_s"]) * 20 > _MOST_S_PER_KERNEL:
            break
    return found


def _list_launches(launches: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - timed launches
    return [(one.box.start, one.box.shape, one.window, one.duration_s) for one in launches]


def _sample_first(launch: OpenCLLaunch) -> tuple[float, list[float]]:
    """Sample the first work-groups at 2 and 3 times P_sat, as the paper does."""
    counts, total = launch.ndrange.group_counts, launch.ndrange.work_group_count
    unit = min(launch.saturation.concurrency, max(1, total // 3))
    boxes = [box_near(0, multiple * unit, counts) for multiple in (2, 3)]
    times = []
    for box in boxes:
        launch.settle()
        times += launch.time_boxes([box])
    sizes = [box.work_group_count for box in boxes]
    if sizes[0] == sizes[1]:
        return times[1] / sizes[1] * total, times
    return two_point(times[0], times[1], sizes[0], sizes[1], total), times


def measure_write_back(session: DeviceSession, add: Add, part: Part) -> None:
    """Time ladders of a copy after reads, which leave L2 clean, and after stores."""
    bytes_ = min(_MOST_BYTES, session.description.max_allocation_bytes // 2)
    count = bytes_ // 4 // _LOCAL * _LOCAL
    buffers = tuple(
        BufferArgument(element=ElementType.parse("float32"), count=count, access=access)
        for access in (Access.READ, Access.WRITE)
    )
    problems = {
        name: Problem(
            name=name,
            kernel=Kernel(name=name, source=STREAMS),
            ndrange=NDRange(global_size=(count,), local_size=(_LOCAL,)),
            arguments=buffers,
        )
        for name in ("kc_copy", "kc_read")
    }
    with (
        part("ladders"),
        prepared_launch(session, problems["kc_copy"], OpenCLLaunch, seed=0) as copy,
        prepared_launch(session, problems["kc_read"], OpenCLLaunch, seed=1) as read,
    ):
        unit, total = copy.saturation.concurrency, copy.ndrange.work_group_count
        half = box_near(total // 2, total // 2, (total,))
        add("facts", {"unit": unit, "work_groups": total, "local_size": _LOCAL})
        for name, before in (("after reads", read), ("after stores", copy)):
            rows = []
            for multiple in _LADDER:
                if multiple * unit > total // 2:
                    break
                box = box_near(0, multiple * unit, (total,))
                times = []
                for _ in range(ROUNDS):
                    before.time_boxes([half])
                    times += copy.time_boxes([box])
                rows.append((multiple, times))
            add(name, rows)
        add("whole_s", {"copy": [copy.time_whole() for _ in range(ROUNDS)],
                        "read": [read.time_whole() for _ in range(ROUNDS)]})  # fmt: skip
