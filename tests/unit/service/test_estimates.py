"""Estimates: kept ones at once, sampled ones one at a time."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from kernelcast.predictor.answering.memory import Answer
from kernelcast.records.errors import (
    InputError,
    KernelcastError,
    KernelRunError,
)
from kernelcast.records.explanation import Explanation, ModelFacts
from kernelcast.service import Limits, ServiceSettings
from kernelcast.service.backend import Ask
from kernelcast.service.device_lock import DeviceLock
from kernelcast.service.routes.estimates import EstimateOut
from support.service_backend import (
    FIRST,
    SECOND,
    FakeBackend,
    Plain,
    estimate,
    failing,
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
    begun, go_on = threading.Event(), threading.Event()
    sizes = [{**problem, "global_size": [64 * n]} for n in (2, 3, 4)]

    def hold(_: object) -> None:
        begun.set()
        go_on.wait(240)

    with (
        open_client(settings, backend, limits=Limits(queue=1)) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        kept = estimate(client, problem)
        backend.before = hold
        waiting = [pool.submit(send_estimate, client, one) for one in sizes[:2]]
        assert begun.wait(240)
        while service_of(client).estimating.queue_of(FIRST).length < 2:
            time.sleep(0.01)
        refused = send_estimate(client, sizes[2])
        meanwhile = estimate(client, problem)
        go_on.set()
        assert [one.result().status_code for one in waiting] == [200, 200]
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
