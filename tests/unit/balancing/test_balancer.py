"""Whole launches over devices that are formulas."""

import itertools
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.balancing.balancer import Balancer
from kernelcast.balancing.launch_buffers import Collect, Prepare, Run, merge_changes
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.records.balance import Activity, BalanceReport, MergeRule
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Interval
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from support.balancing import Arrays, FakeDevice, FakeDevices


def _make_kernel(name: str, statement: str) -> Kernel:
    head = f"kernel void {name}(global int *y, global const int *x) {{ int i = get_global_id(0);"
    return Kernel(name=name, source=f"{head} {statement} }}")


_UPDATE = _make_kernel("update", "y[i] = 3 * y[i] + x[i];")
_SCATTER = _make_kernel("scatter", "y[x[i]] = i + 1;")
_DOUBLE = _make_kernel("twice", "y[i] = 2 * x[i];")
# Work by content: nobody can tell from the source that it is even.
_LOOP = _make_kernel("loop", "for (int k = 0; k < x[i]; k++) y[i] = 2 * y[i] + 1;")
Numbers: TypeAlias = npt.NDArray[np.int64]
Cost: TypeAlias = Callable[[Numbers], npt.NDArray[np.float64]]
_ITEMS, _LOCAL = 16384, 4


def _update(arrays: Arrays, items: Numbers) -> None:
    arrays[0][items] = 3 * arrays[0][items] + arrays[1][items]


def _scatter(arrays: Arrays, items: Numbers) -> None:
    arrays[0][arrays[1][items]] = items + 1


def _double(arrays: Arrays, items: Numbers) -> None:
    arrays[0][items] = 2 * arrays[1][items]


_RULES = {_UPDATE: MergeRule.RANGES, _SCATTER: MergeRule.COMPARE}
_COMPUTE = {_UPDATE: _update, _SCATTER: _scatter, _DOUBLE: _double, _LOOP: _update}


def _balance(
    devices: list[FakeDevice], kernel: Kernel = _UPDATE, *, items: int = _ITEMS,
    chosen: BalanceSettings | None = None, message_s: float = 0.0, most_off: int = 0,
    estimates: dict[str, Interval] | None = None,
) -> BalanceReport:  # fmt: skip
    """Balance a launch, whose results are right: off by nothing, or by all up to `most_off`."""
    rng = np.random.default_rng(1)
    y = rng.integers(-99, 99, items, dtype=np.int32)
    x = rng.permutation(items).astype(np.int32)
    before = y.copy()
    places = [DevicePlace(device_id=f"fake-{n}") for n in range(len(devices))]
    with Balancer(places, chosen, processes=FakeDevices(devices, message_s=message_s)) as balancer:
        ndrange = NDRange(global_size=(items,), local_size=(_LOCAL,))
        try:
            report = balancer.balance(kernel, ndrange, [y, x], estimates=estimates)
        except KernelcastError:
            assert np.array_equal(y, before), "the array was changed although the launch failed"
            raise
    expected = before.copy()
    _COMPUTE[kernel]([expected, x], np.arange(items))
    assert {*(y - expected).tolist()} == {*range(most_off + 1)}
    return report


def test_shares_follow_speeds() -> None:
    """A device three times as fast gets three quarters, and both finish together."""
    devices = [FakeDevice(compute=_update, item_s=s) for s in (3e-5, 9e-5)]
    report = _balance(devices)
    assert report.shares[0].share == pytest.approx(0.75, abs=0.03)
    best_s = _ITEMS / (1 / 3e-5 + 1 / 9e-5)
    assert report.real_s < 1.1 * best_s
    assert report.shares[0].estimated_s == pytest.approx(_ITEMS * 3e-5, rel=0.1)
    assert report.estimated_s == pytest.approx(best_s, rel=0.15)


def _make_heavy(from_: float, to: float, heavy_s: float, light_s: float) -> Cost:
    return lambda items: np.where((items > from_ * 3072) & (items < to * 3072), heavy_s, light_s)


@pytest.mark.parametrize(
    "cost_s",
    [
        _make_heavy(0.62, 1.0, 80e-6, 4e-6),
        *(_make_heavy(at - 0.3, at + 0.3, 400e-6, 10e-6) for at in (0.35, 0.45, 0.55)),
        _make_heavy(0.54, 0.66, 2e-3, 0.1e-3),
    ],
)
def test_uneven_work_is_shared(cost_s: Cost) -> None:
    """Wherever heavy work lies, seen by samples or not, no device is given all that is left."""
    devices = [FakeDevice(compute=_update, item_s=cost_s, noise=0.05) for _ in range(2)]
    report = _balance(devices, _LOOP, items=3072, message_s=1e-3)
    assert report.real_s < 1.2 * float(cost_s(np.arange(3072)).sum()) / 2


