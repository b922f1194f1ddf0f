"""Times of sizes that were not run, from those of a kernel's other sizes."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from kernelcast.models.evidence.sizes import (
    MEASURES,
    KnownSize,
    SizeSettings,
    find_boundary,
    fit_sizes,
    predict_size,
)
from kernelcast.records.errors import InputError
from support.evidence import make_size

SETTINGS = SizeSettings()


def known_at(*works: float, rate: float = -17.0) -> list[KnownSize]:
    """Make sizes of a kernel whose time is proportional to its work."""
    return [make_size(one, one + rate) for one in works]


def test_times_proportional_to_work_are_foretold() -> None:
    """Scales by work-items."""
    answer = predict_size(known_at(15.0, 15.5, 16.0), SETTINGS, (17.0,) * 4, 0.0)
    assert answer.log_seconds == pytest.approx(0.0, abs=1e-9)
    assert answer.note == "3 sizes by work_items"


def test_variance_grows_with_distance_and_time_and_falls_with_sizes() -> None:
    """Trusts near sizes, recent sizes and many sizes more."""
    few, many = (
        partial(predict_size, known_at(*works), SETTINGS)
        for works in ((15.0, 15.5), (15.0, 15.5, 16.5, 17.0))
    )
    near = few((16.0,) * 4, 0.0).variance
    assert near < few((19.0,) * 4, 0.0).variance
    assert near < few((16.0,) * 4, 3600.0).variance
    assert many((16.0,) * 4, 0.0).variance < near


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_poisoned_size_loses_its_weight(factor: float) -> None:
    """Stays with the other three."""
    known = known_at(15.0, 15.5, 16.0)
    wrong = make_size(15.7, -1.3 + math.log(factor))
    answer = predict_size([*known, wrong], SETTINGS, (15.6,) * 4, 0.0)
    assert answer.log_seconds == pytest.approx(-1.4, abs=0.05)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_launches_of_microseconds_foretell_no_long_one(count: int) -> None:
    """Knows that what a launch takes beside its work does not grow with it."""
    works = (0.0, math.log(7.0), math.log(1024.0))[:count]
    tiny = [make_size(one, math.log(5e-7 + 1e-9 * math.exp(one))) for one in works]
    true = math.log(5e-7 + 1e-9 * 1e6)
    answer = predict_size(tiny, SETTINGS, (math.log(1e6),) * 4, 0.0)
    assert abs(answer.log_seconds - true) < 2.0 * math.sqrt(answer.variance)
    near = predict_size(tiny, SETTINGS, (works[-1] + 0.1,) * 4, 0.0)
    assert near.variance < 0.1 < 0.1 * answer.variance


def test_one_long_launch_outweighs_many_of_microseconds() -> None:
    """Scales from the size whose time is mostly work, and back down to those only roughly."""
    known = [make_size(0.2 * place, math.log(5e-7)) for place in range(4)]
    known.append(make_size(math.log(1e8), math.log(0.1)))
    table = partial(predict_size, known, SETTINGS)
    assert table((math.log(2e8),) * 4, 0.0).log_seconds == pytest.approx(math.log(0.2), abs=0.05)
    assert table((math.log(100.0),) * 4, 0.0).variance > 1.0


def test_the_measure_that_foretells_the_kernel_is_taken() -> None:
    """Scales a kernel of quadratic work by its instructions, one of linear work by its items."""
    quadratic = [
        KnownSize(log_work=(one, 2 * one, math.nan, math.nan), log_seconds=2 * one - 30, noise=0.02,
                  at_s=0.0)
        for one in (15.0, 15.4, 15.8, 16.2)
    ]  # fmt: skip
    answer = predict_size(quadratic, SETTINGS, (16.5, 33.0, math.nan, math.nan), 0.0)
    assert answer.note.endswith("by instructions")
    assert answer.log_seconds == pytest.approx(3.0, abs=0.01)
    linear = [replace(one, log_seconds=one.log_work[0] - 16) for one in quadratic]
    assert predict_size(linear, SETTINGS, (16.5,) * 4, 0.0).note.endswith("by work_items")


def test_a_cache_between_sizes_is_named_and_widens() -> None:
    """Says that the working set leaves a cache that all known sizes fit."""
    known = known_at(15.0, 15.5)
    caches = {"L2": 1e6, "L3": 33e6}
    table = partial(predict_size, known, SETTINGS, caches=caches)
    near, beyond = (table((16.0,) * 4, 0.0, size) for size in (30e6, 40e6))
    assert [one.note.partition(",")[2] for one in (near, beyond)] == ["", " beyond the size of L3"]
    assert beyond.variance > near.variance


def test_what_is_missing_is_asked_for() -> None:
    """Names the measure that is not known, and asks for a size."""
    with pytest.raises(InputError, match="give at least one"):
        predict_size([], SETTINGS, (15.0,) * 4, 0.0)
    with pytest.raises(InputError, match="work_items of this one is not known"):
        predict_size(known_at(15.0), SETTINGS, (math.nan,) * 4, 0.0)
    with pytest.raises(InputError, match=f"expected {len(MEASURES)} measures"):
        KnownSize(log_work=(15.0,), log_seconds=0.0, noise=0.0, at_s=0.0)


def test_settings_are_learned_from_kernels() -> None:
    """Finds that sizes of another hour differ where they do, and keeps quiet where they do not."""
    draw = np.random.default_rng(0)
    times = [0.0, 36000.0] * 3
    for drift, is_far_known in ((0.3, False), (0.0, True)):
        kernels = []
        for _ in range(40):
            level = draw.normal(-17.0, 1.0) + np.tile(draw.normal(0.0, drift, 2), 3)
            works = 15.0 + draw.uniform(0.0, 2.0, 6)
            log_s = works + level + draw.normal(0.0, 0.02, 6)
            kernels.append([
                make_size(work, told, at_s=at_s)
                for work, told, at_s in zip(works, log_s, times, strict=True)
            ])  # fmt: skip
        known = [make_size(15.0 + 0.1 * place, -2.0) for place in range(3)]
        table = partial(predict_size, known, fit_sizes(kernels, SETTINGS))
        near, far = (table((15.1,) * 4, at_s).variance ** 0.5 for at_s in times[:2])
        assert near < 0.06
        assert far < 0.06 if is_far_known else far > 0.2


def test_sizes_of_one_minute_do_not_tell_of_other_hours() -> None:
    """Assumes what other devices showed where a drift of seconds says nothing of days."""
    draw = np.random.default_rng(0)
    kernels = []
    for _ in range(60):
        rate, drift = draw.normal(-17.0, 1.0), draw.normal(0.0, 1e-3)
        kernels.append([
            make_size(15.0 + place, 15.0 + place + rate + drift * at_s, at_s=at_s)
            for place, at_s in enumerate((0.0, 20.0))
        ])  # fmt: skip
    found = fit_sizes(kernels, SETTINGS)
    a_day = predict_size([make_size(15.0, -2.0)], found, (15.0,) * 4, 86400.0)
    assert 0.1 < math.sqrt(a_day.variance) < 1.0


def test_a_launch_shares_its_state_with_those_of_its_time_whatever_came_later() -> None:
    """Takes the level of the sizes that were measured when the launch was, also of earlier ones."""
    settings = replace(SETTINGS, time_sd=0.3, time_reach_s=600.0)
    known = [make_size(15.0, -2.0, at_s=0.0), make_size(15.0, -1.5, at_s=36000.0)]
    table = partial(predict_size, known, settings)
    then, now = (table((15.0,) * 4, at_s) for at_s in (0.0, 36000.0))
    assert then.log_seconds < -1.9 < -1.6 < now.log_seconds
    assert then.variance == pytest.approx(now.variance, rel=1e-3)


def _looped(items: float, turns: float) -> KnownSize:
    """Make a launch whose work-items loop: e^turns times as many instructions as they are."""
    work = (items, items + turns, math.nan, math.nan)
    return KnownSize(log_work=work, log_seconds=items + turns - 20.0, noise=0.01, at_s=0.0)


@pytest.mark.parametrize("count", [1, 3])
def test_instructions_are_followed_where_they_are_counted(count: int) -> None:
    """Takes a longer loop for more work, and is less sure where no known size looped as long."""
    table = partial(predict_size, [_looped(14.0 + place, 3.0) for place in range(count)], SETTINGS)
    longer = table((14.0, 18.0, math.nan, math.nan), 0.0)
    assert longer.log_seconds == pytest.approx(-2.0, abs=0.05)
    assert longer.note.endswith("by instructions")
    assert longer.variance > 2 * table((15.0, 18.0, math.nan, math.nan), 0.0).variance


def test_a_working_set_that_is_not_known_lies_on_no_side_of_a_cache() -> None:
    """No boundary is named between it and another."""
    caches = {"L2": 1e6}
    assert find_boundary(2e6, [0.5e6], caches) == "L2"
    assert find_boundary(0.5e6, [2e6], caches) == "L2"
    for known in ([math.nan, 2e6], [0.5e6, math.nan], [0.5e6, 2e6]):
        assert not find_boundary(0.1e6, known, caches) + find_boundary(3e6, known, caches)
    assert not find_boundary(math.nan, [0.5e6], caches)
