"""The client speaks with the service as it is."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
import yaml
from fastapi.testclient import TestClient

from kernelcast.client import (
    AsyncClient,
    Client,
    ServiceError,
    WrongServiceError,
    read_problem_file,
)
from kernelcast.client.exchange import Patience

Plain = dict[str, Any]
EXAMPLES = Path(__file__).parents[3] / "examples"
_HEALTH = {
    "status": "ok", "service": "kernelcast", "instance": "one", "version": "1", "api": "1.1.0",
    "started_at": "2026-01-01T00:00:00+00:00", "pid": 7,
}  # fmt: skip
_JOB = {"id": "a", "kind": "train", "state": "queued", "progress": {}}
_GOOD = httpx.Response(200, json={"devices": []})


def _stand_in(
    *answers: httpx.Response | Exception, health: Plain | None = None
) -> httpx.MockTransport:
    """Stand for a service that answers so, one after the other, once it has said who it is."""
    known, answer = httpx.Response(200, **(health or {"json": _HEALTH})), Mock(side_effect=answers)
    return httpx.MockTransport(lambda one: known if one.url.path == "/health" else answer(one))


def _serve(*answers: httpx.Response | Exception) -> tuple[Client, list[float]]:
    """Make a client of such a service; its pauses are noted and not made."""
    waits: list[float] = []
    patience = Patience(retries=2, sleep=waits.append)
    return Client("http://service", patience=patience, transport=_stand_in(*answers)), waits


def test_a_busy_service_is_asked_again_when_it_says() -> None:
    """Retry-After counts; without it each pause is longer."""
    client, waits = _serve(httpx.Response(503, headers={"retry-after": "7"}), _GOOD)
    assert client.devices() == ()
    assert 5 < waits[0] < 9
    client, waits = _serve(httpx.ConnectError("no"), httpx.ReadTimeout("slow"), _GOOD)
    assert client.devices() == ()
    assert waits[0] < waits[1]


def test_in_the_end_it_gives_up() -> None:
    """With what the service said last; a refusal is final at once."""
    told = {"error": {"code": "device_busy", "message": "later", "detail": None}}
    client, waits = _serve(*[httpx.Response(503, json=told)] * 3)
    with pytest.raises(ServiceError, match="later"):
        client.devices()
    assert len(waits) == 2
    client, waits = _serve(httpx.Response(404, text="<html>"))
    with pytest.raises(ServiceError) as caught:
        client.devices()
    assert caught.value.code == "http_error"
    assert waits == []


@pytest.mark.parametrize(
    ("health", "complaint"),
    [
        ({"json": {"status": "ok"}}, "no kernelcast service"),
        ({"json": []}, "no kernelcast service"),
        ({"text": "<html>"}, "no kernelcast service"),
        ({"json": {**_HEALTH, "api": "2.0.0"}}, r"speaks version 2\.0\.0 of the API"),
    ],
)
def test_something_else_at_the_address_is_told(health: Plain, complaint: str) -> None:
    """Before anything is sent to it, which it could not answer."""
    with (
        Client("http://service", transport=_stand_in(health=health)) as client,
        pytest.raises(WrongServiceError, match=complaint),
    ):
        client.observe([{"problem_digest": "a", "device": "b", "seconds": 1.0}])


@pytest.mark.parametrize("is_seen", [True, False])
def test_another_instance_is_noticed(is_seen: bool, caplog: pytest.LogCaptureFixture) -> None:
    """By what its answers say or, behind a proxy that drops it, when the connection was lost."""
    health = dict(_HEALTH)
    failures: list[Exception] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if failures:
            raise failures.pop()
        headers = {"x-kernelcast-instance": str(health["instance"])} if is_seen else {}
        content = health if request.url.path == "/health" else {"devices": []}
        return httpx.Response(200, json=content, headers=headers)

    patience = Patience(sleep=lambda _: None)
    transport = httpx.MockTransport(answer)
    with Client("http://service", patience=patience, transport=transport) as client:
        client.devices()
        assert client.identify().instance == "one"
        health["instance"] = "two"
        failures += [] if is_seen else [httpx.ReadError("gone")]
        for _ in range(3):
            client.devices()
        assert client.identify().instance == "two"
    (record,) = caplog.records
    assert "another instance now: two" in record.getMessage()
    assert "it was one" in record.getMessage()


def test_the_token_is_sent_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given or from the environment."""
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization", ""))
        return httpx.Response(200, json={**_HEALTH, "devices": []})

    monkeypatch.setenv("KERNELCAST_TOKEN", "kc_env")
    transport = httpx.MockTransport(answer)
    client = Client("http://service", transport=transport)
    client.devices()
    Client("http://service", token="kc_own", transport=transport).devices()
    assert seen[1::2] == ["Bearer kc_env", "Bearer kc_own"]
    assert "kc_env" not in repr(client)


def test_coroutines_ask_at_the_same_time() -> None:
    """Sends the second question while the first is not answered yet, with one method for both."""
    both = asyncio.Barrier(2)

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/health":
            await both.wait()
        return httpx.Response(200, json={**_HEALTH, "devices": [], "jobs": []})

    async def ask() -> None:
        async with AsyncClient("http://service", transport=httpx.MockTransport(answer)) as client:
            assert await asyncio.gather(client.devices(), client.jobs()) == [(), ()]

    asyncio.run(asyncio.wait_for(ask(), 60))


def test_coroutines_wait_for_a_busy_service_and_follow_a_job() -> None:
    """Sends a request again when the service says, and gives a job until it ends."""
    waits: list[float] = []
    queued, running, done = (
        httpx.Response(200, json={**_JOB, "state": state, "revision": revision})
        for revision, state in enumerate(("queued", "running", "done"))
    )
    busy = httpx.Response(503, headers={"retry-after": "7"})
    transport = _stand_in(busy, queued, running, running, done)

    async def follow() -> list[str]:
        patience = Patience(sleep=waits.append)
        async with AsyncClient("http://service", patience=patience, transport=transport) as client:
            job = await client.job("a")
            return [job.state, *[one.state async for one in client.follow_job("a")]]

    assert asyncio.run(follow()) == ["queued", "running", "done"]
    assert 5 < waits[0] < 9


def test_examples_are_taken_as_they_are(client: TestClient) -> None:
    """Takes each example at its own size, with the contents of its files."""
    ours = Client("http://127.0.0.1", transport=client._transport)
    texts = {path: yaml.safe_load(path.read_text()) or {} for path in EXAMPLES.glob("*/*.yaml")}
    problems = [path for path, held in texts.items() if "kernel" in held]
    assert len(problems) > 5
    for path in problems:
        assert len(ours.send_problem(read_problem_file(path))) == 64, path
