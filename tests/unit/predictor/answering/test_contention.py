"""The time beside other programs, from what a device's threads waited."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.contention import Contention, list_contention
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate, Interval, Measurement
from kernelcast.records.explanation import Explanation, Tier
from kernelcast.sampling import host as module
from kernelcast.sampling.host import ContentionMeter, Waiting
from kernelcast.training_data.store import Store
from support.builders import make_description, make_estimate
from support.fake_executor import FakeExecutor, make_problem

ALONE = Interval(seconds=2.0, low=1.6, high=2.5, coverage=0.9)


def _contention(*, waited_s: float, seen_s_ago: float = 0.0) -> Contention:
    when = datetime.now(UTC) - timedelta(seconds=seen_s_ago)
    return Contention(worked_s=0.1, waited_s=waited_s, others=2, measured_at=when)


def _estimate(contention: Contention | None, **changes: object) -> Estimate:
    return make_estimate(
        interval=ALONE,
        device_id=make_description().id,
        warnings=("else", *list_contention(contention)),
        explanation=Explanation(tier=Tier.LINEAR, contention=contention),
        **changes,
    )


@given(seconds=st.floats(1e-6, 10), waited_s=st.floats(0, 10))
def test_the_time_alone_is_found_again(seconds: float, waited_s: float) -> None:
    """Short launches are let in at once; what is kept of a run and what is expected agree."""
    seen = _contention(waited_s=waited_s)
    alone_s = seen.find_alone(seconds)
    alone = Interval(seconds=alone_s, low=alone_s, high=alone_s, coverage=0.9)
    assert seen.slow(alone).seconds == pytest.approx(seconds, rel=1e-6)
    assert seconds / seen.slowdown <= alone_s * (1 + 1e-9)
    assert alone_s <= seconds * (1 + 1e-9)
    short = Interval(seconds=1e-5, low=1e-5, high=1e-5, coverage=0.9)
    assert seen.slow(short).seconds <= 1e-5 * (1 + 0.01 * seen.slowdown)


def test_an_estimate_holds_both_times() -> None:
    """The time alone stays the answer; the time now is longer and less certain, and runs are judged
    by what slowed them, not by what is now."""
    measured = Measurement(durations_s=(8.0,), slowdown=4.0)
    busy = _estimate(_contention(waited_s=0.2), measurement=measured)
    assert busy.interval == ALONE
    assert busy.now is not None
    assert busy.now.seconds == pytest.approx(6.0)
    assert busy.now.high / busy.now.low > ALONE.high / ALONE.low
    assert _contention(waited_s=0.02).slow(ALONE).low >= ALONE.low
    assert busy.error == pytest.approx(0.0)
    assert _estimate(None, measurement=measured).error == pytest.approx(0.0)
    now = busy.to_dict()["now"]
    assert isinstance(now, dict)
    assert now["slowdown"] == pytest.approx(3.0)
    assert busy.to_row()["now_s"] == pytest.approx(6.0)
    assert "now, beside other programs" in str(busy)
    assert "2 other programs are at work" in busy.warnings[1]
    assert "3.0 times as long" in busy.warnings[1]


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Have predictors ask a meter that finds what it is told: first, nobody else at work."""
    found = Mock(spec=ContentionMeter)
    monkeypatch.setattr(PredictorOptions, "choose_meter", lambda _: found)
    tell(found, None)
    return found


def tell(meter: Mock, contention: Contention | None) -> None:
    meter.measure.return_value = meter.judge_run.return_value = contention


def test_what_is_observed_beside_others_is_kept_as_the_time_alone(
    meter: Mock, store: Store
) -> None:
    """History holds 1 s of a run that took 3; what is expected is what runs take now."""
    problem, device = make_problem(), make_description()
    options = PredictorOptions(executor=FakeExecutor())
    with Predictor([device], store=store, options=options) as predictor:
        before = predictor.estimate(problem, device)
        assert before.now is None
        tell(meter, _contention(waited_s=0.2))
        for _ in range(3):
            assert predictor.observe(before, 3.0, is_first=False) == frozenset()
        busy = predictor.estimate(problem, device)
        assert busy.estimates_s["history"] == pytest.approx(1.0)
        assert busy.expected.seconds == pytest.approx(3 * busy.seconds)
        assert any("3.0 times as long" in one for one in busy.warnings)
        tell(meter, _contention(waited_s=0.1))
        less = predictor.estimate(problem, device)
        assert less.expected.seconds == pytest.approx(2 * busy.seconds)
        tell(meter, None)
        assert predictor.observe(before, 1.0, is_first=False) == frozenset()
        alone = predictor.estimate(problem, device)
        assert alone.now is None
        assert not any("other programs" in one for one in alone.warnings)
        predictor.observe(before, 4.0, is_first=False, slowdown=4.0)
        assert predictor.estimate(problem, device).estimates_s["history"] == pytest.approx(1.0)
        with pytest.raises(InputError, match="slowdown"):
            predictor.observe(before, 1.0, slowdown=0.5)
        predictor.flush()
    kept = list(store.find())
    assert [one.seconds for one in kept] == pytest.approx([1.0] * 5)
    slowdowns = [one.machine_state.slowdown for one in kept]
    assert sorted(slowdowns, key=lambda one: one or 0.0) == pytest.approx([None, 3, 3, 3, 4])


def test_the_threads_that_ran_a_launch_tell_what_it_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this process where it ran here; else as many that work for it are tried once."""
    device, meter = make_description(), ContentionMeter()
    readings = [{"1": Waiting(0.0, 0.0)}, {"1": Waiting(1.0, 2.0)}, {"1": Waiting(1.0, 2.0)}]
    others = [2]
    monkeypatch.setattr(module, "read_waiting", lambda: readings.pop(0))
    monkeypatch.setattr(module, "count_others", lambda: others[0])
    monkeypatch.setattr(module, "_work", lambda _: Waiting(0.1, 0.1))
    assert meter.judge_run(device.id, 2.0) is None
    meter.note(device)
    here = meter.judge_run(device.id, 2.0)
    assert here is not None
    assert here.slowdown == pytest.approx(3.0)
    for _ in range(2):
        elsewhere = meter.measure(device.id)
        assert elsewhere is not None
        assert elsewhere.slowdown == pytest.approx(2.0)
    assert meter.judge_run(device.id, 2.0) == elsewhere
    others[0], readings[:] = 0, [{"1": Waiting(9.0, 9.0)}]
    monkeypatch.setattr(meter, "_counted_until_s", 0.0)
    assert meter.judge_run(device.id, 2.0) is None
