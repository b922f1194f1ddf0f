"""The API keeps to what HTTP and its users know: conditions, methods, locations, typed values."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from kernelcast.service.schemas.jobs import CompareOptions, JobRequest
from kernelcast.service.schemas.observations import CorrectionIn, ObservationsRequest

Plain = dict[str, Any]
FIRST = "fake-device-0000"


@pytest.mark.parametrize("path", ["/v1/machines", "/v1/machines/v100", "/v1/models", "/v1/devices"])
def test_what_has_not_changed_is_not_sent_again(client: TestClient, path: str) -> None:
    """Whoever names the tag gets 304 and no body; an older tag gets the whole answer."""
    first = client.get(path)
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    for known in (tag, f'"older", {tag}', tag.removeprefix("W/"), "*"):
        again = client.get(path, headers={"if-none-match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert client.get(path, headers={"if-none-match": '"older"'}).json() == first.json()


def test_long_answers_are_compressed_where_the_caller_can(client: TestClient) -> None:
    """And keep their tag; short ones and streams are sent as they are."""
    plain = client.get("/v1/machines/v100", headers={"accept-encoding": "identity"})
    packed = client.get("/v1/machines/v100", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in packed.headers["vary"].lower()
    assert packed.json() == plain.json()
    assert packed.headers["etag"] == plain.headers["etag"]
    assert int(packed.headers["content-length"]) < len(plain.content)
    short = client.get("/health", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in short.headers


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/jobs", {"GET", "HEAD", "POST"}),
        ("POST", "/v1/jobs/17", {"GET", "HEAD"}),
        ("PUT", "/v1/observations", {"DELETE", "GET", "HEAD", "POST"}),
        ("GET", "/v1/observations/17", {"DELETE", "PATCH"}),
        ("DELETE", "/v1/estimates", {"POST"}),
        ("POST", "/v1/jobs/17/events", {"GET"}),
        ("POST", "/health", {"GET", "HEAD"}),
    ],
)
def test_a_method_that_a_path_does_not_take_names_all_that_it_takes(
    client: TestClient, method: str, path: str, allowed: set[str]
) -> None:
    """The routes of one path answer as one."""
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert {*answer.headers["allow"].split(", ")} == allowed
    assert answer.json()["error"]["code"] == "method_not_allowed"


def test_what_was_begun_says_where_it_is(client: TestClient) -> None:
    """A job and a comparison name their path, also when they are asked for again."""
    key = {"idempotency-key": "one"}
    asked = {"kind": "train", "options": {"model": "linear"}}
    first = client.post("/v1/jobs", json=asked, headers=key)
    again = client.post("/v1/jobs", json=asked, headers=key)
    compared = client.post("/v1/comparisons", json={"first": "linear", "second": "ridge"})
    for answer in (first, again, compared):
        assert answer.status_code == 202
        assert client.get(answer.headers["location"]).json()["id"] == answer.json()["id"]
    assert again.headers["location"] == first.headers["location"]


def test_a_known_key_with_another_time_is_told(client: TestClient, problem: Plain) -> None:
    """409, and nothing of the batch is stored; the same again is known."""

    def send(*reports: Plain) -> Any:  # noqa: ANN401 - httpx2's
        return client.post("/v1/observations", json={"observations": list(reports)})

    report = {"key": "a", "problem": problem, "device": FIRST, "seconds": 0.5}
    assert send(report).json()["added"] == 1
    assert send(report, report).json()["known"] == 2
    for batch in (
        ({**report, "key": "b"}, {**report, "seconds": 0.6}),
        ({**report, "key": "c"}, {**report, "key": "c", "seconds": 0.6}),
    ):
        answer = send(*batch)
        assert answer.status_code == 409
        error = answer.json()["error"]
        assert error["code"] == "key_used_otherwise"
        assert error["detail"]["key"] == batch[1]["key"]
    assert client.get("/v1/observations").json()["count"] == 1
    assert send({**report, "problem": {**problem, "global_size": [2048]}, "seconds": 2}).json()[
        "added"
    ] == 1  # fmt: skip


def test_examples_of_the_description_are_taken(client: TestClient) -> None:
    """Each is a request that the service understands."""
    schemas = client.get("/v1/openapi.json").json()["components"]["schemas"]
    for path, name in (("/v1/estimates", "EstimateRequest"), ("/v1/problems", "ProblemIn")):
        asked = {**schemas[name]["example"]}
        if "devices" in asked:
            asked["devices"] = [FIRST]
        assert client.post(path, json=asked).status_code == 200
    for name, kind in (
        ("ObservationsRequest", ObservationsRequest), ("CorrectionIn", CorrectionIn),
        ("CollectJob", JobRequest), ("CompareOptions", CompareOptions),
    ):  # fmt: skip
        TypeAdapter(kind).validate_python(schemas[name]["example"])
