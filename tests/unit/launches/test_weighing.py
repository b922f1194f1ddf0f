from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.analytic.gpu.machine import read_machine as read_gpu
from kernelcast.features.counting.work_profile import WorkProfile
from kernelcast.launches import weighing
from kernelcast.launches.estimation import estimate_runs, sample_launch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.recordings import read_recordings, write_recordings
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.weighing import (
    apply_profile,
    find_active_groups,
    find_least_rate,
    plan_by_source,
    sample_by_source,
    weigh_run,
)
from kernelcast.models.linear import fit_linear
from kernelcast.predictor.answering.measuring import record
from kernelcast.records.arguments import (
    Argument,
    BufferArgument,
    ElementType,
    HeldBuffer,
    Init,
    LocalArgument,
)
from kernelcast.records.device import DeviceKind
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch
from kernelcast.sampling.plan import SamplingPlan
from support.fakes import Cost, SyntheticLaunch
from support.problems import buffer_of, number_of, write_problem

PROFILE = WorkProfile(
    weights=(), weights_in_step=(), spread=1.0, typical=(), typical_weight=1.0, is_exact=True
)


def make_kernel(guard: str, bound: str) -> Kernel:
    """Make a kernel whose work-items add as many numbers as `bound` says, unless they return."""
    source = f"""kernel void f(global float *a, int n) {{
      const int row = get_global_id(0);
      {guard}
      for (int j = 0; j < {bound}; ++j) a[n + row] += a[j]; }}"""
    return Kernel(name="f", source=source)


KERNEL = make_kernel("", "row")
LATE = make_kernel("if (row < n / 4 * 3) return;", "n")
HALF = make_kernel("if (get_group_id(0) >= 500) return;", "n")
GROUPS, LOCAL = 1000, 64
SPACE = NDRange(global_size=(GROUPS * LOCAL,), local_size=(LOCAL,))
ARGUMENTS = (LocalArgument(bytes=0), number_of(GROUPS * LOCAL))
OVERHEAD_S = 1e-6


def ask(kernel: Kernel = KERNEL, *arguments: Argument) -> Problem:
    return Problem(name="f", kernel=kernel, ndrange=SPACE, arguments=arguments or ARGUMENTS)


def cost(group: int) -> float:
    return 1e-9 * LOCAL * (group * LOCAL + LOCAL / 2)


TOTAL_S = sum(map(cost, range(GROUPS)))


def make_run(starts: list[int], cost_of: object = cost, *, is_even: bool = False) -> SampleRun:
    launches = tuple(
        TimedLaunch(
            box=GroupBox(start=(start,), shape=(5,)),
            window=window,
            duration_s=OVERHEAD_S + sum(cost_of(start + one) for one in range(5)),
        )
        for window, start in enumerate(starts)
    )
    return SampleRun(
        ndrange=SPACE,
        launches=launches,
        launch_overhead_s=OVERHEAD_S,
        is_even=is_even,
    )


SPARSE = """kernel void f(global const int *begin, global const float *value, global float *out) {
  const int row = get_global_id(0);
  for (int k = begin[row]; k < begin[row + 1]; ++k) out[row] += value[k]; }"""
ROWS = Kernel(name="f", source=SPARSE)


