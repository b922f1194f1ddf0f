"""Estimates: kept at once, sampled one at a time and again, and not again where a launch hangs."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest
from fastapi.testclient import TestClient

from kernelcast.launches.problem_file import read_inline_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.memory import Answer
from kernelcast.predictor.answering.processes import CallerProcesses
from kernelcast.records.errors import (
    EstimateTimeoutError,
    InputError,
    KernelcastError,
    KernelRunError,
)
from kernelcast.records.explanation import Explanation, ModelFacts
from kernelcast.service import Limits, ServiceSettings, estimating
from kernelcast.service.backend import Ask, Backend
from kernelcast.service.device_lock import DeviceLock
from kernelcast.service.errors import ApiError
from kernelcast.service.estimating import Estimating, refuse_repeat, remember_timeout
from kernelcast.service.routes.estimates import EstimateOut
from support.running_service import wait_until
from support.service_backend import (
    FIRST,
    PROBLEM,
    SECOND,
    FakeBackend,
    Plain,
    estimate,
    failing,
    make_devices,
    observe,
    open_client,
    send_estimate,
    service_of,
)


def test_samples_have_to_gain_what_request_or_service_ask(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """A request's `least_gain` counts before the service's; below 0 is refused."""
    asked: list[float] = []
    backend.before = lambda ask: asked.append(ask.settings.least_gain)
    with open_client(settings, backend, least_gain=3.0) as client:
        estimate(client, problem)
        estimate(client, problem, least_gain=0.5)
    assert asked == [3.0, 0.5]
    with pytest.raises(InputError, match="least gain"):
        replace(settings, least_gain=-1.0)


@pytest.mark.parametrize(
    ("error", "code"),
    [(KernelRunError("died"), "kernel_crashed"), (KernelcastError("odd"), "internal_error")],
)
def test_one_device_that_fails_does_not_take_the_others_answers(
    client: TestClient, backend: FakeBackend, problem: Plain, error: KernelcastError, code: str
) -> None:
    """Its own answer says why."""
    backend.before = lambda ask: failing(error)(ask) if ask.device.id == FIRST else None
    first, second = send_estimate(client, problem, devices=[]).json()["estimates"]
    assert first["error"]["code"] == code
    assert "seconds" not in first
    assert second["seconds"] > 0


@pytest.mark.parametrize("sampling", ["never", "auto"])
def test_as_many_problems_as_a_request_may_have_are_answered(
    client: TestClient, backend: FakeBackend, problem: Plain, sampling: str
) -> None:
    backend.is_calibrated = True
    problems = [{"problem": {**problem, "global_size": [64 * one]}} for one in range(1, 65)]
    asked = {"problems": problems, "devices": [FIRST], "sampling": sampling}
    answers = client.post("/v1/estimates", json=asked).json()["estimates"]
    assert [one.get("error") for one in answers] == [None] * 64


def test_one_sampling_at_a_time_on_a_device(
    client: TestClient, backend: FakeBackend, problem: Plain
) -> None:
    """Whoever comes meanwhile waits; devices do not wait for each other."""
    backend.pause_s = 0.05
    problems = [{**problem, "global_size": [64 * (n + 1)]} for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: send_estimate(client, one, devices=[]), problems))
    assert backend.calls["sample"] == 12
    assert backend.most_at_once == {FIRST: 1, SECOND: 1}


def test_a_full_queue_says_when_to_come_again(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """503 with Retry-After; what needs no sampling is answered meanwhile."""
    first, second, third = ({**problem, "global_size": [64 * n]} for n in (2, 3, 4))
    with _open(settings, backend, queue=1) as client, ThreadPoolExecutor(1) as pool:
        kept = estimate(client, problem)
        with _hang(client, backend, first):
            waiting = pool.submit(send_estimate, client, second)
            queue = service_of(client).estimating.queue_of(FIRST)
            wait_until(lambda: queue.length, lambda length: length == 2)
            refused = send_estimate(client, third)
            meanwhile = estimate(client, problem)
        assert waiting.result().status_code == 200
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "device_busy"
    assert int(refused.headers["retry-after"]) >= 1
    assert meanwhile["seconds"] == kept["seconds"]


def test_a_device_that_another_process_measures_is_waited_for(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """The lock of a device holds across processes; the wait has an end, and the answer a reason."""
    lock = DeviceLock(FIRST)
    with open_client(settings, backend, limits=Limits(wait_seconds=0.1)) as client:
        assert lock.acquire()
        refused = send_estimate(client, problem)
        lock.release()
        later = send_estimate(client, problem)
    assert refused.status_code == 503
    assert "a job or another process measures on it" in refused.json()["error"]["message"]
    assert later.status_code == 200


def test_answers_do_not_say_where_models_are(
    client: TestClient, backend: FakeBackend, problem: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name and version of a model are told, its folder is not, nor what is not described."""
    facts = ModelFacts(
        name="hybrid/x", version="0001-0123456789ab", place="/secret/models", schema_id="s",
        data_digest="d", rows=3, error=0.1,
    )  # fmt: skip
    ask_backend = backend.answer

    def explain(ask: Ask) -> Answer:
        found = ask_backend(ask)
        explanation = Explanation(tier=found.estimate.tier, model=facts)
        return replace(found, estimate=replace(found.estimate, explanation=explanation))

    monkeypatch.setattr(backend, "answer", explain)
    answer = estimate(client, problem)
    assert answer["explanation"]["model"]["name"] == "hybrid/x"
    assert "/secret" not in str(answer)
    assert set(answer) <= set(EstimateOut.model_fields)


