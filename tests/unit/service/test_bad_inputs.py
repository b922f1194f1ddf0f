"""What callers get wrong: each mistake is refused with its status, its code and what to do.

Whatever is sent, the service answers, and only with the 5xx that are meant.

The mistakes that callers make most are in `test_http` of the acceptance tests.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kernelcast.records.service_state import JobKind
from support.served_pages import add_job, fill_store, make_comparison, make_validation
from support.service_backend import (
    FIRST,
    PROBLEM,
    FakeBackend,
    make_settings,
    open_client,
    service_of,
)

Plain = dict[str, Any]
ESTIMATES, OBSERVATIONS, JOBS = "POST /v1/estimates", "POST /v1/observations", "POST /v1/jobs"
BAD_TEXTS: Final = ("a\0b", "\ud800", "x\udfff")
FAR: Final = {"id": "far-away", "driver": "1"}

# The problem or observation of a request holds what is changed of one without fault.
MISTAKES: Final[list[tuple[str, object, int, str, str]]] = [
    (ESTIMATES, b"[]", 422, "invalid_request", "dictionary"),
    (ESTIMATES, {"problem_digest": "0" * 64}, 404, "unknown_problem", "send it as `problem`"),
    (ESTIMATES, {"problem": {}, "problem_digest": "0" * 64}, 422, "invalid_request", "give one"),
    (ESTIMATES, {"problems": []}, 422, "invalid_request", "give one of `problem`"),
    (OBSERVATIONS, {"observations": []}, 422, "invalid_request", "observations"),
    ("GET /v1/jobs?most=0", None, 422, "invalid_request", "most"),
    (ESTIMATES, {"problems": [{}]}, 422, "invalid_request", "give either `problem`"),
    *(
        (ESTIMATES, {"problem": {}, **change}, 422, "invalid_request", told)
        for change, told in (
            ({"coverage": 1e-320}, "coverage"),
            ({"coverage": 0.99999}, "coverage"),
            ({"budget": "5 %"}, "valid number"),
            ({"sampling": "always"}, "'auto' or 'never'"),
            ({"least_gain": -1}, "least_gain"),
        )
    ),
    *(
        (ESTIMATES, {"problem": change}, 422, code, told)
        for change, code, told in (
            ({"args": [{"buffer": "float32", "count": 10**400}]}, "", ""),
            ({"args": [{"scalar": "int32", "value": "x"}]}, "invalid_problem", "value"),
            ({"global_size": [True]}, "invalid_request", "global_size"),
            ({"global_size": True}, "invalid_request", "global_size: Input should be a valid list"),
            ({"global_size": [2**30, 2**30], "local_size": [64, 1]}, "invalid_input", "work-items"),
            ({"local_size": [64, 64]}, "", "local"),
            ({"global_size": ["{M}"]}, "invalid_problem", "M"),
        )
    ),
    *(
        (OBSERVATIONS, {"observations": [change]}, 422, "invalid_request", told)
        for change, told in (
            ({"seconds": 0}, "greater than 0"),
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
    ("GET /v1/answers?next=x", None, 422, "invalid_request", "leave it out to begin"),
    *(
        (f"GET /v1/observations?next={bad}", None, 422, "invalid_request", "leave it out to begin")
        for bad in ("1.!", "x", "1.", "9" * 30 + ".a", "_")
    ),
    ("GET /v1/observations?global_size=1,x", None, 422, "invalid_request", "global_size"),
    # Text that no database can keep.
    *(
        (ESTIMATES, {"problem": {key: bad}}, 400, "invalid_text", "NUL")
        for key in ("name", "code", "kernel")
        for bad in BAD_TEXTS
    ),
    *(
        (OBSERVATIONS, {"observations": [change]}, 400, "invalid_text", "NUL")
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


_NUMBERS = (
    st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["{N}", "{N} * 2", "2 ** 31", "1e999", "9**9**9", "(" * 300, "{", "\x00"])
)
_TEXTS = st.text(max_size=20) | st.sampled_from(
    ["float32", "float32x4", "int8x3", "uniform", "zeros", "permutation", "/etc/passwd.npy", "fill"]
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)
_SIZES = st.lists(_NUMBERS, max_size=4) | _NUMBERS


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


_ARGUMENTS = st.lists(
    _some(
        buffer=_TEXTS, count=_NUMBERS, init=_TEXTS, low=_NUMBERS, high=_NUMBERS, access=_TEXTS,
        scalar=_TEXTS, value=_NUMBERS | st.lists(_NUMBERS, max_size=4), local=_NUMBERS,
    ),
    max_size=4,
)  # fmt: skip
_PROBLEMS = st.builds(
    lambda needed, more: {**PROBLEM, **needed, **more},
    st.fixed_dictionaries({"global_size": _SIZES, "args": _ARGUMENTS}),
    _some(
        code=st.text(max_size=50), kernel=_TEXTS, name=_TEXTS, local_size=_SIZES,
        global_offset=_SIZES, source=_TEXTS,
        parameters=st.dictionaries(_TEXTS | st.just("N"), _NUMBERS, max_size=3),
        build_options=st.lists(_TEXTS | st.just("-DN=4"), max_size=3),
    ),
)  # fmt: skip
_REQUESTS = _some(
    problem=_PROBLEMS | _ANYTHING, problem_digest=_TEXTS, problems=_ANYTHING,
    devices=st.lists(_TEXTS, max_size=2) | _ANYTHING, budget=_NUMBERS, coverage=_NUMBERS,
    seed=_NUMBERS, sampling=_TEXTS, history=_ANYTHING,
)  # fmt: skip
_OBSERVATIONS = _some(
    key=_TEXTS, problem=_PROBLEMS, device=_TEXTS | _ANYTHING, seconds=_NUMBERS,
    durations_seconds=st.lists(_NUMBERS, max_size=3), local_size=_SIZES, measured_at=_TEXTS,
    seed=_NUMBERS,
)  # fmt: skip
_QUIET = settings(
    suppress_health_check=[
        HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture,
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Give a service with results that lives as long as these tests."""
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELCAST_DATA", str(folder))
        chosen = make_settings(folder)
        fill_store(str(chosen.database))
        with open_client(chosen) as client:
            add_job(service_of(client).state, JobKind.COMPARE, result=make_comparison())
            add_job(service_of(client).state, JobKind.VALIDATE, result=make_validation())
            yield client


