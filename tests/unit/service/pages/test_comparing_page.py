"""Comparisons and validations that jobs have stored, model against model."""

import csv
import io

from fastapi.testclient import TestClient

from kernelcast.records.service_state import JobKind, JobState
from support.page_examples import add_job, make_validation, state_of


def _show(client: TestClient, path: str = "/accuracy/compare", status: int = 200) -> str:
    answer = client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == status
    return answer.text


def test_without_data_it_says_what_to_do(client: TestClient) -> None:
    """The form is on the page; a comparison under way is named."""
    page = _show(client)
    assert "Nothing was compared yet" in page
    assert 'href="#start"' in page
    assert "<option selected>hybrid</option>" in page
    add_job(state_of(client), JobKind.COMPARE, JobState.QUEUED)
    assert "One is under way" in _show(client)


def test_two_models_of_a_validation(client: TestClient) -> None:
    """Any two; what the hybrid loses without a feature group is shown too."""
    job_id = add_job(state_of(client), JobKind.VALIDATE, result=make_validation())
    page = _show(client)
    assert "linear against hybrid on device-0" in page
    assert f"/accuracy/compare/ablation.svg?theme=light&amp;of={job_id}" in page
    other = _show(
        client, f"/accuracy/compare?of={job_id}&first=hybrid&second=hybrid_without_analytic"
    )
    assert "hybrid against hybrid_without_analytic on device-0" in other
    rows = list(
        csv.DictReader(io.StringIO(client.get(f"/accuracy/compare/ablation.csv?of={job_id}").text))
    )
    assert [one["name"] for one in rows] == ["analytic"]


def test_what_cannot_be_compared_is_told_to_a_person(client: TestClient) -> None:
    """With the true status, and the form still there."""
    job_id = add_job(state_of(client), JobKind.VALIDATE, result=make_validation())
    same = _show(client, f"/accuracy/compare?of={job_id}&first=linear&second=linear", 422)
    assert "name two different models" in same
    assert "Start a comparison" in same
    assert "no model nothing" in _show(client, f"/accuracy/compare?of={job_id}&first=nothing", 422)
    assert "there is no job" in _show(client, "/accuracy/compare?of=nope", 404)
    broken = add_job(state_of(client), JobKind.COMPARE, result={"format": 99})
    assert "format 99" in _show(client, f"/accuracy/compare?of={broken}", 422)