def write_rows(path: Path) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Write where rows begin; long ones come in bunches, as in real matrices."""
    rng = np.random.default_rng(3)
    bunches = np.repeat(rng.pareto(1.5, GROUPS // 10) + 0.2, 10 * LOCAL)
    begin = np.concatenate([[0], np.cumsum(rng.poisson(20 * bunches))]).astype(np.int32)
    np.save(path, begin)
    return begin


def point_to(path: Path, count: int) -> BufferArgument:
    return BufferArgument(element=ElementType("int32"), count=count, init=Init.FILE, path=path)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("has_stripe", [False, True])
def test_a_file_of_row_pointers_tells_the_work(
    seed: int, tmp_path: Path, *, has_stripe: bool
) -> None:
    """Rows of a sparse matrix are weighed by their lengths, wherever samples hit; a stripe of long
    rows is found, for what short rows take does not tell what they take."""
    begin = write_rows(tmp_path / "begin.npy")
    if has_stripe:
        lengths = np.zeros(GROUPS * LOCAL, dtype=np.int64)
        lengths[600 * LOCAL : 650 * LOCAL] = 400
        begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        np.save(tmp_path / "begin.npy", begin)
    rows = np.diff(begin[::LOCAL])
    step_s = 8e-9 if has_stripe else 1e-9
    launch = SyntheticLaunch(SPACE, lambda at: 1e-8 + step_s * rows[at[0]])
    buffer = buffer_of("float32", int(begin[-1]))
    pointers = point_to(tmp_path / "begin.npy", len(begin))
    run = sample_by_source(launch, SamplingPlan(seed=seed), ask(ROWS, pointers, buffer, buffer))
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=0.2 if has_stripe else 0.12)
    assert has_stripe or len({one.weight for one in run.launches}) >= 3
    assert not has_stripe or run.sampling_s < 0.6 * launch.true_s


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kernel", [KERNEL, HALF, LATE])
def test_uneven_work_that_the_source_tells_is_predicted_like_even_work(
    kernel: Kernel, seed: int
) -> None:
    """Typical places alone are sampled: as few launches as for even work, and no bad luck."""
    costs = {
        KERNEL: lambda at: 4e-7 * at[0],
        HALF: lambda at: 4e-4 * (at[0] < GROUPS // 2),
        LATE: lambda at: 4e-4 * (at[0] >= GROUPS // 4 * 3),
    }
    launch = SyntheticLaunch(SPACE, costs[kernel])
    run = sample_by_source(launch, SamplingPlan(seed=seed), ask(kernel))
    assert run.is_even
    assert len(run.launches) < 12
    assert run.sampling_s < 0.09 * launch.true_s
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=0.06)


def test_samples_have_the_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work-groups that take the same time whatever they execute are not weighed, nor any where the
    source or a file cannot be read: weights are a help. A pilot that is off contradicts none."""
    even = make_run([20, 300, 600, 900], lambda _: 1e-4, is_even=True)
    assert weigh_run(even, ask()) is even
    run = make_run([20, 300, 600, 900])
    pilot = replace(run.launches[0], window=PILOT_WINDOW, duration_s=1.0)
    weighed = weigh_run(replace(run, launches=(pilot, *run.launches)), ask())
    assert weighed.launches[-1].weight > 1.5
    pointers = (point_to(tmp_path / "none.npy", 10),)
    plan = SamplingPlan()
    assert plan_by_source(plan, ask(ROWS, *pointers)) is plan
    for problem in (ask(ROWS, *pointers), ask(Kernel(name="f", source="kernel void f( {"))):
        assert weigh_run(run, problem) is run
    monkeypatch.setattr(weighing, "profile_work", lambda *_: 1 / 0)
    assert weigh_run(run, ask()) is run


@pytest.mark.parametrize("factor", [1, 30])
@pytest.mark.parametrize("heavy_starts", [[600, 700, 800], [640, 690]])
def test_what_heavy_work_costs_is_learned_from_samples(
    factor: int, heavy_starts: list[int]
) -> None:
    """The source counts 20 to 1 where it is thirty times more: a call may count as one of many."""
    light_s, counted = 1e-6, 20.0
    is_heavy = range(600, 900)

    def cost_of(group: int) -> float:
        return light_s * counted * factor if group in is_heavy else light_s

    starts = [50, 150, 250, 950, *heavy_starts]
    mean = (counted * len(is_heavy) + GROUPS - len(is_heavy)) / GROUPS
    weights = tuple((counted if start in is_heavy else 1.0) / mean for start in starts)
    profile = replace(PROFILE, weights=weights)
    run = apply_profile(make_run(starts, cost_of), profile)
    total_s = sum(map(cost_of, range(GROUPS)))
    assert fit_linear(run).seconds == pytest.approx(total_s, rel=0.15)
    ratio = run.launches[-1].weight / run.launches[0].weight
    assert ratio == pytest.approx(counted, rel=0.25) if factor == 1 else ratio > 5 * counted