@pytest.mark.parametrize("differs", [False, True])
def test_conflicting_writes_are_refused(*, differs: bool) -> None:
    """Devices that round differently contradict nobody: samples are no conflict; different values
    for one element change nothing of the caller's."""

    def round_up(arrays: Arrays, items: Numbers) -> None:
        arrays[0][arrays[1][items]] = items + 2

    def race(arrays: Arrays, items: Numbers) -> None:
        arrays[0][:3] = items.max() + 1000

    computes = (race, race) if differs else (_scatter, round_up)
    devices = [FakeDevice(compute=one, item_s=1e-6) for one in computes]
    with pytest.raises(InputError, match="depends on their order") if differs else nullcontext():
        _balance(devices, _SCATTER, most_off=1)


def test_content_is_compared_bit_by_bit() -> None:
    """A NaN equals itself, and -0.0 differs from 0.0; only different changes are conflicts."""
    before = np.array([np.nan, 0.0, 1.0, 2.0, 3.0])
    one, other = before.copy(), before.copy()
    one[1:] = (-0.0, 1.0, 7.0, 8.0)
    other[2:] = (5.0, 7.0, 9.0)
    views = [one.view(np.uint8), other.view(np.uint8)]
    assert merge_changes(before.view(np.uint8), views, 8) == 1
    assert np.isnan(one[0])
    assert np.signbit(one[1])
    assert one[2:4].tolist() == [5.0, 7.0]


@pytest.mark.parametrize("kernel", [_UPDATE, _SCATTER, _DOUBLE])
def test_buffers_without_a_copy_keep_what_others_wrote(kernel: Kernel) -> None:
    """What is only written or only read is used in place; a part that is run again is right."""
    compute = _COMPUTE[kernel]
    devices = [FakeDevice(compute=compute, item_s=s) for s in (2e-5, 1e-5)]
    devices[1].failing = {Run: 1}
    _balance(devices, kernel)
    shares = [np.shares_memory(*(one.arrays[index] for one in devices)) for index in (0, 1)]
    assert shares == [kernel is _DOUBLE, True]


@pytest.mark.parametrize(("kernel", "share"), [(_UPDATE, 0.62), (_DOUBLE, 0.5)])
def test_what_must_be_handed_over_counts(kernel: Kernel, share: float) -> None:
    """A device whose link is slow gets less, unless its results need not travel."""
    compute = _COMPUTE[kernel]
    devices = [FakeDevice(compute=compute, item_s=1e-5, upload_s=s) for s in (0.0, 0.1)]
    report = _balance(devices, kernel)
    assert report.shares[0].share == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("shares", [(), (0.5, 0.5)])
@pytest.mark.parametrize("kernel", [_UPDATE, _SCATTER])
@pytest.mark.parametrize(
    "failing", [{Prepare: 0}, {Run: 0}, {Run: 1}, {Run: 2}, {Run: 4}, {Collect: 0}]
)
def test_others_finish_the_work_of_one_that_fails(
    failing: dict[type, int], kernel: Kernel, shares: tuple[float, ...]
) -> None:
    """Whenever a device breaks, the results are right and the report says so."""
    devices = [FakeDevice(compute=_COMPUTE[kernel], item_s=s) for s in (2e-5, 1e-5)]
    devices[1].failing = failing
    report = _balance(devices, kernel, chosen=BalanceSettings(fixed_shares=shares))
    breaks = not shares or failing.get(Run, 0) == 0  # it runs once where shares are fixed
    assert report.merges["y"] is _RULES[kernel]
    assert ("fake-1 broke" in report.shares[1].failure) == breaks
    assert not report.shares[0].failure


def test_error_says_who_failed_when_nobody_is_left() -> None:
    """With all devices broken the arrays are as before, and each device's reason is named."""
    devices = [FakeDevice(compute=_update, failing={Run: runs}) for runs in (0, 1)]
    with pytest.raises(KernelcastError, match=r"fake-0 broke.*fake-1 broke"):
        _balance(devices)


@pytest.mark.parametrize("slow", [{"first_s": 10.0}, {"item_s": 1e-2}, {"item_s": 1e-1}])
def test_device_too_slow_to_be_of_use_is_left_out(slow: dict[str, float]) -> None:
    """The others do what it was given: it need not compile, or sample, to the end."""
    rest = [FakeDevice(compute=_update, item_s=5e-6) for _ in range(2)]
    report = _balance([*rest, FakeDevice(compute=_update, **{"item_s": 5e-6, **slow})])
    assert report.shares[2].work_groups == 0
    assert "left out" in report.notes[-1]


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("seed", range(10))
def test_one_shot_divides_by_speeds_however_late_a_device_starts(late: int, seed: int) -> None:
    """95 : 5 stays 95 : 5 beside a slow start, a first launch that compiles, and noise."""
    devices = [
        FakeDevice(compute=_update, item_s=s, noise=0.15, rng=np.random.default_rng(seed + 99 * n))
        for n, s in enumerate((1e-5, 19e-5))
    ]
    devices[late].prepare_s, devices[late].first_s = 3.0, 0.1
    report = _balance(devices)
    assert report.shares[0].share == pytest.approx(0.95, abs=0.03)
    assert report.shares[0].estimated_share == pytest.approx(0.95, abs=0.03)


