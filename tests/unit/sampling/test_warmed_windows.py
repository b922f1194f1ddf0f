import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.linear import fit_linear
from kernelcast.records.device import DeviceKind
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.warmed_windows import WarmedSampler, open_sampler
from support.fakes import Disturbance, SyntheticLaunch


class Calls(SyntheticLaunch):
    """Keeps the order of what it is asked for."""

    def __init__(self, ndrange: NDRange) -> None:
        super().__init__(ndrange, lambda at: 1e-5 + 0.0 * at[0])
        self.calls: list[str] = []

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Note it."""
        self.calls.append("go on" if keeps_contents else "settle")

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Note it, and time them."""
        self.calls.append(f"time {len(boxes)}")
        return super().time_boxes(boxes)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 8), st.integers(0, 9))
def test_samples_stay_among_active_work_groups(
    width: int, height: int, concurrency: int, seed: int
) -> None:
    """Times no idle work-group, and none twice, whatever is active."""
    launch = SyntheticLaunch(
        NDRange(global_size=(width + 3, height + 5), local_size=(1, 1)), lambda at: 1e-6 + at[0] * 0
    )
    launch.saturation = replace(launch.saturation, concurrency=concurrency)
    active = GroupBox(start=(2, 5), shape=(width, height))
    plan = SamplingPlan(budget=0.3, seed=seed, min_launch_s=1e-6)
    sampler = WarmedSampler(launch, plan, active=active)
    run = sampler.take_moment()
    assert run is not None
    is_tiny = all(one.weight == 1 for one in run.launches)  # sampled as on any device
    for box in () if is_tiny else launch.asked:
        for start, extent, first, count in zip(
            box.start, box.shape, active.start, active.shape, strict=True
        ):
            assert first <= start
            assert start + extent <= first + count


def test_every_window_is_warmed_anew() -> None:
    """Runs each timed box right behind its own warm-up: nothing comes between them."""
    launch = Calls(NDRange(global_size=(4096,), local_size=(1,)))
    run = WarmedSampler(launch, SamplingPlan(budget=0.2)).take_moment()
    assert run is not None
    assert launch.calls[0] == "settle"
    assert set(launch.calls[1:]) == {"go on", "time 2"}
    assert launch.calls.count("time 2") == len(run.launches)
    assert len({one.window for one in run.launches}) > 2


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 40), st.integers(1, 3))
def test_launches_of_any_size_are_sampled(
    width: int, height: int, per_unit: int, moments: int
) -> None:
    """Times no work-group twice however small a launch is; as on any device where it is tiny."""
    ndrange = NDRange(global_size=(width, height * per_unit), local_size=(1, 1))
    launch = SyntheticLaunch(ndrange, lambda at: 1e-4 + 0.0 * at[0])
    sampler = WarmedSampler(launch, SamplingPlan(moments=moments))
    first = sampler.take_moment()
    assert first is not None
    assert fit_linear(first).seconds == pytest.approx(launch.true_s, rel=0.01)
    later = [sampler.take_moment() for _ in range(2)]
    launches = [one for run in (first, *later) if run for one in run.launches]
    assert sum(one.box.work_group_count for one in launches) <= ndrange.work_group_count


class Waves(SyntheticLaunch):
    """A GPU whose waves of 160 work-groups take a millisecond each, however full they are."""

    def __init__(self, work_groups: int) -> None:
        super().__init__(
            NDRange(global_size=(work_groups,), local_size=(1,)), lambda at: 0.0 * at[0]
        )
        self.saturation = replace(self.saturation, concurrency=160)

    def _undisturbed_s(self, box: GroupBox) -> float:
        return 5e-6 + 1e-3 * math.ceil(box.work_group_count / 160)


@pytest.mark.parametrize("work_groups", [16, 80, 200, 240, 400, 639, 960])
def test_launches_of_a_few_waves_are_not_judged_by_a_part_of_one(work_groups: int) -> None:
    """Sees how many waves a launch takes where it fills the device a few times at most."""
    launch = Waves(work_groups)
    sampler = WarmedSampler(launch, SamplingPlan())
    run = sampler.take_moment()
    assert run is not None
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=0.08)
    assert run.sampling_s <= launch.true_s
    assert sampler.take_moment() is None


def test_further_moments_keep_to_the_budget() -> None:
    """Samples elsewhere at a second moment where the budget has room for it, and else not."""
    for work_groups, is_paid in ((1 << 16, True), (64, False)):
        launch = Calls(NDRange(global_size=(work_groups,), local_size=(1,)))
        sampler = WarmedSampler(launch, SamplingPlan(budget=0.05, min_launch_s=1e-6))
        first, second = sampler.take_moment(), sampler.take_moment()
        assert first is not None
        assert (second is not None) == is_paid
        if second is not None:
            assert not {one.window for one in first.launches} & {
                one.window for one in second.launches
            }


def test_what_every_launch_pays_hides_no_work() -> None:
    """Takes longer launches where the first ones last long for what each of them pays once."""
    launch = SyntheticLaunch(
        NDRange(global_size=(1 << 20,), local_size=(1,)), lambda at: 1e-6 + 0.0 * at[0],
        disturbance=Disturbance(hidden_overhead_s=1e-3),
    )  # fmt: skip
    run = WarmedSampler(launch, SamplingPlan()).take_moment()
    assert run is not None
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=0.1)


def test_samples_lie_where_the_plan_says() -> None:
    """Times work-groups around a known place, also where a border is idle."""
    launch = Calls(NDRange(global_size=(4096,), local_size=(1,)))
    active = GroupBox(start=(1024,), shape=(3072,))
    plan = SamplingPlan(places=(0.75,), is_known_even=True, min_launch_s=1e-6)
    run = WarmedSampler(launch, plan, active=active).take_moment()
    assert run is not None
    starts = [one.box.start[0] for one in run.launches]
    assert all(abs(one - 3072) < 100 for one in starts)


def test_a_launch_of_milliseconds_is_sampled_by_a_small_part_of_it() -> None:
    """Takes 5 % of five milliseconds at most where the GPU's launches cost microseconds."""
    groups, whole_s = 1 << 16, 5e-3
    launch = SyntheticLaunch(
        NDRange(global_size=(groups,), local_size=(1,)),
        lambda at: whole_s / groups + 0.0 * at[0],
        launch_overhead_s=2.5e-6,
    )
    launch.device = replace(launch.device, kind=DeviceKind.GPU)
    sampler = open_sampler(launch, SamplingPlan(is_known_even=True))
    run = sampler.take_moment()
    assert run is not None
    assert run.sampling_s <= 0.05 * whole_s
    assert fit_linear(run).seconds == pytest.approx(whole_s, rel=0.05)
