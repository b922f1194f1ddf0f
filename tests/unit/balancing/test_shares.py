"""Who gets how much next, and which slabs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.balancing.work import DeviceSpeed, SharePolicy, WorkQueue, finish_time, mark

_POLICY = SharePolicy(first_share=0.8, shortest_s=0.01)


@given(
    st.lists(st.tuples(st.floats(0.1, 100), st.floats(0, 10)), min_size=1, max_size=5),
    st.floats(0.1, 1000),
)
def test_finish_time_divides_all_work(devices: list[tuple[float, float]], left: float) -> None:
    """What all do from when they are free until the finish time is the work left."""
    speeds = [DeviceSpeed(rate=rate, free_at_s=free) for rate, free in devices]
    end_s = finish_time(speeds, left, 0.0)
    done = sum(rate * max(0.0, end_s - free) for rate, free in devices)
    assert done == pytest.approx(left, rel=1e-6)


def test_first_part_is_a_share_of_what_is_fair() -> None:
    """A device as fast as the other gets 80 % of half at first."""
    two = [DeviceSpeed(rate=10.0, free_at_s=0.0)] * 2
    assert _POLICY.allot(two, 0, 100.0, 0.0, is_first=True) == pytest.approx(40.0)
    assert _POLICY.allot(two, 0, 20.0, 0.0, is_first=False) == pytest.approx(5.0)
    even = replace(_POLICY, is_known_even=True)
    assert even.allot(two, 0, 20.0, 0.0, is_first=False) == pytest.approx(7.0)


def test_parts_that_have_something_to_show_are_run_in_two_launches() -> None:
    """The first part, later ones of work that may be uneven, but none that is short."""
    even = replace(_POLICY, is_known_even=True)
    assert even.cuts(1.0, 10.0, is_first=True)
    assert not even.cuts(1.0, 10.0, is_first=False)
    assert _POLICY.cuts(1.0, 10.0, is_first=False)
    assert not _POLICY.cuts(0.1, 10.0, is_first=False)
    assert _POLICY.cuts(0.1, None, is_first=True)


def test_doubtful_speeds_give_less_at_first() -> None:
    """If either may be twice as fast as thought, only a fifth of all is surely its own."""
    two = [DeviceSpeed(rate=10.0, free_at_s=0.0, doubt=2.0)] * 2
    assert _POLICY.allot(two, 0, 100.0, 0.0, is_first=True) == pytest.approx(20.0)


def test_rest_not_worth_a_launch_is_given_at_once() -> None:
    """Little is left: it goes to whoever asks."""
    two = [DeviceSpeed(rate=10.0, free_at_s=0.0)] * 2
    assert _POLICY.allot(two, 0, 0.15, 0.0, is_first=False) == pytest.approx(0.15)


def test_device_that_would_come_too_late_gets_nothing() -> None:
    """Others are done before the slow one could help."""
    two = [DeviceSpeed(rate=1.0, free_at_s=5.0), DeviceSpeed(rate=100.0, free_at_s=0.0)]
    assert _POLICY.allot(two, 0, 50.0, 0.0, is_first=True) == 0.0


def test_unknown_speeds_make_cautious() -> None:
    """As long as a device's speed is not known, others get small parts."""
    two = [DeviceSpeed(rate=10.0, free_at_s=0.0), DeviceSpeed(rate=None, free_at_s=0.0)]
    assert 0 < _POLICY.allot(two, 0, 100.0, 0.0, is_first=True) < 2
    assert _POLICY.allot(two, 1, 100.0, 0.0, is_first=True) == 50.0


@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.floats(0.1, 90), st.sampled_from([0.0, 0.3, 1.0])), max_size=30),
)
def test_pool_gives_each_slab_once(count: int, requests: list[tuple[float, float]]) -> None:
    """Slabs taken never overlap, and the work left is what was not taken."""
    pool = WorkQueue(count)
    seen = np.zeros(count, dtype=int)
    for weight, anchor in requests:
        spans = pool.take(weight, anchor=anchor)
        seen += mark(spans, count)
    assert seen.max(initial=0) <= 1
    assert pool.weight == count - seen.sum()
    assert pool.is_empty == (seen.sum() == count)


def test_ends_meet() -> None:
    """From both ends devices take connected parts."""
    pool = WorkQueue(10)
    assert pool.take(4, anchor=0.0) == [(0, 4)]
    assert pool.take(3, anchor=1.0) == [(7, 10)]
    assert pool.take(9, anchor=0.0) == [(4, 7)]
    assert pool.take(1, anchor=1.0) == []
