"""The page Jobs: lists, forms, cancelling, results and the stream of one job."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelcast.records.service_state import JobKind, JobState, Scope
from kernelcast.service import ServiceSettings, create_app
from kernelcast.service.jobs import StageLog
from kernelcast.service.tokens import make_token
from support.page_examples import add_job, make_comparison, make_validation, state_of
from support.service_backend import FakeBackend

HTML = {"accept": "text/html"}
FORM = {**HTML, "origin": "http://127.0.0.1", "content-type": "application/x-www-form-urlencoded"}


def _send(client: TestClient, path: str, body: str = "", **headers: str) -> Any:  # noqa: ANN401
    return client.post(path, content=body, headers={**FORM, **headers}, follow_redirects=False)


def test_without_jobs_it_says_what_to_do(client: TestClient) -> None:
    """And that this service leaves jobs to others."""
    page = client.get("/jobs", headers=HTML).text
    assert "No job was started yet" in page
    assert 'href="/jobs?new=calibrate#start"' in page
    assert "--no-jobs" in page


@pytest.mark.parametrize(
    ("body", "kind", "options"),
    [
        (
            "kind=collect&kernels=nbody&devices=fake-device-0000&time_budget_minutes=2"
            "&retry_failures_is_there=1&retry_failures=on&sizes=",
            "collect",
            {"kernels": ["nbody"], "devices": ["fake-device-0000"], "time_budget_seconds": 120.0,
             "retry_failures": True},
        ),
        ("kind=calibrate&effort=quick&only=", "calibrate",
         {"effort": "quick", "devices": ["fake-device-0000", "other-device-1111"]}),
        ("kind=train&model=hybrid&validate_is_there=1", "train",
         {"model": "hybrid", "validate": False}),
        ("kind=validate&models=hybrid&models=linear&split=application", "validate",
         {"models": ["hybrid", "linear"], "split": "application"}),
        ("kind=compare&first=analytic&second=hybrid&split=kernel&shortest_seconds=0.05", "compare",
         {"first": "analytic", "second": "hybrid", "split": "kernel", "shortest_seconds": 0.05}),
    ],
)  # fmt: skip
def test_a_form_starts_a_job(
    client: TestClient, body: str, kind: str, options: dict[str, Any]
) -> None:
    """With the options that the API takes; a form that is sent twice starts one."""
    answers = [_send(client, "/jobs", f"{body}&key=abc") for _ in range(2)]
    assert [one.status_code for one in answers] == [303, 303]
    jobs = client.get("/v1/jobs").json()["jobs"]
    assert [one["kind"] for one in jobs] == [kind]
    assert jobs[0]["options"] == options
    assert answers[0].headers["location"] == f"/jobs/{jobs[0]['id']}"
    page = client.get(answers[0].headers["location"], headers=HTML).text
    assert "queued" in page
    assert "asked for by local" in page


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("kind=collect&kernels=no-such-kernel", "no-such-kernel"),
        ("kind=collect&sizes=many", "sizes: Input should be a valid integer"),
        ("kind=collect&time_budget_minutes=long", "time budget seconds"),
        ("kind=collect&devices=no-such", "no-such"),
        ("kind=dance", "is no kind of job"),
        ("kind=compare&first=linear&second=linear", "cannot be compared with itself"),
    ],
)
def test_what_is_wrong_in_a_form_is_told(client: TestClient, body: str, told: str) -> None:
    """On the page with the form, which keeps what was typed; nothing is started."""
    answer = _send(client, "/jobs", body)
    assert answer.status_code in {404, 422}
    assert "The job was not started" in answer.text
    assert told in answer.text
    if "sizes" in body:
        assert 'value="many"' in answer.text
    assert client.get("/v1/jobs").json()["jobs"] == []


def test_forms_of_other_sites_are_refused(client: TestClient) -> None:
    """Even without an origin."""
    foreign = _send(client, "/jobs", "kind=train", origin="http://evil.example")
    assert foreign.status_code == 403
    headers = {**HTML, "content-type": FORM["content-type"]}
    assert client.post("/jobs", content="kind=train", headers=headers).status_code == 403


def test_a_job_is_cancelled(client: TestClient) -> None:
    """And written down in the audit log, as by the API."""
    job_id = add_job(state_of(client), JobKind.TRAIN, JobState.QUEUED)
    answer = _send(client, f"/jobs/{job_id}/cancel")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job_id}")
    page = client.get(f"/jobs/{job_id}", headers=HTML).text
    assert "cancelled" in page
    assert "/cancel" not in page
    assert client.get("/v1/audit").json()["entries"][0]["action"] == "cancel_job"


def test_a_job_at_work_with_its_log(client: TestClient) -> None:
    """Parts, stage, remaining time, and what it has been at before."""
    progress = {
        "done": 3, "total": 66, "stage": "nbody: measuring", "remaining_seconds": 5000,
        "log": [["2026-01-01T00:00:00+00:00", "nbody: <sampling>"]],
    }  # fmt: skip
    job_id = add_job(state_of(client), JobKind.COLLECT, JobState.RUNNING, progress=progress)
    page = client.get(f"/jobs/{job_id}", headers=HTML).text
    assert "3 of 66" in page
    assert "about 1 h 23 min left" in page
    assert "nbody: &lt;sampling&gt;" in page
    listed = client.get("/jobs/rows", headers={**HTML, "x-fragment": "1"}).text
    assert f'data-job="{job_id}"' in listed
    assert "<html" not in listed


@pytest.mark.parametrize(
    ("kind", "result", "told"),
    [
        (JobKind.COLLECT,
         {"devices": [{"device_id": "d", "kernels": 2, "measured": 12, "present": 0,
                       "disturbed": 1, "skipped": {"huge": "too large"},
                       "failures": [{"kernel": "k", "kind": "KernelRunError", "message": "bad"}],
                       "errors": {"e": "no source"}}]},
         ["too large", "KernelRunError: bad", "no source"]),
        (JobKind.CALIBRATE,
         {"devices": [{"device_id": "d", "durations_seconds": {"copy": 61.0}, "resumed": [],
                       "failed": {"walk": "no cache"}},
                      {"device_id": "e", "error_message": "it is gone"}]},
         ["no cache", "it is gone", "61 s"]),
        (JobKind.TRAIN,
         {"models": [{"name": "hybrid/d", "version": "0001", "rows": 9, "kernels": 3,
                      "devices": ["d"]}], "refused": {"hybrid/e": "too few rows"}},
         ["hybrid/d", "too few rows"]),
    ],
)  # fmt: skip
def test_results_are_tables(
    client: TestClient, kind: JobKind, result: object, told: list[str]
) -> None:
    """Of every kind of job; the whole result is a file."""
    job_id = add_job(state_of(client), kind, result=result)
    page = client.get(f"/jobs/{job_id}", headers=HTML).text
    assert all(one in page for one in told)
    assert client.get(f"/jobs/{job_id}/result.json").json() == result


def test_results_that_other_pages_show(client: TestClient) -> None:
    """A validation leads to Accuracy, a comparison to A/B; their tables are here all the same."""
    state = state_of(client)
    validation = add_job(state, JobKind.VALIDATE, result=make_validation())
    comparison = add_job(state, JobKind.COMPARE, result=make_comparison())
    page = client.get(f"/jobs/{validation}", headers=HTML).text
    assert f"/accuracy?job={validation}" in page
    assert "leaving one kernel out" in page
    page = client.get(f"/jobs/{comparison}", headers=HTML).text
    assert f"/comparing?of={comparison}" in page
    assert "ridge less linear" in page
    listed = client.get("/v1/jobs").json()["jobs"]
    assert all(one["has_result"] for one in listed)


def test_a_failed_job_says_why(client: TestClient) -> None:
    """And how to go on."""
    error = {"code": "invalid_input", "message": "there are too few rows", "detail": None}
    job_id = add_job(state_of(client), JobKind.TRAIN, JobState.FAILED, error=error)
    page = client.get(f"/jobs/{job_id}", headers=HTML).text
    assert "there are too few rows" in page
    assert 'href="/jobs?new=train#start"' in page
    missing = client.get(f"/jobs/{job_id}/result.json", headers=HTML)
    assert missing.status_code == 404
    unknown = client.get("/jobs/nope", headers=HTML)
    assert unknown.status_code == 404
    assert "there is no job" in unknown.text


def test_the_stream_of_a_job(client: TestClient) -> None:
    """The one of the API."""
    job_id = add_job(state_of(client), JobKind.TRAIN, result={"models": []})
    with client.stream("GET", f"/jobs/{job_id}/events") as answer:
        lines = [line for line in answer.iter_lines() if line]
    assert lines[0] == "event: end"
    assert json.loads(lines[-1].removeprefix("data: "))["state"] == "done"


def test_who_may_only_read_starts_nothing(settings: ServiceSettings, folder: Any) -> None:  # noqa: ANN401
    """Neither by the forms, which are not there, nor without them."""
    strict = replace(settings, require_tokens=True)
    app = create_app(strict, backend=FakeBackend(str(settings.database)))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        token, record = make_token("reader", frozenset({Scope.ESTIMATE}))
        state_of(client).tokens.add(record)
        headers = {**HTML, "authorization": f"Bearer {token}"}
        page = client.get("/jobs?new=collect", headers=headers).text
        assert "needs a token with the scope <code>admin</code>" in page
        assert 'name="kind"' not in page
        refused = _send(client, "/jobs", "kind=train", authorization=f"Bearer {token}")
        assert refused.status_code == 403
        anonymous = client.get("/jobs", headers=HTML, follow_redirects=False)
        assert anonymous.headers["location"].startswith("/sign-in")


def test_the_log_keeps_stages() -> None:
    """Each stage once, deaths too; what was before is kept after a restart."""
    log = StageLog({})
    assert log.extend({"done": 1}) == {"done": 1}
    log.extend({"done": 1, "stage": "a"})
    log.extend({"done": 2, "stage": "a"})
    told = log.extend({"done": 2, "stage": "b"})
    assert [text for _, text in told["log"]] == ["a", "b"]
    assert told["done"] == 2
    died = StageLog(told).note("its process died")
    assert [text for _, text in died["log"]] == ["a", "b", "its process died"]
    for number in range(100):
        died = log.note(str(number))
    assert len(died["log"]) == 60


def test_rows_say_what_was_done_and_can_be_repeated(
    client: TestClient, check_page: Callable[[Any], str]
) -> None:
    """Device, settings and outcome stand in the row; the same job is started by its button."""
    options = {"devices": ["fake-device-0000"], "effort": "quick"}
    result = {"devices": [{"device_id": "fake-device-0000", "durations_seconds": {"walk": 3.0},
                           "resumed": [], "failed": {}}]}  # fmt: skip
    job_id = add_job(state_of(client), JobKind.CALIBRATE, options=options, result=result)
    page = check_page(client.get("/jobs"))
    assert "effort quick" in page
    assert "calibrated fake-device-0000" in page
    assert "calibrated fake-device-0000" in check_page(client.get(f"/jobs/{job_id}"))
    answer = _send(client, f"/jobs/{job_id}/rerun")
    assert answer.status_code == 303
    again = state_of(client).jobs.find(answer.headers["location"].rpartition("/")[2])
    assert again is not None
    assert again.kind is JobKind.CALIBRATE
    assert again.options["effort"] == "quick"