@pytest.mark.parametrize(
    ("path", "bodies"),
    [
        ("/v1/estimates", st.builds(lambda one: {"problem": one}, _PROBLEMS)),
        ("/v1/estimates", _REQUESTS | _ANYTHING),
        ("/v1/observations", st.builds(lambda one: {"observations": [one]}, _OBSERVATIONS)),
        *((path, _ANYTHING) for path in ("/v1/jobs", "/v1/comparisons", "/v1/problems")),
    ],
)
@_QUIET
@given(data=st.data())
def test_any_request_is_answered_or_refused(
    running: TestClient, path: str, bodies: st.SearchStrategy[object], data: st.DataObject
) -> None:
    """No 5xx but the meant 503."""
    content = json.dumps(data.draw(bodies)).encode()
    answer = running.post(path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    if not answer.is_success:
        assert answer.headers["content-type"] == "application/problem+json"


_HEADERS = {"accept": "text/html", "origin": "http://127.0.0.1"}
_WORDS = st.text(max_size=30) | st.sampled_from(
    ["linear", "hybrid", "observations", "validation", "answers", "device-0", "collect", "..", "%"]
)
_FIELDS = (
    "source", "device", "method", "job", "of", "first", "second", "new", "theme", "kind", "kernels",
    "sizes", "runs", "models", "devices", "split", "shortest_seconds", "time_budget_minutes", "key",
    "kernel", "size", "since", "until", "show", "doubted", "next", "weeks",
)  # fmt: skip
_PAIRS = st.lists(st.tuples(st.sampled_from(_FIELDS), _WORDS), max_size=6)
_PATHS = st.sampled_from([
    "/accuracy", "/accuracy/compare", "/jobs", "/kernels", "/kernels/devices", "/kernels/of",
    "/kernels/observation", "/accuracy/launches.csv", "/accuracy/compare/kernels.csv",
]) | st.builds(lambda name: "/jobs/" + quote(name, safe=""), _WORDS)  # fmt: skip


@_QUIET
@given(path=_PATHS, pairs=_PAIRS)
def test_any_address(running: TestClient, path: str, pairs: list[tuple[str, str]]) -> None:
    """No 5xx; what is wrong is told as a page."""
    address = f"{path}?{urlencode(pairs, errors='replace')}"
    answer = running.get(address, headers=_HEADERS, follow_redirects=False)
    assert answer.status_code in {200, 303, 307, 400, 404, 405, 422}
    if answer.status_code in {404, 422}:
        assert answer.headers["content-type"].startswith("text/html")


@_QUIET
@given(pairs=_PAIRS)
def test_any_form(running: TestClient, pairs: list[tuple[str, str]]) -> None:
    """No 5xx; the form comes back with what is wrong."""
    headers = {**_HEADERS, "content-type": "application/x-www-form-urlencoded"}
    body = urlencode(pairs, errors="replace")
    answer = running.post("/jobs", content=body, headers=headers, follow_redirects=False)
    assert answer.status_code in {303, 400, 404, 422}
    if answer.status_code == 422:
        assert "The job was not started" in answer.text


_LAB = {
    "code": "kernel void f(global float *a) { a[get_global_id(0)] = 1; }", "kernel": "f",
    "build_options": "", "parameters": "N = 64", "global_size": "{N}", "local_size": "16",
    "global_offset": "", "args": "buffer: float32, count: 64", "device": FIRST,
    "machine": "a100", "method": "analytic", "sampling": "auto",
}  # fmt: skip
_PIECES = st.sampled_from([
    "[", "]", "(", ")", "{", "}", "a", "n", "*", "/", "0", "64", ",", "=", "\n", " ", "kernel", "é",
    "buffer:", "count:", "scalar:", "value:", "init: uniform", "nan", "1e400", "**", "'", '"',
    "!!python/x", "&a", "*a", "2026-01-01", "<b>", "\x00", "99999999999999999999",
])  # fmt: skip


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("question", ["estimate", "source", "arguments"])
@_QUIET
@given(
    changes=st.dictionaries(
        st.sampled_from(sorted(_LAB)), st.lists(_PIECES, max_size=12).map("".join), max_size=3
    )
)
@example({"args": ",0"})
def test_whatever_is_typed_in_the_lab(
    running: TestClient, check_page: Callable[[httpx.Response], str], question: str,
    changes: dict[str, str],
) -> None:  # fmt: skip
    """It is answered, or complained about."""
    headers = {**_HEADERS, "content-type": "application/x-www-form-urlencoded", "x-fragment": "1"}
    body = urlencode({**_LAB, **changes})
    answer = running.post(f"/lab/{question}", content=body, headers=headers)
    assert answer.status_code in {200, 400, 404, 422}  # 400 for a NUL, which no browser sends
    if answer.status_code != 400 and answer.headers["content-type"].startswith("text/html"):
        check_page(answer)
