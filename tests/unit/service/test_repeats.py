"""Repeated requests are answered by their bytes, to nobody who may not ask."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelcast.records.service_state import Scope
from kernelcast.service import ServiceSettings
from kernelcast.service.authentication import make_token
from kernelcast.service.service import Service
from kernelcast.service_state import open_state
from support.service_backend import FakeBackend, open_client

Plain = dict[str, Any]


def test_a_repeat_is_not_read_again(
    client: TestClient, problem: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is the one before, but for saying that it was kept."""
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    first = client.post("/v1/estimates", json={"problem": problem})
    monkeypatch.setattr(service.devices, "choose", None)  # calling it would fail
    second = client.post("/v1/estimates", json={"problem": problem})
    assert second.status_code == 200
    assert second.headers["content-security-policy"]
    assert second.headers["x-request-id"]
    assert [one["is_kept"] for one in second.json()["estimates"]] == [True, True]
    assert second.json()["estimates"][0]["seconds"] == first.json()["estimates"][0]["seconds"]
    text = client.get("/metrics").text
    counted = 'kernelcast_http_requests_total{method="POST",route="/v1/estimates",status="200"}'
    assert f"{counted} 2.0" in text


def test_other_models_make_answers_anew(
    client: TestClient, backend: FakeBackend, problem: Plain
) -> None:
    """As soon as the service has looked."""
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    client.post("/v1/estimates", json={"problem": problem})
    backend.models = 7
    client.portal.call(service.watcher.look)  # type: ignore[union-attr]
    client.post("/v1/estimates", json={"problem": problem})
    assert backend.calls["sample"] == 4


def test_a_repeat_is_given_to_nobody_who_may_not_ask(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """The same bytes without the token, or with one of another scope, are refused."""
    texts = {}
    with open_state(str(settings.database)) as state:
        for scopes in (frozenset({Scope.ESTIMATE, Scope.RUN}), frozenset({Scope.ESTIMATE}),
                       frozenset({Scope.OBSERVE})):  # fmt: skip
            text, record = make_token("x", scopes)
            state.tokens.add(record)
            texts[scopes] = {"authorization": f"Bearer {text}"}
    runner, reader, observer = texts.values()
    with open_client(settings, backend, require_tokens=True) as client:
        statuses = [
            client.post("/v1/estimates", json={"problem": problem}, headers=one).status_code
            for one in (runner, runner, reader, observer, {}, {"authorization": "Bearer no"})
        ]
    assert statuses == [200, 200, 403, 403, 401, 401]
