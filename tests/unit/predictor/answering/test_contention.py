"""The time beside other programs, from what a device's threads waited."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kernelcast.predictor.answering.contention import forget_old_contention
from kernelcast.predictor.answering.plausibility import expect
from kernelcast.records.contention import Contention, combine_contention, list_contention
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate, Interval, Measurement
from kernelcast.records.explanation import Explanation, Tier
from kernelcast.records.ndrange import NDRange

ALONE = Interval(seconds=2.0, low=1.6, high=2.5, coverage=0.9)


def _contention(*, waited_s: float, worked_s: float = 0.1, others: float = 2) -> Contention:
    return Contention(
        worked_s=worked_s, waited_s=waited_s, others=others, measured_at=datetime.now(UTC)
    )


def _estimate(contention: Contention | None, **changes: object) -> Estimate:
    known: dict[str, object] = {
        "device": "a device",
        "device_id": "device",
        "kernel": "kernel",
        "ndrange": NDRange(global_size=(64,), local_size=(8,)),
        "compute_units": 2,
        "saturation": None,
        "sample_work_groups": (2, 3),
        "sampled_work_groups": 5,
        "interval": ALONE,
        "tier": Tier.LINEAR,
        "estimates_s": {},
        "sampling_seconds": 0.01,
        "overhead_seconds": 0.01,
        "warnings": ("else", *list_contention(contention)),
        "explanation": Explanation(tier=Tier.LINEAR, contention=contention),
    }
    return Estimate(**known | changes)  # type: ignore[arg-type]  # of any field


def test_threads_that_wait_make_launches_longer() -> None:
    """Who waits one and a half times as long as it works takes 2.5 times as long."""
    assert _contention(waited_s=0.15).slowdown == pytest.approx(2.5)


def test_moments_add_up() -> None:
    """Two moments count by their lengths, and say more than one."""
    two = combine_contention([_contention(waited_s=0.1), _contention(waited_s=0.3, worked_s=0.3)])
    assert two is not None
    assert two.slowdown == pytest.approx(2.0)
    assert two.trials == 2
    one = _contention(waited_s=0.1).slow(ALONE)
    assert two.slow(ALONE).high < one.high
    assert combine_contention([]) is None


def test_the_time_now_is_longer_and_less_certain() -> None:
    """The interval moves by the slowdown, becomes wider, and never falls below the time alone."""
    now = _contention(waited_s=0.2).slow(ALONE)
    assert now.seconds == pytest.approx(6.0)
    assert math.log(now.high / now.low) > math.log(ALONE.high / ALONE.low)
    assert _contention(waited_s=0.02).slow(ALONE).low >= ALONE.low


def test_an_idle_machine_has_one_time() -> None:
    """What waits next to nothing gets no second time and no warning."""
    idle = _estimate(_contention(waited_s=0.003))
    assert idle.now is None
    assert idle.expected == ALONE
    assert idle.warnings == ("else",)
    assert idle.to_dict()["now"] is None


def test_an_estimate_holds_both_times() -> None:
    """The time alone stays the answer; what was measured is held against the time as it is now."""
    busy = _estimate(_contention(waited_s=0.2), measurement=Measurement(durations_s=(6.0,)))
    assert busy.interval == ALONE
    assert busy.error == pytest.approx(0.0)
    now = busy.to_dict()["now"]
    assert isinstance(now, dict)
    assert now["slowdown"] == pytest.approx(3.0)
    assert busy.to_row()["now_s"] == pytest.approx(6.0)
    assert "now, beside other programs" in str(busy)
    assert "beside other programs" in busy._repr_html_()
    assert "2 other programs are at work" in busy.warnings[1]
    assert "3.0 times as long" in busy.warnings[1]


def test_observations_may_be_as_long_as_other_programs_make_them() -> None:
    """A run that is far from the time alone and near the time now contradicts nothing."""
    seconds = 15.0 * ALONE.seconds
    assert not expect(_estimate(None)).holds(seconds)
    assert expect(_estimate(_contention(waited_s=0.4))).holds(seconds)
    assert expect(_estimate(_contention(waited_s=0.4))).holds(ALONE.seconds)


def test_a_kept_answer_forgets_what_others_did() -> None:
    """After half a minute only the time alone is left, without the warning."""
    fresh = _estimate(_contention(waited_s=0.2))
    assert forget_old_contention(fresh) is fresh
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    seen = replace(_contention(waited_s=0.2), measured_at=an_hour_ago)
    old = forget_old_contention(_estimate(seen))
    assert old.now is None
    assert old.warnings == ("else",)
    assert old.interval == ALONE


@pytest.mark.parametrize("worked_s", [0.0, -1.0, math.nan])
def test_nothing_follows_from_no_work(worked_s: float) -> None:
    """Threads that did not work tell nothing."""
    with pytest.raises(InputError):
        _contention(waited_s=0.1, worked_s=worked_s)