def test_other_models_make_answers_anew(
    client: TestClient, backend: FakeBackend, problem: Plain
) -> None:
    """As soon as the service has looked; before, a repeat runs nothing."""
    for models, is_kept in ((1, False), (1, True), (2, False)):
        backend.models = models
        client.portal.call(service_of(client).watcher.look)  # type: ignore[union-attr]
        assert estimate(client, problem)["is_kept"] == is_kept
    assert backend.calls["sample"] == 2


@pytest.fixture
def quiet_client(settings: ServiceSettings, backend: FakeBackend) -> Iterator[TestClient]:
    with open_client(settings, backend, refine_share=0.0) as found:
        yield found


def refine(client: TestClient) -> bool:
    """Refine the answer that has waited longest; tell whether it can be made better still."""
    estimating = service_of(client).estimating
    assert client.portal is not None
    return client.portal.call(estimating.refine, next(iter(estimating.refinable.values())))


def test_another_moment_makes_the_kept_answer_better(
    quiet_client: TestClient, problem: Plain
) -> None:
    """Narrows the interval as soon as nobody else measures, and repeats find the new answer."""
    first = estimate(quiet_client, problem)
    lock = DeviceLock(FIRST)
    assert lock.acquire(5)
    try:
        assert refine(quiet_client)
    finally:
        lock.release()
    assert estimate(quiet_client, problem) == {**first, "is_kept": True}
    assert refine(quiet_client)
    second = estimate(quiet_client, problem)
    assert second["is_kept"]
    assert second["high"] / second["low"] < first["high"] / first["low"]
    assert len(second["explanation"]["pieces"]) > len(first["explanation"]["pieces"])


def test_the_service_refines_by_itself_and_counts_it(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Begins soon after an answer where a share of the time is allowed."""
    monkeypatch.setattr(estimating, "_APART_S", 0.01)
    line = f'kernelcast_refinements_total{{device_id="{FIRST}"}}'
    with open_client(settings, backend, refine_share=1.0) as client:
        estimate(client, problem)
        wait_until(lambda: client.get("/metrics").text, lambda text: line in text)
        assert client.get("/health").json()["refine_share"] == 1.0


def test_pauses_keep_to_the_share(
    quiet_client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pauses 49 times as long as the last refinement took where 2 % are allowed."""
    sleep = AsyncMock(side_effect=[None, None, None, asyncio.CancelledError])
    # Of this module alone: the service beside it pauses, too.
    monkeypatch.setattr(estimating, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(Estimating, "_refine_next", AsyncMock(side_effect=[0.0, 2.0, 0.001]))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(service_of(quiet_client).estimating.refine_while_idle(0.02))
    pauses_s = [one.args[0] for one in sleep.await_args_list]
    assert pauses_s == pytest.approx([1.0, 1.0, 98.0, 1.0])


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
            backend.before = lambda _: None
            ends.set()
            assert first.result().status_code == 422


def test_who_waits_gets_the_best_answer_without_running(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """Within the longest wait, with the reason; sampled as soon as the device is free."""
    behind = {**problem, "global_size": [128]}
    backend.is_calibrated = True
    with _open(settings, backend, wait_seconds=1.5) as client:
        with _hang(client, backend, problem):
            started_s = time.monotonic()
            answer = send_estimate(client, behind)
            waited_s = time.monotonic() - started_s
        found = answer.json()["estimates"][0]
        assert 0.75 < waited_s < 6.5  # others use this machine, too
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


def test_sizes_are_scaled_by_what_they_do(
    settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the size is four times the work; the source is not read in the service's process."""

    def make_sum(n: int) -> Plain:
        source = """kernel void sum(global const float *a, global float *b, uint n) {
            for (uint k = 0; k < n; ++k) b[get_global_id(0)] += a[k]; }"""
        arguments = [*[{"buffer": "float32", "count": n}] * 2, {"scalar": "uint32", "value": n}]
        launch = {"global_size": [n], "local_size": [64], "args": arguments}
        return {"code": source, "kernel": "sum", **launch}

    fail = Mock(side_effect=AssertionError("a stranger's source was read here"))
    monkeypatch.setattr("kernelcast.features.analysis.read_facts", fail)
    monkeypatch.setattr("kernelcast.launches.source_check.count_work", fail)
    # Devices that do not exist: nothing can be sampled.
    monkeypatch.setattr(Backend, "list_devices", lambda _: make_devices())
    backend = Backend(str(settings.database), None, CallerProcesses())
    with closing(backend), open_client(settings, backend) as client:
        observe(client, *(
            {"key": str(n), "problem": make_sum(n), "device": FIRST, "seconds": 1e-10 * n**2}
            for n in (4096, 8192, 16384)
        ))  # fmt: skip
        for n in (2048, 32768):
            found = estimate(client, make_sum(n), sampling="never")
            assert found["tier"] == "sizes"
            assert found["seconds"] == pytest.approx(1e-10 * n**2, rel=0.1)
    fail.assert_not_called()
