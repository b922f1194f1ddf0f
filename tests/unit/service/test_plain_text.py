"""Text that no database can keep is refused at the door."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import Scope
from kernelcast.service.authentication import make_token
from kernelcast.service.guard import is_plain_json, is_text

Plain = dict[str, Any]
BAD = ("a\0b", "\ud800", "x\udfff")
DEVICE = {"id": "far-away", "driver": "1"}


def _post(client: TestClient, path: str, content: object) -> Any:  # noqa: ANN401 - httpx's
    """Send JSON with its escapes: the client's own writer refuses what we want to send."""
    headers = {"content-type": "application/json"}
    return client.post(path, content=json.dumps(content), headers=headers)


def _assert_refused(answer: Any) -> None:  # noqa: ANN401 - httpx's
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_text"


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("key", ["name", "code", "kernel"])
def test_a_problem(client: TestClient, problem: Plain, key: str, bad: str) -> None:
    """Names, sources and kernels."""
    _assert_refused(_post(client, "/v1/problems", {**problem, key: bad}))
    _assert_refused(_post(client, "/v1/estimates", {"problem": {**problem, key: bad}}))


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", ["key", "device", "parameter"])
def test_an_observation(client: TestClient, problem: Plain, place: str, bad: str) -> None:
    """Names of measurements and devices, and keys of objects."""
    one: Plain = {"key": "k", "problem": problem, "device": DEVICE, "seconds": 0.1}
    changes: Plain = {
        "key": {"key": bad},
        "device": {"device": {**DEVICE, "name": bad}},
        "parameter": {"problem": {**problem, "parameters": {bad: 1}}},
    }
    body = {"observations": [{**one, **changes[place]}]}
    _assert_refused(_post(client, "/v1/observations", body))


@pytest.mark.parametrize(
    "path",
    [
        "/v1/devices/a%00b", "/v1/jobs/%00", "/v1/models/hybrid%00/report", "/v1/problems/%00",
        "/v1/machines/%00", "/v1/models/x/report?version=%00", "/v1/jobs?kind=%00",
        "/accuracy?device=a%00b", "/lab?example=%00",
    ],
)  # fmt: skip
def test_an_address(client: TestClient, path: str) -> None:
    """Parts of paths and of queries, of the API and of pages."""
    _assert_refused(client.get(path))


def test_a_form(client: TestClient) -> None:
    """Forms of pages too."""
    headers = {
        "origin": "http://127.0.0.1",
        "content-type": "application/x-www-form-urlencoded",
    }
    _assert_refused(client.post("/jobs", content="kind=train&model=a%00b", headers=headers))


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind": "train\xed\xa0\x80"}',
        json.dumps({"kind": "a\0"}, ensure_ascii=True).encode("utf-16"),
    ],
)
def test_other_ways_to_write_it(client: TestClient, body: bytes) -> None:
    """Bytes that UTF-8 does not have, and other encodings of JSON."""
    headers = {"content-type": "application/json"}
    _assert_refused(client.post("/v1/jobs", content=body, headers=headers))


def test_a_token() -> None:
    """Nobody is given a token whose name cannot be kept."""
    with pytest.raises(InputError, match="token name"):
        make_token("a\0b", frozenset({Scope.RUN}))


def test_what_looks_like_it_is_taken(client: TestClient, problem: Plain) -> None:
    """An escaped backslash, a percent sign and a letter beyond 16 bits are text."""
    source = problem["code"] + " // \\u0000 %00 \\0 \U0001f600 größe"
    answer = client.post("/v1/problems", json={**problem, "code": source, "name": "\U0001f600"})
    assert answer.status_code == 200


@given(text=st.text() | st.text(st.characters(categories=["Cs", "Cc", "Lu"])))
def test_json_tells_what_the_text_tells(text: str) -> None:
    """However it is written; two halves side by side are one character in JSON."""
    written = json.dumps({"a": [{text: 1}]})
    (read,) = json.loads(written)["a"][0]
    expected = is_text(read)
    assert is_plain_json(written.encode()) == expected
    if expected:
        assert is_plain_json(json.dumps([read], ensure_ascii=False).encode())
