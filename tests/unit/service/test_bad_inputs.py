"""What callers get wrong: each mistake is refused with its status, its code and what to do.

The mistakes that callers make most are in `test_http` of the acceptance tests.
"""

import json
from typing import Any, Final

from fastapi.testclient import TestClient

from support.service_backend import FakeBackend

Plain = dict[str, Any]
ESTIMATES, OBSERVATIONS, JOBS = "POST /v1/estimates", "POST /v1/observations", "POST /v1/jobs"
FILE: Final = {"buffer": "float32", "count": 4, "init": "/etc/shadow.npy"}
BAD_TEXTS: Final = ("a\0b", "\ud800", "x\udfff")
FAR: Final = {"id": "far-away", "driver": "1"}


def _of_problem(**change: object) -> Plain:
    """Give a request for an estimate of a changed problem."""
    return {"problem": change}


def _of_observation(**change: object) -> Plain:
    """Give a batch of one changed observation."""
    return {"observations": [change]}


MISTAKES: Final[list[tuple[str, object, int, str, str]]] = [
    # Estimates: what is asked.
    (ESTIMATES, b"[]", 422, "invalid_request", "dictionary"),
    (ESTIMATES, {"problem_digest": "0" * 64}, 404, "unknown_problem", "send it as `problem`"),
    (ESTIMATES, {**_of_problem(), "problem_digest": "0" * 64}, 422, "invalid_request", "give one"),
    (ESTIMATES, {"problems": []}, 422, "invalid_request", "give one of `problem`"),
    (OBSERVATIONS, {"observations": []}, 422, "invalid_request", "observations"),
    (OBSERVATIONS, b" " * (5 << 20), 413, "body_too_large", "4"),
    ("GET /v1/jobs?most=0", None, 422, "invalid_request", "most"),
    (ESTIMATES, {"problems": [{}]}, 422, "invalid_request", "give either `problem`"),
    *(
        (ESTIMATES, {**_of_problem(), **change}, status, code, told)
        for change, status, code, told in (
            ({"devices": ["nothing"]}, 404, "unknown_device", "fake-device-0000"),
            ({"coverage": 1e-320}, 422, "invalid_request", "coverage"),
            ({"coverage": 0.99999}, 422, "invalid_request", "coverage"),
            ({"budget": "5 %"}, 422, "invalid_request", "valid number"),
            ({"sampling": "always"}, 422, "invalid_request", "'auto' or 'never'"),
            ({"least_gain": -1}, 422, "invalid_request", "least_gain"),
        )
    ),
    # The problem.
    *(
        (ESTIMATES, _of_problem(**change), 422, code, told)
        for change, code, told in (
            ({"sizes": 1}, "invalid_request", "sizes"),
            ({"kernel": "k;"}, "invalid_input", "give the name of a function"),
            ({"args": [{**FILE, "init": "x.npy"}]}, "invalid_problem", "names a file"),
            ({"args": [{**FILE, "init": "zeros", "count": 10**10}]}, "invalid_input", "bytes"),
            ({"args": [{**FILE, "init": "zeros", "count": 10**400}]}, "", ""),
            ({"args": [{"scalar": "int32", "value": "x"}]}, "invalid_problem", "value"),
            ({"global_size": [0]}, "", "global_size"),
            ({"global_size": [True]}, "invalid_request", "global_size"),
            ({"global_size": [2**61]}, "invalid_input", "work-items"),
            ({"global_size": True}, "invalid_request", "global_size: Input should be a valid list"),
            ({"global_size": [2**30, 2**30], "local_size": [64, 1]}, "invalid_input", "work-items"),
            ({"local_size": [64, 64]}, "", "local"),
            ({"global_size": ["{M}"]}, "invalid_problem", "M"),
        )
    ),
    # Observations.
    *(
        (OBSERVATIONS, _of_observation(**change), 422, "invalid_request", told)
        for change, told in (
            ({"seconds": 0}, "greater than 0"),
            ({"seconds": True}, "seconds"),
            ({"seconds": "0.1"}, "seconds"),
            ({"measured_at": "2999-01-01T00:00:00Z"}, "in the future"),
            ({"measured_at": "1900-01-01T00:00:00Z"}, "before OpenCL"),
            ({"seconds": None}, "give either `seconds`"),
            ({"durations_seconds": [1.0]}, "give either `seconds`"),
            ({"seconds": None, "durations_seconds": [0.1, "0.2"]}, "valid number"),
            ({"measured_at": "2026-01-01T00:00:00"}, "timezone"),
            ({"key": ""}, "at least 1 character"),
            ({"problem": None}, "give either `problem`"),
        )
    ),
    # Jobs, comparisons, queries.
    (JOBS, {"kind": "collect", "options": {"sizes": 0}}, 422, "invalid_request", "sizes"),
    (JOBS, {"kind": "calibrate", "options": {"effort": "none"}}, 422, "invalid_request", "quick"),
    (JOBS, {"kind": "train", "options": {"model": "no"}}, 422, "invalid_input", "linear"),
    *(
        (JOBS, {"kind": kind, "options": options}, status, "", told)
        for kind, options, status, told in (
            ("collect", {"devices": ["no-such"]}, 404, "no-such"),
            ("collect", {"shortest_seconds": 2, "longest_seconds": 1}, 422, "longest"),
            ("calibrate", {"only": ["no-such"]}, 422, "no-such"),
            ("validate", {"models": ["no-such"]}, 422, "no-such"),
            ("compare", {}, 422, "first"),
        )
    ),
    ("PATCH /v1/observations/none", {"seconds": 1.0}, 404, "unknown_observation", "none"),
    ("PATCH /v1/observations/none", {"seconds": 1.0, "durations_seconds": [1.0]}, 422,
     "invalid_request", "give either"),
    ("GET /v1/observations?measured_from=2026-01-01T00:00:00", None, 422, "invalid_request",
     "zone"),
    ("GET /v1/jobs?kindd=train", None, 422, "unknown_parameter", "did you mean 'kind'"),
    ("GET /v1/answers?next=x", None, 422, "invalid_request", "leave it out to begin"),
    *(
        (f"GET /v1/observations?next={bad}", None, 422, "invalid_request", "leave it out to begin")
        for bad in ("1.!", "x", "1.", "9" * 30 + ".a", "_")
    ),
    ("GET /v1/observations?global_size=1,x", None, 422, "invalid_request", "global_size"),
    # Text that no database can keep.
    *(
        (ESTIMATES, _of_problem(**{key: bad}), 400, "invalid_text", "NUL")
        for key in ("name", "code", "kernel")
        for bad in BAD_TEXTS
    ),
    *(
        (OBSERVATIONS, _of_observation(**change), 400, "invalid_text", "NUL")
        for bad in BAD_TEXTS
        for change in ({"key": bad}, {"device": {**FAR, "name": bad}},
                       {"problem": {"parameters": {bad: 1}}})
    ),
    (JOBS, b'{"kind": "train\xed\xa0\x80"}', 400, "invalid_text", "NUL"),
    (JOBS, json.dumps({"kind": "a\0"}).encode("utf-16"), 400, "invalid_text", "NUL"),
    *(
        (f"GET {path}", None, 400, "invalid_text", "NUL")
        for path in (
            "/v1/devices/a%00b", "/v1/jobs/%00", "/v1/models/hybrid%00/report",
            "/v1/problems/%00", "/v1/machines/%00", "/v1/models/x/report?version=%00",
            "/v1/jobs?kind=%00", "/accuracy?device=a%00b", "/lab?example=%00",
        )
    ),
]  # fmt: skip


def test_mistakes_are_refused_clearly(
    client: TestClient, backend: FakeBackend, problem: Plain
) -> None:
    """One shape, never a 5xx, and nothing runs; requests begin from ones without fault."""
    report = {"key": "a", "problem": problem, "device": "fake-device-0000", "seconds": 0.5}
    for operation, asked, status, code, told in MISTAKES:
        body: Any = asked
        match asked:
            case {"problem": dict() as change}:
                body = {**asked, "problem": {**problem, **change}}
            case {"observations": [dict() as change]}:
                if change.get("problem"):
                    change = {**change, "problem": {**problem, **change["problem"]}}
                body = {"observations": [{**report, **change}]}
        content = body if isinstance(body, bytes | None) else json.dumps(body)
        method, _, path = operation.partition(" ")
        headers = {"content-type": "application/json"}
        answer = client.request(method, path, content=content, headers=headers)
        assert answer.status_code == status, (operation, asked, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        error = answer.json()["error"]
        assert code in {"", error["code"]}, (operation, asked)
        assert told in error["message"], (operation, asked)
        assert error["message"]
    assert backend.calls["sample"] == 0
