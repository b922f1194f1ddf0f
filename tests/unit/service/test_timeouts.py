"""A launch that hangs blocks its device once, and nobody waits longer than told."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient

from kernelcast.launches.problem_file import read_inline_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import EstimateTimeoutError
from kernelcast.service import Limits, ServiceSettings, estimating
from kernelcast.service.backend import Ask
from kernelcast.service.errors import ApiError
from kernelcast.service.estimating import refuse_repeat, remember_timeout
from support.running_service import wait_until
from support.service_backend import (
    FIRST,
    PROBLEM,
    SECOND,
    FakeBackend,
    Plain,
    failing,
    make_devices,
    open_client,
    send_estimate,
    service_of,
)

_WAIT_S = 1.5


def _open(settings: ServiceSettings, backend: FakeBackend, **limits: float) -> TestClient:
    return open_client(settings, backend, limits=replace(Limits(), **limits))


def test_a_repeat_is_refused_and_another_launch_is_run(
    client: TestClient, backend: FakeBackend, problem: Plain
) -> None:
    """The refusal says at once when the launch hung and what can be done.

    Another source, option, size or argument is another launch; so is another device.
    """
    backend.before = failing(EstimateTimeoutError("no answer within 60 s"))
    assert send_estimate(client, problem).status_code == 422
    backend.before = lambda _: None
    renamed = send_estimate(client, {**problem, "name": "x"}, budget=0.1, seed=3)
    for one in (send_estimate(client, problem), renamed):
        assert one.status_code == 422
        error = one.json()["error"]
        assert error["code"] == "kernel_timeout"
        for told in ("did not end when it was sampled at 20", "within 60 s", "longer --timeout"):
            assert told in error["message"]
        (told,) = error["detail"]["estimates"]
        assert told["error"]["detail"]["limit_seconds"] == 60
        assert "retry-after" not in one.headers
    assert backend.calls["sample"] == 1
    for change in (
        {"code": problem["code"].replace("1.0f", "2.0f")},
        {"build_options": ["-DN=1"]},
        {"global_size": [512]},
        {"args": [{"buffer": "float32", "count": 2048}]},
    ):
        assert send_estimate(client, {**problem, **change}).status_code == 200
    assert send_estimate(client, problem, devices=[SECOND]).status_code == 200


def test_all_processes_know_and_a_longer_limit_is_tried(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """What one process has seen hang no other one runs, nor the next service with this limit."""
    others = FakeBackend(str(settings.database))
    with _open(settings, backend) as one, _open(settings, others) as other:
        backend.before = failing(EstimateTimeoutError("no answer within 60 s"))
        send_estimate(one, problem)
        assert send_estimate(other, problem).status_code == 422
    with _open(settings, others, sample_seconds=59) as shorter:
        assert send_estimate(shorter, problem).status_code == 422
    assert others.calls["sample"] == 0
    with _open(settings, others, sample_seconds=600) as longer:
        assert send_estimate(longer, problem).status_code == 200
    with _open(settings, others) as forgiven:
        assert send_estimate(forgiven, problem, seed=5).status_code == 200


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
        first = pool.submit(send_estimate, client, problem)
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
            answer = send_estimate(client, behind)
            waited_s = time.monotonic() - started_s
        found = answer.json()["estimates"][0]
        assert 0.5 * _WAIT_S < waited_s < _WAIT_S + 5  # others use this machine, too
        assert found["tier"] == "analytic"
        assert found["warnings"][0].startswith(f"not sampled: {FIRST}: ")
        assert "samplings are before it" in found["explanation"]["missing"]["linear"]
        later = send_estimate(client, behind).json()["estimates"][0]
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
        second = pool.submit(send_estimate, client, problem, budget=0.5)
        queue = service_of(client).estimating.queue_of(FIRST)
        wait_until(lambda: queue.length, lambda length: length == 2)
        ends.set()
        assert second.result().json()["error"]["code"] == "kernel_timeout"
    assert backend.calls["sample"] == 1


def test_it_expires_and_stands_longer_each_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes, then four times as long up to a day: a disturbed run is soon forgiven."""
    del folder
    clock = Mock(wraps=datetime)
    clock.now.return_value = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(estimating, "datetime", clock)
    ask = Ask(
        problem=read_inline_problem(PROBLEM), device=make_devices()[0],
        settings=EstimateSettings(), timeout_s=60.0,
    )  # fmt: skip
    stood = []
    for _ in range(8):
        remember_timeout(ask, "hung")
        with pytest.raises(ApiError) as refused:
            refuse_repeat(ask, Mock())
        until = datetime.fromisoformat(refused.value.detail["not_before"])  # type: ignore[index]
        stood.append(until - clock.now())
        clock.now.return_value = until
        refuse_repeat(ask, Mock())
    assert stood[:3] == [timedelta(minutes=m) for m in (10, 40, 160)]
    assert stood[-1] == timedelta(days=1)
