"""The page Accuracy: what was answered beside what was observed, and validations."""

from collections.abc import Callable

import httpx
from fastapi.testclient import TestClient

from kernelcast.records.service_state import JobKind
from support.page_examples import add_job, make_answers, make_validation, state_of


def test_the_page_accuracy(client: TestClient, check_page: Callable[[httpx.Response], str]) -> None:
    """Sums, charts with numbers and the newest validation; without any it says what to do."""
    empty = check_page(client.get("/accuracy"))
    assert "This service has answered nothing in this time." in empty
    assert "No validation was made here." in empty
    make_answers(state_of(client))
    job = add_job(state_of(client), JobKind.VALIDATE, result=make_validation())
    page = check_page(client.get("/accuracy?device=device-1&weeks=4"))
    assert "Every answer that was observed" in page
    assert f"/jobs/{job}" in page
    assert 'data-chart="/accuracy/validation-1.json?job=' in page
    assert client.get(f"/accuracy/validation-1.svg?job={job}").text.startswith("<svg")
    for name in ("launches", "drift", "kernels", "weeks"):
        rows = client.get(f"/accuracy/{name}.csv?device=device-1").text.splitlines()
        assert len(rows) > 2, name
        assert client.get(f"/accuracy/{name}.svg?theme=dark").text.startswith("<svg")
    assert client.get("/accuracy?job=none", headers={"accept": "text/html"}).status_code == 404
