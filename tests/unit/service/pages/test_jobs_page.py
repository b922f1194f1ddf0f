"""The page Jobs: lists, forms, cancelling, results and the stream of one job."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.records.service_state import JobKind
from support.page_examples import add_job
from support.service_backend import service_of

HTML = {"accept": "text/html"}


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
    job_id = add_job(service_of(client).state, kind, result=result)
    page = client.get(f"/jobs/{job_id}", headers=HTML).text
    assert all(one in page for one in told)
    assert client.get(f"/jobs/{job_id}/result.json").json() == result
