"""A launch that hangs blocks its device once, and nobody waits longer than told."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import EstimateTimeoutError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.service import Limits, ServiceSettings, estimating
from kernelcast.service.backend import Ask
from kernelcast.service.errors import ApiError
from kernelcast.service.estimating import refuse_repeat, remember_timeout
from support.service_backend import FakeBackend, failing, make_devices, open_client

Plain = dict[str, Any]
FIRST, SECOND = "fake-device-0000", "other-device-1111"
_WAIT_S = 1.5


def _open(settings: ServiceSettings, backend: FakeBackend, **limits: float) -> TestClient:
    return open_client(settings, backend, limits=replace(Limits(), **limits))


def _post(client: TestClient, problem: Plain, **more: object) -> httpx.Response:
    answer: httpx.Response = client.post(
        "/v1/estimates", json={"problem": problem, "devices": [FIRST], **more}
    )
    return answer


def test_a_repeat_is_refused_without_running(
    client: TestClient, backend: FakeBackend, problem: Plain
) -> None:
    """The answer comes at once, says when the launch hung and what can be done."""
    backend.before = failing(EstimateTimeoutError("no answer within 60 s"))
    assert _post(client, problem).status_code == 422
    backend.before = lambda _: None
    again = [_post(client, problem), _post(client, {**problem, "name": "x"}, budget=0.1, seed=3)]
    assert backend.calls["sample"] == 1
    for one in again:
        assert one.status_code == 422
        error = one.json()["error"]
        assert error["code"] == "kernel_timeout"
        assert "did not end when it was sampled at 20" in error["message"]
        assert "no answer within 60 s" in error["message"]
        assert "longer --timeout" in error["message"]
        (told,) = error["detail"]["estimates"]
        assert told["error"]["detail"]["limit_seconds"] == 60
        assert "retry-after" not in one.headers


@pytest.mark.parametrize(
    "change",
    [
        {"code": "kernel void fill(global float *a) { a[get_global_id(0)] = 2.0f; }"},
        {"build_options": ["-DN=1"]},
        {"global_size": [512]},
        {"args": [{"buffer": "float32", "count": 2048}]},
    ],
)
def test_a_changed_launch_is_run(
    client: TestClient, backend: FakeBackend, problem: Plain, change: Plain
) -> None:
    """Another source, option, size or argument is another launch; so is another device."""
    backend.before = failing(EstimateTimeoutError("no answer within 60 s"))
    _post(client, problem)
    backend.before = lambda _: None
    assert _post(client, {**problem, **change}).status_code == 200
    assert _post(client, problem, devices=[SECOND]).status_code == 200
    assert _post(client, problem).status_code == 422


def test_all_processes_know_and_a_longer_limit_is_tried(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """What one process has seen hang no other one runs, nor the next service with this limit."""
    others = FakeBackend(str(settings.database))
    with _open(settings, backend) as one, _open(settings, others) as other:
        backend.before = failing(EstimateTimeoutError("no answer within 60 s"))
        _post(one, problem)
        assert _post(other, problem).status_code == 422
    with _open(settings, others, sample_seconds=59) as shorter:
        assert _post(shorter, problem).status_code == 422
    assert others.calls["sample"] == 0
    with _open(settings, others, sample_seconds=600) as longer:
        assert _post(longer, problem).status_code == 200
    with _open(settings, others) as forgiven:
        assert _post(forgiven, problem, seed=5).status_code == 200


@contextmanager
def _hang(client: TestClient, backend: FakeBackend, problem: Plain) -> Iterator[threading.Event]:
    """Have a launch occupy the device; it is ended as by the time limit when the event is set."""
    begun, ends = threading.Event(), threading.Event()

    def hold(_: Ask) -> None:
        begun.set()
        ends.wait(60)
        raise EstimateTimeoutError("no answer within 60 s")

    backend.before = hold
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(_post, client, problem)
        try:
            assert begun.wait(60)
            yield ends
        finally:
            ends.set()
            backend.before = lambda _: None
            assert first.result().status_code == 422


def test_who_waits_gets_the_best_answer_without_running(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """Within the longest wait, with the reason; sampled as soon as the device is free."""
    behind = {**problem, "global_size": [128]}
    backend.is_calibrated = True
    with _open(settings, backend, wait_seconds=_WAIT_S) as client:
        with _hang(client, backend, problem):
            started_s = time.monotonic()
            answer = _post(client, behind)
            waited_s = time.monotonic() - started_s
        found = answer.json()["estimates"][0]
        assert 0.5 * _WAIT_S < waited_s < _WAIT_S + 5  # others use this machine, too
        assert found["tier"] == "analytic"
        assert found["warnings"][0].startswith(f"not sampled: {FIRST}: ")
        assert "samplings are before it" in found["explanation"]["missing"]["linear"]
        later = _post(client, behind).json()["estimates"][0]
    assert later["tier"] == "linear"
    assert not later["is_kept"]


def test_the_same_launch_in_the_queue_is_not_run_after_the_first_hung(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """Asked with another budget it is another question, and the same hang."""
    with (
        _open(settings, backend) as client,
        ThreadPoolExecutor(1) as pool,
        _hang(client, backend, problem) as ends,
    ):
        second = pool.submit(_post, client, problem, budget=0.5)
        lane = client.app.state.service.estimating.queue_of(FIRST)  # type: ignore[attr-defined]
        while lane.length < 2:
            time.sleep(0.01)
        ends.set()
        assert second.result().json()["error"]["code"] == "kernel_timeout"
    assert backend.calls["sample"] == 1


def _ask() -> Ask:
    kernel = Kernel(name="k", source="kernel void k() {}")
    ndrange = NDRange(global_size=(64,))
    problem = Problem(name="p", kernel=kernel, ndrange=ndrange, arguments=())
    settings = EstimateSettings()
    return Ask(problem=problem, device=make_devices()[0], settings=settings, timeout_s=60.0)


def test_it_expires_and_stands_longer_each_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes, then four times as long up to a day: a disturbed run is soon forgiven."""
    now = datetime(2026, 1, 1, tzinfo=UTC)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(now.timestamp(), tz)

    monkeypatch.setattr(estimating, "datetime", Clock)
    stood = []
    for _ in range(8):
        remember_timeout(_ask(), "hung")
        with pytest.raises(ApiError) as refused:
            refuse_repeat(_ask())
        until = datetime.fromisoformat(refused.value.detail["not_before"])  # type: ignore[index]
        stood.append(until - now)
        now = until
        refuse_repeat(_ask())
    assert stood[:3] == [timedelta(minutes=m) for m in (10, 40, 160)]
    assert stood[-1] == timedelta(days=1)
