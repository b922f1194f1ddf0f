"""What holds for every request."""

import json
import logging
import os
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version

import pytest
from fastapi.testclient import TestClient

from kernelcast.records import errors
from kernelcast.records.errors import KernelcastError
from kernelcast.service import API_VERSION, Limits, ServiceSettings, create_app
from kernelcast.service.errors import kind_of
from support.service_backend import FakeBackend, failing


def _assert_shape(content: object) -> None:
    assert isinstance(content, dict)
    assert set(content) == {"error"}
    assert set(content["error"]) == {"code", "message", "detail"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/nothing", 404, "not_found"),
        ("DELETE", "/v1/devices", 405, "method_not_allowed"),
        ("GET", "/v1/devices/no-such", 404, "unknown_device"),
        ("GET", "/v1/machines/no-such", 404, "unknown_machine"),
        ("GET", "/v1/models/no-such", 404, "unknown_model"),
        ("GET", "/v1/jobs/no-such", 404, "unknown_job"),
        ("GET", "/v1/problems/no-such", 404, "unknown_problem"),
        ("POST", "/v1/estimates", 422, "invalid_request"),
    ],
)
def test_every_refusal_has_one_shape(
    client: TestClient, method: str, path: str, status: int, code: str
) -> None:
    """Errors look alike, whoever notices them."""
    answer = client.request(method, path)
    assert answer.status_code == status
    _assert_shape(answer.json())
    assert answer.json()["error"]["code"] == code


def test_what_is_wrong_with_a_request_is_said_in_our_words(client: TestClient) -> None:
    """Names the place if there is one, and nothing of who checked it."""
    nothing = client.post("/v1/estimates", json={}).json()["error"]["message"]
    assert nothing == "give one of `problem`, `problem_digest` and `problems`"
    problem = {"source": "/etc/passwd", "kernel": "f", "global_size": [64], "args": []}
    file = client.post("/v1/estimates", json={"problem": problem}).json()["error"]["message"]
    assert file.startswith("problem: `source` names a file")


def test_every_kind_of_error_has_a_code_of_its_own() -> None:
    """A program can tell all of our errors apart."""
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    codes = {kind_of(one("x")).code for one in kinds if issubclass(one, KernelcastError)}
    assert len(codes) == len(kinds)


def test_answers_tell_browsers_to_be_careful(client: TestClient) -> None:
    """Security headers stand on every answer, errors included."""
    for path in ("/health", "/v1/nothing"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"


def test_a_request_has_an_id(client: TestClient) -> None:
    """A caller's id is used if it is one, else another is made."""
    assert client.get("/health", headers={"x-request-id": "a-1"}).headers["x-request-id"] == "a-1"
    made = client.get("/health", headers={"x-request-id": "a b\tc"}).headers["x-request-id"]
    assert made != "a b\tc"
    assert len(made) == 16


def test_a_large_body_is_refused(settings: ServiceSettings, backend: FakeBackend) -> None:
    """The limit holds whether the length is told or not."""
    small = replace(settings, limits=Limits(body_bytes=1000))
    with TestClient(create_app(small, backend=backend), base_url="http://localhost") as client:
        told = client.post("/v1/estimates", content=b"x" * 1001)
        untold = client.post("/v1/estimates", content=iter([b"x" * 600, b"x" * 600]))
    for answer in (told, untold):
        assert answer.status_code == 413
        _assert_shape(answer.json())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1"}, 422),
    ],
)
def test_pages_of_other_sites_cannot_use_a_service_on_loopback(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    """Neither by a name of theirs for this address nor by a request from their page."""
    assert client.post("/v1/estimates", headers=headers, json={}).status_code == status


def test_a_form_is_no_request(client: TestClient, problem: dict[str, object]) -> None:
    """A page can send forms and texts across sites: only JSON is read."""
    body = json.dumps({"problem": problem})
    answer = client.post("/v1/estimates", content=body, headers={"content-type": "text/plain"})
    assert answer.status_code == 415


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}', b"1" * 5000])
def test_what_is_no_json_is_refused(client: TestClient, body: bytes) -> None:
    """Broken, deep or odd bodies are the caller's mistake."""
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/estimates", content=body, headers=headers)
    assert answer.status_code in {400, 422}
    _assert_shape(answer.json())


def test_a_bug_tells_the_request_id_and_no_more(
    settings: ServiceSettings, problem: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    """A caller sees no traceback; the log has it."""
    backend = FakeBackend(str(settings.database))
    app = create_app(settings, backend=backend)
    with TestClient(app, base_url="http://localhost") as client:
        app.state.service.devices.choose = None  # calling it fails
        with caplog.at_level(logging.ERROR, "kernelcast.service"):
            answer = client.post("/v1/estimates", json={"problem": problem})
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in answer.json()["error"]["message"]
    assert "NoneType" not in answer.text
    assert any(one.exc_info for one in caplog.records)


def test_health_and_readiness(client: TestClient, backend: FakeBackend) -> None:
    """Health needs nothing and says who answers; readiness needs database and devices."""
    health = client.get("/health").json()
    assert (health["status"], health["service"]) == ("ok", "kernelcast")
    assert health["api"] == API_VERSION
    assert health["pid"] == os.getpid()
    assert health["version"] == version("kernelcast")
    assert datetime.fromisoformat(health["started_at"]).tzinfo is not None
    assert health["instance"] == client.get("/health").json()["instance"]
    ready = client.get("/ready").json()
    assert ready.pop("sandbox") in {"bubblewrap", "none"}
    assert ready == {"status": "ready", "devices": 2}


def test_without_a_device_the_service_is_not_ready(settings: ServiceSettings) -> None:
    """It lives, and says why it cannot answer."""
    backend = FakeBackend(str(settings.database))
    error = errors.NoDeviceError("no OpenCL device was found")
    backend.list_devices = lambda: failing(error)(None)  # type: ignore[method-assign,arg-type]
    with TestClient(create_app(settings, backend=backend), base_url="http://[::1]") as client:
        assert client.get("/health").status_code == 200
        answer = client.get("/ready")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "no_device"
    assert "retry-after" in answer.headers


@pytest.mark.parametrize("path", ["/", "/lab", "/health", "/v1/devices", "/assets/style.css"])
def test_heads_are_answered_as_pages_are(client: TestClient, path: str) -> None:
    """Status and type are those of the answer itself."""
    head, whole = client.head(path), client.get(path)
    assert head.status_code == whole.status_code == 200
    assert head.headers["content-type"] == whole.headers["content-type"]


def test_what_is_no_json_is_refused_by_name(client: TestClient) -> None:
    """The caller is told the type that was sent and the one that is read; a form likewise."""
    headers = {"content-type": "text/plain"}
    answer = client.post("/v1/estimates", content="{}", headers=headers)
    assert answer.status_code == 415
    assert "'text/plain'" in answer.json()["error"]["message"]
    assert "application/json" in answer.json()["error"]["message"]
    sent = {"origin": "http://127.0.0.1", "accept": "text/html", **headers}
    answer = client.post("/lab/estimate", content="code=1", headers=sent)
    assert answer.status_code == 415
    assert "x-www-form-urlencoded" in answer.text