@pytest.mark.parametrize("is_in_step", [True, False])
def test_samples_tell_whether_work_items_run_in_step(*, is_in_step: bool) -> None:
    """Weights of work-items in step are taken where samples agree better with them."""
    alone, in_step = (1.0, 1.1, 0.9, 1.05), (0.5, 2.0, 1.0, 1.5)
    starts = [100, 300, 500, 700]
    true = dict(zip(starts, in_step if is_in_step else alone, strict=True))
    run = make_run(starts, lambda group: 1e-4 * true[group // 100 * 100])
    profile = replace(PROFILE, weights=alone, weights_in_step=(in_step, in_step))
    weighed = apply_profile(run, profile)
    assert [one.weight for one in weighed.launches] == pytest.approx(
        in_step if is_in_step else alone, rel=0.05
    )
    assert fit_linear(weighed).seconds == pytest.approx(1e-4 * GROUPS, rel=0.05)


def test_launches_that_are_mostly_overhead_are_no_evidence() -> None:
    """Light work-groups that vanish in the cost of a launch do not contradict their weights."""
    light, *heavy = make_run([10, 600, 700, 800]).launches
    least_s = heavy[0].duration_s
    light = replace(light, duration_s=0.7 * least_s)
    run = replace(make_run([10]), launches=(light, *heavy), launch_overhead_s=0.4 * least_s)
    assert weigh_run(run, ask()).launches[-1].weight > 1.5
    assert weigh_run(replace(run, launch_overhead_s=0.2 * least_s), ask()).launches == (
        run.launches
    )


def test_buffers_at_hand_tell_as_files_do(tmp_path: Path) -> None:
    """A buffer is read only where its content is asked for, whatever type it comes as."""
    begin = write_rows(tmp_path / "begin.npy")
    asked: list[str] = []

    def read() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        asked.append("begin")
        return begin.view(np.uint8)

    int32, float32 = ElementType("int32"), ElementType("float32")
    at_hand = (
        HeldBuffer(element=int32, count=len(begin), read=read),
        HeldBuffer(element=float32, count=1),
        HeldBuffer(element=float32, count=1),
    )
    run = make_run([20, 300, 600, 900], lambda group: 1e-9 * float(np.diff(begin[::LOCAL])[group]))
    held = weigh_run(run, ask(ROWS, *at_hand))
    pointers = point_to(tmp_path / "begin.npy", len(begin))
    assert held == weigh_run(run, ask(ROWS, pointers))
    assert held.launches[0].weight != 1
    assert asked == ["begin"]


@pytest.mark.parametrize(
    ("body", "is_known", "has_places"),
    [
        ("float s = 0; for (int k = 0; k < n / 1000; k++) s += a[k]; a[i] = s;", True, False),
        ("if (i < n) a[i] = 0;", True, False),
        ("if (a[i] > 0) a[i] = sqrt(a[i]) / exp(a[i]);", False, False),
        ("while (a[i] < 1) a[i] *= 2;", False, False),
        ("for (int k = 0; k < i; k++) a[i] += a[k];", True, True),
        ("if (get_group_id(0) < 99) for (int k = 0; k < 99; k++) a[i] += 1 / a[k];", True, True),
    ],
)
def test_work_is_known_to_be_even_where_the_source_proves_it(
    body: str, *, is_known: bool, has_places: bool
) -> None:
    """Data that decide what is done prove nothing; places that do the mean work are chosen, and
    what they do beyond it comes off the budget."""
    source = f"kernel void f(global float *a, int n) {{ int i = get_global_id(0); {body} }}"
    plan = plan_by_source(SamplingPlan(seed=3), ask(Kernel(name="f", source=source)))
    assert plan.is_known_even == is_known
    assert (len(plan.places) >= 16) == has_places
    assert 0.1 * SamplingPlan().budget < plan.budget < 1.1 * SamplingPlan().budget


STENCIL = """kernel void star(global const float *a, global float *b, int w, int d) {
  int x = get_global_id(0), z = get_global_id(1);
  if (z < 40 || z >= d - 40) return;
  b[z * w + x] = a[(z - 40) * w + x] + a[(z + 40) * w + x]; }"""
COPY = """kernel void copy(global const float *a, global float *b) {
  int i = get_global_id(0);
  b[i] = a[i]; }"""
WIDTH, DEPTH = 128, 800


class GpuLaunch(SyntheticLaunch):
    """A launch on a GPU that holds 32 work-groups at once."""

    def __init__(self, ndrange: NDRange, cost: Cost | float, overhead_s: float = 2e-6) -> None:
        super().__init__(ndrange, cost, launch_overhead_s=overhead_s)
        self.device = replace(self.device, kind=DeviceKind.GPU)
        self.saturation = replace(self.saturation, concurrency=32)
        self.asked_together: list[int] = []

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        self.asked_together.append(len(boxes))
        return super().time_boxes(boxes)


def test_borders_are_neither_sampled_nor_counted() -> None:
    """Estimates a stencil whose borders take no time, from warmed windows inside of them."""
    buffer = buffer_of("float32", WIDTH * DEPTH)
    given = (buffer, buffer, number_of(WIDTH), number_of(DEPTH))
    problem = write_problem(STENCIL, *given, items=(WIDTH, DEPTH), local=(32, 1))
    active = find_active_groups(problem)
    assert active == GroupBox(start=(0, 40), shape=(4, 720))

    def cost(at: tuple[np.ndarray, ...]) -> np.ndarray:
        return np.where((at[1] >= 40) & (at[1] < DEPTH - 40), 1e-5, 0.0) + 0.0 * at[0]

    waits: list[float] = []
    launch = GpuLaunch(problem.ndrange, cost)
    estimate, runs = sample_launch(launch, problem, EstimateSettings(), wait=waits.append)
    assert estimate.seconds == pytest.approx(4 * 720 * 1e-5, rel=0.05)
    assert set(launch.asked_together) == {2}
    assert (len(runs), waits) == (1, [])  # the budget has no room for another pair
    # Warm-ups and the one launch that compiles are a part of what was asked for.
    asked = sum(one.work_group_count for one in launch.asked)
    assert estimate.sampling_seconds == pytest.approx((asked - 1) * 1e-5, rel=0.1)


def make_copy(count: int) -> Problem:
    return write_problem(COPY, *[buffer_of("float32", count)] * 2, items=(count,), local=(256,))


def test_a_copy_is_no_faster_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lifts a line that saw no write-backs to what DRAM needs for loads and stores."""
    count = 1 << 22
    problem = make_copy(count)
    machine = find_machine("v100")
    memory = machine.memory("global")
    assert memory is not None
    assert memory.copy_bytes_per_s is not None
    least_s = 8 * count / memory.copy_bytes_per_s.value
    monkeypatch.setattr(weighing, "find_own_machine", lambda _: machine)
    rate, in_l2 = (
        find_least_rate(GpuLaunch(one.ndrange, lambda _: 1.0).device, one)
        for one in (problem, make_copy(1 << 16))
    )
    assert in_l2 == 0
    assert rate * count / 256 == pytest.approx(least_s, rel=0.05)
    for rate_s in (0.25 * rate, 4 * rate):
        launch = GpuLaunch(problem.ndrange, rate_s, 0.0)
        settings = EstimateSettings(plan=SamplingPlan(min_launch_s=1e-8))  # it takes microseconds
        estimate, runs = sample_launch(launch, problem, settings, wait=lambda _: None)
        assert estimate.seconds == pytest.approx(max(least_s, rate_s * count / 256), rel=0.05)
        is_lifted = any("L2 cache" in one for one in estimate.warnings)
        assert is_lifted == (rate_s < rate)
        file = tmp_path / "samples.json"
        write_recordings(file, [record(launch, KERNEL, runs)])
        [again] = read_recordings(file)
        replayed = estimate_runs(again, "copy", again.runs, estimate.coverage)
        assert replayed.interval == estimate.interval


def test_a_gpu_of_a_shipped_chip_is_bounded_without_calibration() -> None:
    """Takes DRAM's rate from the description of an A100, which the device's name tells; where it
    tells nothing, samples alone count."""
    problem = make_copy(1 << 22)
    launch = GpuLaunch(problem.ndrange, 1e-9, 0.0)
    assert find_least_rate(launch.device, problem) == 0
    launch.device = replace(
        launch.device, id="nvidia-a100-sxm4-40gb-0a1b", name="NVIDIA A100-SXM4-40GB",
        compute_units=108,
    )  # fmt: skip
    a100 = read_gpu(find_machine("a100"))
    assert a100.dram_load_bytes_per_s is not None
    rate = find_least_rate(launch.device, problem)
    assert rate == pytest.approx(8 * 256 / a100.dram_load_bytes_per_s, rel=0.2)


@pytest.mark.parametrize(
    ("starts", "parts", "expected"),
    [([100], 1, 1.0), ([100, 450, 800], 2, 1.5), ([100, 450, 800], 4, 1.75)],
)
def test_the_core_with_most_work_decides(starts: list[int], parts: int, expected: float) -> None:
    """Where cores get parts of a triangle beforehand, the last one's is the largest; the source is
    believed with next to no samples where nothing depends on data."""
    weighed = weigh_run(make_run(starts), ask(), parts)
    assert weighed.launches[0].weight == pytest.approx(102.5 / 500, abs=0.02)
    assert weighed.imbalance == pytest.approx(expected, rel=0.02)
    assert fit_linear(weighed).seconds == pytest.approx(expected * TOTAL_S, rel=0.05)


def test_parts_that_differ_by_chance_are_even() -> None:
    """Some work-groups of a launch differ in their parts' means too; all of them are the truth."""
    weights = np.random.default_rng(0).exponential(size=200)
    everywhere = tuple(zip(np.arange(200) / 200, weights / weights.mean(), strict=True))
    profile = replace(PROFILE, everywhere=everywhere)
    assert profile.find_imbalance(4, total=1 << 20) < 1.03 < profile.find_imbalance(4, total=200)
