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


def test_a_form(client: TestClient) -> None:
    """Forms of pages too."""
    headers = {
        "origin": "http://127.0.0.1",
        "content-type": "application/x-www-form-urlencoded",
    }
    answer = client.post("/jobs", content="kind=train&model=a%00b", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_text")


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
