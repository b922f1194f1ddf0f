import math
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.linear import fit_linear
from kernelcast.records.device import DeviceKind
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.warmed_windows import WarmedSampler, open_sampler
from support.fakes import Disturbance, SyntheticLaunch


def make_even(groups: int, work_group_s: float = 1e-5, **more: Any) -> SyntheticLaunch:  # noqa: ANN401
    """Make a launch of even work."""
    return SyntheticLaunch(NDRange(global_size=(groups,), local_size=(1,)), work_group_s, **more)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 8), st.integers(0, 9))
def test_samples_stay_among_active_work_groups(
    width: int, height: int, concurrency: int, seed: int
) -> None:
    """Times no idle work-group, and none twice, whatever is active."""
    launch = SyntheticLaunch(NDRange(global_size=(width + 3, height + 5), local_size=(1, 1)), 1e-6)
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


def test_every_window_is_warmed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs each timed box right behind its own warm-up: nothing comes between them."""
    launch = make_even(4096)
    calls = MagicMock()
    calls.time_boxes.side_effect = launch.time_boxes
    monkeypatch.setattr(launch, "settle", calls.settle)
    monkeypatch.setattr(launch, "time_boxes", calls.time_boxes)
    run = WarmedSampler(launch, SamplingPlan(budget=0.2)).take_moment()
    assert run is not None
    told = [one.kwargs.get("keeps_contents", "time") for one in calls.mock_calls]
    assert told[0] is False
    assert set(told[1:]) == {True, "time"}
    assert [len(one.args[0]) for one in calls.time_boxes.mock_calls] == [2] * len(run.launches)
    assert len({one.window for one in run.launches}) > 2


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 40), st.integers(1, 3))
def test_launches_of_any_size_are_sampled(
    width: int, height: int, per_unit: int, moments: int
) -> None:
    """Times no work-group twice however small a launch is; as on any device where it is tiny."""
    ndrange = NDRange(global_size=(width, height * per_unit), local_size=(1, 1))
    launch = SyntheticLaunch(ndrange, 1e-4)
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
        plan = SamplingPlan(budget=0.05, min_launch_s=1e-6)
        sampler = WarmedSampler(make_even(work_groups), plan)
        first, second = sampler.take_moment(), sampler.take_moment()
        assert first is not None
        assert (second is not None) == is_paid
        if second is not None:
            assert not {one.window for one in first.launches} & {
                one.window for one in second.launches
            }


def test_what_every_launch_pays_hides_no_work() -> None:
    """Takes longer launches where the first ones last long for what each of them pays once."""
    launch = make_even(1 << 20, 1e-6, disturbance=Disturbance(hidden_overhead_s=1e-3))
    run = WarmedSampler(launch, SamplingPlan()).take_moment()
    assert run is not None
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=0.1)


def test_samples_lie_where_the_plan_says() -> None:
    """Times work-groups around a known place, also where a border is idle."""
    active = GroupBox(start=(1024,), shape=(3072,))
    plan = SamplingPlan(places=(0.75,), is_known_even=True, min_launch_s=1e-6)
    run = WarmedSampler(make_even(4096), plan, active=active).take_moment()
    assert run is not None
    starts = [one.box.start[0] for one in run.launches]
    assert all(abs(one - 3072) < 100 for one in starts)


def test_a_launch_of_milliseconds_is_sampled_by_a_small_part_of_it() -> None:
    """Takes 5 % of five milliseconds at most where the GPU's launches cost microseconds."""
    groups, whole_s = 1 << 16, 5e-3
    launch = make_even(groups, whole_s / groups, launch_overhead_s=2.5e-6)
    launch.device = replace(launch.device, kind=DeviceKind.GPU)
    sampler = open_sampler(launch, SamplingPlan(is_known_even=True))
    run = sampler.take_moment()
    assert run is not None
    assert run.sampling_s <= 0.05 * whole_s
    assert fit_linear(run).seconds == pytest.approx(whole_s, rel=0.05)
