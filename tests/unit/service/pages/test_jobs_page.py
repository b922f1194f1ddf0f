"""The page Jobs: lists, forms, cancelling, results and the stream of one job."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.records.service_state import JobKind, JobState
from support.page_examples import add_job, state_of

HTML = {"accept": "text/html"}


def test_without_jobs_it_says_what_to_do(client: TestClient) -> None:
    """And that this service leaves jobs to others."""
    page = client.get("/jobs", headers=HTML).text
    assert "No job was started yet" in page
    assert 'href="/jobs?new=calibrate#start"' in page
    assert "--no-jobs" in page


@pytest.mark.parametrize(
    ("kind", "fields", "options"),
    [
        (
            "collect",
            {"kernels": "nbody", "devices": "fake-device-0000", "time_budget_minutes": "2",
             "retry_failures_is_there": "1", "retry_failures": "on", "sizes": ""},
            {"kernels": ["nbody"], "devices": ["fake-device-0000"], "time_budget_seconds": 120.0,
             "retry_failures": True},
        ),
        ("calibrate", {"effort": "quick", "only": ""},
         {"effort": "quick", "devices": ["fake-device-0000", "other-device-1111"]}),
        ("train", {"model": "hybrid", "validate_is_there": "1"},
         {"model": "hybrid", "validate": False}),
        ("validate", {"models": ["hybrid", "linear"], "split": "application"},
         {"models": ["hybrid", "linear"], "split": "application"}),
        ("compare", {"first": "analytic", "second": "hybrid", "shortest_seconds": "0.05"},
         {"first": "analytic", "second": "hybrid", "shortest_seconds": 0.05}),
    ],
)  # fmt: skip
def test_a_form_starts_a_job(
    client: TestClient, post: Callable[..., httpx.Response], kind: str, fields: dict[str, Any],
    options: dict[str, Any],
) -> None:  # fmt: skip
    """With the options that the API takes."""
    answer = post("/jobs", {"kind": kind, **fields})
    [job] = client.get("/v1/jobs").json()["jobs"]
    assert (job["kind"], job["options"]) == (kind, options)
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    page = client.get(answer.headers["location"], headers=HTML).text
    assert "queued" in page
    assert "asked for by local" in page


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
         ["no cache", "it is gone", "61"]),
        (JobKind.TRAIN,
         {"models": [{"name": "hybrid/d", "version": "0001", "rows": 9, "kernels": 3,
                      "devices": ["d"]}], "refused": {"hybrid/e": "too few rows"},
          "left_out": ["hybrid/d: 3 of 12 rows are left out"]},
         ["hybrid/d", "too few rows", "3 of 12 rows"]),
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