def test_estimates_divide_the_work_without_samples() -> None:
    """The predictor's estimates make the first shares; wrong ones are corrected by what shows."""
    devices = [FakeDevice(compute=_update, item_s=s) for s in (1e-5, 3e-5)]
    alone_s = {"fake-0": _ITEMS * 1e-5, "fake-1": _ITEMS * 4.5e-5}
    report = _balance(devices, estimates={
        device: Interval(seconds=s, low=s / 1.5, high=s * 1.5, coverage=0.9)
        for device, s in alone_s.items()
    })  # fmt: skip
    assert report.shares[0].estimated_share == pytest.approx(4.5 / 5.5, abs=0.03)
    assert report.shares[0].share == pytest.approx(0.75, abs=0.03)
    sampled = [bar for bar in report.bars if bar.activity is Activity.SAMPLE]
    assert len(sampled) == 2  # the first slab of each


def test_work_that_the_source_tells_is_weighed() -> None:
    """Of a triangle, a device with the light end gets more work-groups from the start."""
    triangle = _make_kernel("triangle", "for (int k = 0; k <= i; k++) y[i] = 3 * y[i] + x[i];")
    _COMPUTE[triangle] = _update
    devices = [FakeDevice(compute=_update, item_s=lambda items: items * 1e-8) for _ in range(2)]
    report = _balance(devices, triangle)
    assert report.shares[0].estimated_share == pytest.approx(0.5**0.5, abs=0.05)
    assert report.real_s < 1.1 * 1e-8 * _ITEMS**2 / 4


@pytest.mark.parametrize("slower", [1, 2, 10])
def test_devices_need_not_wait_for_messages(slower: float) -> None:
    """No device rests while the host answers, but for the last small parts."""
    message_s = 2e-3
    devices = [FakeDevice(compute=_update, item_s=s) for s in (2e-5, 2e-5 * slower)]
    report = _balance(devices, message_s=message_s)
    for place in range(2):
        ran = [bar for bar in report.bars if (bar.device, bar.activity) == (place, Activity.RUN)]
        rests = [later.start_s - bar.end_s for bar, later in itertools.pairwise(ran)]
        assert len(rests) > 2
        assert sum(rest > 0 for rest in rests) <= 2, rests


@pytest.mark.parametrize("share", [0.0, 0.05, 0.333, 0.5, 1.0])
def test_shares_may_be_fixed(share: float) -> None:
    """Named shares are kept, whatever the speeds, and by who begins late; nothing is sampled."""
    devices = [FakeDevice(compute=_update, item_s=s) for s in (1e-6, 5e-6)]
    devices[1].prepare_s = 10.0
    chosen = BalanceSettings(fixed_shares=(share, 1 - share))
    report = _balance(devices, chosen=chosen)
    assert report.shares[0].share == pytest.approx(share, abs=0.001)
    assert devices[0].seen.get(Run, 0) == (share > 0)


@pytest.mark.parametrize("failing", [{}, {Prepare: 0}])
def test_next_launches_use_the_same_devices(failing: dict[type, int]) -> None:
    """Devices stay open, also one that refused a launch; each starts from its own arrays."""
    fakes = [FakeDevice(compute=_update, item_s=1e-4) for _ in range(2)]
    fakes[1].failing = failing
    devices = FakeDevices(fakes)
    places = [DevicePlace(device_id=f"fake-{n}") for n in range(2)]
    with Balancer(places, processes=devices) as balancer:
        for number, items in enumerate((4096, 8192, 1024)):
            y, x = np.arange(items, dtype=np.int32), np.full(items, 5, np.int32)
            ndrange = NDRange(global_size=(items,), local_size=(4,))
            report = balancer.balance(_UPDATE, ndrange, [y, x])
            assert np.array_equal(y, 3 * np.arange(items) + 5)
            has_failed = bool(failing) and not number
            assert bool(report.shares[1].failure) == has_failed
            assert bool(report.shares[1].work_groups) != has_failed
    balancer.close()  # once more does no harm
    assert devices.is_closed


@settings(max_examples=40)
@given(
    st.lists(st.floats(min_value=1e-7, max_value=1e-4), min_size=1, max_size=4),
    st.integers(min_value=1, max_value=700),
    st.floats(min_value=0.1, max_value=1.0),
    st.dictionaries(st.sampled_from([Prepare, Run, Collect]), st.integers(0, 12)),
    st.integers(min_value=0, max_value=99),
)
def test_every_work_item_counts_once(
    speeds: list[float], groups: int, first_share: float, failing: dict[type, int], seed: int
) -> None:
    """Any speeds, sizes and failures: the result is that of one device, or nothing is changed."""
    devices = [FakeDevice(compute=_update, item_s=s, noise=0.2) for s in speeds]
    devices[-1].failing = failing
    chosen = BalanceSettings(first_share=first_share, seed=seed)
    try:
        _balance(devices, items=groups * _LOCAL, chosen=chosen)
    except KernelcastError:
        if len(devices) > 1 or not failing:
            raise
        return
