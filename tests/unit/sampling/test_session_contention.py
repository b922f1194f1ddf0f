"""How often a session tries what other programs leave to its device."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kernelcast.records.contention import HOLDS_S, Contention
from kernelcast.records.device import DeviceKind
from kernelcast.sampling import session as module
from kernelcast.sampling.behaviour import DeviceBehaviour
from kernelcast.sampling.session import DeviceSession
from support.builders import make_description

# Later than any test: what ages is what a test makes old.
FIRST = Contention(
    worked_s=0.1, waited_s=0.1, others=2, measured_at=datetime.now(UTC) + timedelta(days=1)
)
SECOND = replace(FIRST, waited_s=0.2)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Contention | None]:
    """Have trials find what is listed, the next one first; what is left was not tried."""
    found: list[Contention | None] = [FIRST, SECOND, None]
    monkeypatch.setattr(module, "measure_contention", lambda *_: found.pop(0))
    monkeypatch.setattr(module, "count_others", lambda: 2)
    monkeypatch.setattr(module, "LaunchTimer", lambda *_, **__: None)
    monkeypatch.setattr(module, "Probe", lambda *_: None)
    return found


@pytest.fixture
def session() -> DeviceSession:
    """Give a session of a device that is not there."""
    found = object.__new__(DeviceSession)
    found.description = replace(make_description(), kind=DeviceKind.CPU)
    found.queue = found._probe_program = None
    found.uses_event_timer = True
    found.behaviour = object.__new__(DeviceBehaviour)
    object.__setattr__(found.behaviour, "settle_steps", 10)
    object.__setattr__(found.behaviour, "settled_s", 1.0)
    found._trials = []
    return found


def test_two_trials_hold_for_a_while(
    session: DeviceSession, tried: list[Contention | None]
) -> None:
    """The third answer is that of both together; nothing is launched for it."""
    assert session.measure_contention() == FIRST
    assert session.measure_contention() == SECOND
    third = session.measure_contention()
    assert third is not None
    assert third.slowdown == pytest.approx(2.5)
    assert third.trials == 2
    assert tried == [None]


def test_old_trials_do_not_count(session: DeviceSession, tried: list[Contention | None]) -> None:
    """What other programs did half a minute ago is no matter."""
    old = datetime.now(UTC) - timedelta(seconds=HOLDS_S + 1)
    session._trials = [replace(FIRST, measured_at=old)] * 2
    assert session.measure_contention() == FIRST
    assert tried == [SECOND, None]


def test_a_quiet_machine_is_not_tried(
    session: DeviceSession, tried: list[Contention | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was seen a moment ago: nobody else wants to run now."""
    session._trials = [FIRST, SECOND]
    monkeypatch.setattr(module, "count_others", lambda: 0)
    assert session.measure_contention() is None
    assert len(tried) == 3
