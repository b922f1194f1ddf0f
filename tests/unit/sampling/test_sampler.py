"""Which work-groups are sampled, and what comes of it, on launches made up."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.models.linear import fit_linear
from kernelcast.records.device import DeviceKind
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import Sampler, is_even
from kernelcast.sampling.warmed_windows import WarmedSampler, open_sampler
from support import strategies
from support.fakes import Coordinates, Cost, Disturbance, SyntheticLaunch, sample

LINE = NDRange(global_size=(64 * 200_000,), local_size=(64,))
SQUARE = NDRange(global_size=(8 * 600, 8 * 400), local_size=(8, 8))
CUBE = NDRange(global_size=(4 * 80, 4 * 60, 4 * 50), local_size=(4, 4, 4))
# A kernel of 1 s: sampling at 2 % may spend 20 ms.
WHOLE_S = 1.0
SHAPES = {"1-D": LINE, "2-D": SQUARE, "3-D": CUBE}


def scaled(ndrange: NDRange, shape: Callable[[Coordinates], np.ndarray | float]) -> Cost:
    """Scale a cost so that the whole launch takes `WHOLE_S` and little more."""
    whole = np.indices(ndrange.group_counts)
    total = float(np.broadcast_to(shape(tuple(whole)), ndrange.group_counts).sum())
    return lambda at: np.asarray(shape(at)) * (WHOLE_S / total)


def _rise(power: int, at: Coordinates) -> np.ndarray:
    return (at[-1] + 1.0) ** power


EVEN, LINEAR, QUADRATIC = (
    {name: scaled(ndrange, partial(_rise, power)) for name, ndrange in SHAPES.items()}
    for power in range(3)
)


@pytest.mark.parametrize(("seed", "budget"), [(0, 0.02), (1, 0.02), (2, 0.05), (3, 0.01)])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("costs", "tolerance", "factor"),
    [(EVEN, 0.005, 1.15), (LINEAR, 0.03, 2.0), (QUADRATIC, 0.06, 2.0)],
    ids=["even", "linear", "quadratic"],
)
def test_smooth_work_is_predicted_within_the_budget(
    costs: dict[str, Cost], tolerance: float, factor: float, shape: str, seed: int, budget: float
) -> None:
    """Spends its budget on even work of a second, at most twice its budget on uneven work; predicts
    even work within 0.5 %, linear within 3 %, quadratic within 6 %."""
    launch = SyntheticLaunch(SHAPES[shape], costs[shape])
    run = sample(launch, SamplingPlan(seed=seed, budget=budget))
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=tolerance)
    assert 0 < run.sampling_s <= factor * budget * launch.true_s


@pytest.mark.parametrize("seed", range(6))
def test_noise_and_spikes_stay_outside(seed: int) -> None:
    """Predicts even work within 8 % where launches scatter by 3 % and one in ten takes thrice."""
    disturbance = Disturbance(noise=0.03, spike_share=0.1, spike_factor=3.0, seed=seed)
    launch = SyntheticLaunch(LINE, EVEN["1-D"], disturbance=disturbance)
    fit = fit_linear(sample(launch, SamplingPlan(seed=seed)))
    assert fit.seconds == pytest.approx(launch.true_s, rel=0.08)


@settings(max_examples=150)
@given(
    ndrange=strategies.ndranges(max_groups=40),
    work_group_s=st.floats(1e-8, 1e-2),
    seed=st.integers(0, 100),
    noise=st.sampled_from([0.0, 0.05, 1.0]),
    moments=st.integers(1, 6),
)
def test_no_work_group_runs_twice(
    ndrange: NDRange, work_group_s: float, seed: int, noise: float, moments: int
) -> None:
    """Samples any index space, at any number of moments, without asking for a work-group twice or
    one outside, and gives nothing more once all were timed."""
    launch = SyntheticLaunch(
        ndrange, lambda at: work_group_s,
        disturbance=Disturbance(noise=noise, spike_share=0.1 if noise else 0.0, seed=seed),
    )  # fmt: skip
    sampler = Sampler(launch, SamplingPlan(seed=seed))
    runs = [run for _ in range(moments) if (run := sampler.take_moment()) is not None]
    assert runs[0].launches
    assert sum(run.sampled_work_groups for run in runs) <= ndrange.work_group_count
    assert runs[0].ndrange == ndrange
    assert fit_linear(runs[0]).seconds > 0


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 7, 15, 16, 17, 20, 64, 300])
@pytest.mark.parametrize(("is_known", "tolerance"), [(False, 0.3), (True, 0.1)])
def test_few_work_groups_are_enough(groups: int, tolerance: float, *, is_known: bool) -> None:
    """Answers within 30 % however few work-groups of equal work, within 10 % if they are known."""
    ndrange = NDRange(global_size=(64 * groups,), local_size=(64,))
    launch = SyntheticLaunch(ndrange, 1e-3)
    seconds = fit_linear(sample(launch, SamplingPlan(is_known_even=is_known))).seconds
    assert seconds == pytest.approx(launch.true_s, rel=tolerance)


def test_the_same_seed_asks_for_the_same_work_groups() -> None:
    """Asks for the same boxes in the same order with the same seed, and for others with another."""
    launches = [SyntheticLaunch(SQUARE, EVEN["2-D"]) for _ in range(3)]
    for seed, launch in zip((5, 5, 6), launches, strict=True):
        sample(launch, SamplingPlan(seed=seed))
    assert launches[0].asked == launches[1].asked != launches[2].asked


@pytest.mark.parametrize(
    ("overhead_s", "hidden_s"),
    [(1e-7, 0.0), (5e-5, 0.0), (3.7e-4, 0.0), (3.7e-4, 5e-4), (3.7e-4, 2.3e-3)],
)
@pytest.mark.parametrize("groups", [512, 23_040])
def test_what_a_launch_pays_is_not_charged_to_work_groups(
    groups: int, overhead_s: float, hidden_s: float
) -> None:
    """Sees what a launch costs beside its work-groups, also what an empty one does not have."""
    ndrange = NDRange(global_size=(64 * groups,), local_size=(64,))
    launch = SyntheticLaunch(
        ndrange,
        scaled(ndrange, lambda at: 1.0),
        launch_overhead_s=overhead_s,
        disturbance=Disturbance(noise=0.01, hidden_overhead_s=hidden_s, seed=5),
    )
    run = sample(launch, SamplingPlan())
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=0.12)
    assert run.sampling_s < 0.12 * launch.true_s


@pytest.mark.parametrize(
    ("groups", "whole_s", "is_known", "tolerance"),
    [*((groups, 0.2, False, 0.15) for groups in (1_000, 2_000, 4_000, 20_000)),
     (200_000, 1.0, True, 0.05)],
)  # fmt: skip
@pytest.mark.parametrize("interrupted", range(10))
def test_one_interruption_does_not_decide(
    monkeypatch: pytest.MonkeyPatch, groups: int, whole_s: float, tolerance: float,
    interrupted: int, *, is_known: bool,
) -> None:  # fmt: skip
    """Even work of 0.2 s is predicted within 15 %, whichever sample a core is taken away from, of a
    second within 5 % where it is known: another slab is taken."""
    ndrange = NDRange(global_size=(64 * groups,), local_size=(64,))
    disturbance = Disturbance(noise=0.02, seed=interrupted)
    launch = SyntheticLaunch(ndrange, whole_s / groups, disturbance=disturbance)
    plain, late_s = launch._undisturbed_s, iter([0.0] * interrupted + [8e-3])
    monkeypatch.setattr(launch, "_undisturbed_s", lambda box: plain(box) + next(late_s, 0.0))
    run = sample(launch, SamplingPlan(seed=interrupted, is_known_even=is_known))
    assert run.is_even
    assert fit_linear(run).seconds == pytest.approx(whole_s, rel=tolerance)


def test_places_of_the_plan_are_sampled() -> None:
    """All launches lie at the places that stand for all, and not all at one of them."""
    launch = SyntheticLaunch(LINE, EVEN["1-D"])
    places = (0.2, 0.21, 0.6, 0.61, 0.62)
    run = sample(launch, SamplingPlan(is_known_even=True, places=places))
    total = LINE.work_group_count
    near = [min(abs(one.box.start[0] / total - place) for place in places) for one in run.launches]
    assert max(near) < 0.06
    assert np.ptp([one.box.start[0] / total for one in run.launches]) > 0.3


@pytest.mark.parametrize("seed", [0, 2])
def test_samples_may_contradict_what_is_known(seed: int) -> None:
    """Work-groups that execute the same, two fifths of them on data far away, are uneven."""
    launch = SyntheticLaunch(
        LINE, lambda at: np.where(at[0] > 0.6 * LINE.group_counts[0], 20, 1) * 1e-6
    )
    run = sample(launch, SamplingPlan(is_known_even=True, seed=seed))
    assert not run.is_even
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=0.25)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("costs", [EVEN, QUADRATIC], ids=["even", "uneven"])
def test_moments_share_a_budget_and_no_work_group(costs: dict[str, Cost], shape: str) -> None:
    """Each moment predicts the launch from work-groups of its own; together they cost a budget."""
    launch = SyntheticLaunch(SHAPES[shape], costs[shape])
    sampler = Sampler(launch, SamplingPlan(moments=3, budget=0.03))
    runs = [sampler.take_moment() for _ in range(3)]
    known = [one for one in runs if one is not None]
    assert len(known) == 3
    for one in known:
        assert fit_linear(one).seconds == pytest.approx(launch.true_s, rel=0.12)
    assert [one.at_s for one in known] == sorted(one.at_s for one in known)
    assert sum(one.sampling_s for one in known) < 2 * 0.03 * launch.true_s


@pytest.mark.parametrize("times", [3.0, 20.0])
def test_what_only_starts_slowly_is_not_slow(times: float) -> None:
    """Work-groups that find nothing in caches at a new place are not taken for all."""

    class ColdLaunch(SyntheticLaunch):
        end = -1

        def _undisturbed_s(self, box: GroupBox) -> float:
            plain_s = super()._undisturbed_s(box)
            is_cold, self.end = box.start[0] != self.end, box.start[0] + box.shape[0]
            return times * plain_s if is_cold else plain_s

    launch = ColdLaunch(LINE, EVEN["1-D"])
    sampler = Sampler(launch, SamplingPlan(is_known_even=True))
    for _ in range(2):
        run = sampler.take_moment()
        assert run is not None
        assert fit_linear(run).seconds == pytest.approx(WHOLE_S, rel=0.02)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("groups", "work_group_s", "pays_s", "least", "most"),
    [
        (16384, 1.12e-6, 0.84e-3, 0.75, 1.25),  # as much once as 750 work-groups: a longer slab
        (128, 2e-8, 12e-6, 0.0, 4.0),  # all that take as long as four are no 32 times as long
        (4096, 5e-4 / 4096, 12e-6, 0.65, 1.35),
        (4096, 2e-3 / 4096, 12e-6, 0.65, 1.35),
    ],
)
def test_what_a_launch_pays_once_is_not_taken_for_work(
    groups: int, work_group_s: float, pays_s: float, least: float, most: float, seed: int
) -> None:
    """Known even work gets samples longer than what each launch pays once."""
    launch = SyntheticLaunch(
        NDRange(global_size=(32 * groups,), local_size=(32,)), work_group_s,
        disturbance=Disturbance(
            hidden_overhead_s=pays_s, noise=0.05 if groups == 4096 else 0.0, seed=seed
        ),
    )  # fmt: skip
    run = sample(launch, SamplingPlan(seed=seed, is_known_even=True))
    assert least < fit_linear(run).seconds / launch.true_s < most
    assert groups != 4096 or run.sampling_s <= 0.9 * launch.true_s


@pytest.mark.parametrize("seed", range(4))
def test_a_short_launch_of_unknown_work_is_sampled_all_over(seed: int) -> None:
    """Finds both the light and the heavy quarter of three milliseconds, and what is no start."""
    groups, whole_s = 1024, 3e-3
    usual_s = whole_s / groups / 3.25
    launch = SyntheticLaunch(
        NDRange(global_size=(32 * groups,), local_size=(32,)),
        lambda at: np.where(at[0] < groups // 4, 10 * usual_s, usual_s),
        disturbance=Disturbance(hidden_overhead_s=12e-6),
    )
    sampler = Sampler(launch, SamplingPlan(seed=seed))
    runs = [sampler.take_moment() for _ in range(2)]
    told = [fit_linear(run).seconds for run in runs if run is not None]
    assert np.exp(np.mean(np.log(told))) == pytest.approx(launch.true_s, rel=0.4)
    spent_s = sum(run.sampling_s for run in runs if run is not None)
    assert spent_s <= whole_s


def test_a_pilot_that_meets_heavy_work_leaves_something_for_the_rest() -> None:
    """The first moment looks all over, though the pilot of a short launch took its share."""
    groups = 1536
    launch = SyntheticLaunch(
        NDRange(global_size=(32 * groups,), local_size=(32,)),
        lambda at: np.where((at[0] > 0.65 * groups) & (at[0] < 0.9 * groups), 5e-5, 1.5e-6),
    )
    run = sample(launch, SamplingPlan())
    assert 0.5 < fit_linear(run).seconds / launch.true_s < 2


@pytest.mark.parametrize(
    ("scale", "seed"), [(0.5, 6), (0.5, 9), (0.5, 14), (1.0, 2), (1.0, 5), (1.0, 9)]
)
def test_hills_are_not_even(scale: float, seed: int) -> None:
    """Neither does a place of next to no work stand for the others, nor is a pilot disturbed whose
    neighbours are as heavy."""
    heights = [(13, 0.5), (20, 1.9), (24, 0.9), (43, 1.7), (50, 1.2), (114, 0.05)]
    at, cost_ms = zip(*heights, strict=True)
    launch = SyntheticLaunch(
        NDRange(global_size=(128 * 64,), local_size=(64,)),
        lambda groups: scale * 1e-3 * np.interp(groups[0], at, cost_ms),
    )
    run = sample(launch, SamplingPlan(seed=seed))
    assert not run.is_even
    assert fit_linear(run).seconds > 0.5 * launch.true_s


@given(count=st.integers(1, 12), light=st.floats(0.001, 0.2), where=st.integers(0, 11))
def test_next_to_no_work_at_one_place_is_not_even(count: int, light: float, where: int) -> None:
    """Nothing shortens a launch: one place of next to no work is enough."""
    assert not is_even(np.insert(np.linspace(1.0, 1.1, count), min(where, count), light))


def make_even(groups: int, work_group_s: float = 1e-5, **more: Any) -> SyntheticLaunch:  # noqa: ANN401
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
    run = sample(launch, plan, partial(WarmedSampler, active=active))
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
    run = sample(launch, SamplingPlan(budget=0.2), WarmedSampler)
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


@pytest.mark.parametrize("work_groups", [16, 80, 200, 240, 400, 639, 960])
def test_launches_of_a_few_waves_are_not_judged_by_a_part_of_one(
    monkeypatch: pytest.MonkeyPatch, work_groups: int
) -> None:
    """Sees how many waves a launch takes where it fills the device a few times at most: waves of
    160 work-groups take a millisecond each, however full they are."""
    launch = make_even(work_groups)
    launch.saturation = replace(launch.saturation, concurrency=160)
    monkeypatch.setattr(
        launch, "_undisturbed_s", lambda box: 5e-6 + 1e-3 * math.ceil(box.work_group_count / 160)
    )
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
    run = sample(launch, SamplingPlan(), WarmedSampler)
    assert fit_linear(run).seconds == pytest.approx(launch.true_s, rel=0.1)


def test_samples_lie_where_the_plan_says() -> None:
    """Times work-groups around a known place, also where a border is idle."""
    active = GroupBox(start=(1024,), shape=(3072,))
    plan = SamplingPlan(places=(0.75,), is_known_even=True, min_launch_s=1e-6)
    run = sample(make_even(4096), plan, partial(WarmedSampler, active=active))
    starts = [one.box.start[0] for one in run.launches]
    assert all(abs(one - 3072) < 100 for one in starts)


def test_a_launch_of_milliseconds_is_sampled_by_a_small_part_of_it() -> None:
    """Takes 5 % of five milliseconds at most where the GPU's launches cost microseconds."""
    groups, whole_s = 1 << 16, 5e-3
    launch = make_even(groups, whole_s / groups, launch_overhead_s=2.5e-6)
    launch.device = replace(launch.device, kind=DeviceKind.GPU)
    run = sample(launch, SamplingPlan(is_known_even=True), open_sampler)
    assert run.sampling_s <= 0.05 * whole_s
    assert fit_linear(run).seconds == pytest.approx(whole_s, rel=0.05)
