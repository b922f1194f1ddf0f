"""Whatever stands in an address or a form, Accuracy, A/B and Jobs answer a person."""

from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelcast.records.service_state import JobKind
from kernelcast.service import ServiceSettings, create_app
from support.page_examples import (
    add_job,
    fill_store,
    make_comparison,
    make_validation,
    state_of,
)
from support.service_backend import FakeBackend

_HEADERS = {"accept": "text/html", "origin": "http://localhost"}
_TEXTS = st.text(max_size=30) | st.sampled_from(
    ["linear", "hybrid", "observations", "validation", "answers", "device-0", "collect", "..", "%"]
)
_FIELDS = (
    "source", "device", "method", "job", "of", "first", "second", "new", "theme", "kind", "kernels",
    "sizes", "runs", "models", "devices", "split", "shortest_seconds", "time_budget_minutes", "key",
    "kernel", "size", "since", "until", "show", "doubted", "next", "weeks",
)  # fmt: skip
_PAIRS = st.lists(st.tuples(st.sampled_from(_FIELDS), _TEXTS), max_size=6)
_PATHS = st.sampled_from(
    [
        "/accuracy",
        "/accuracy/compare",
        "/jobs",
        "/kernels",
        "/kernels/devices",
        "/kernels/of",
        "/kernels/observation",
        "/accuracy/launches.csv",
        "/accuracy/compare/kernels.csv",
    ]
) | st.builds(lambda name: "/jobs/" + quote(name, safe=""), _TEXTS)
_QUIET = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Give a service with results that lives as long as these tests."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELCAST_DATA", str(folder))
        database = str(folder / "rows.sqlite")
        fill_store(database)
        chosen = ServiceSettings(
            database=database, registry=str(folder / "models"), runs_jobs=False
        )
        app = create_app(chosen, backend=FakeBackend(database))
        with TestClient(app, base_url="http://localhost") as client:
            add_job(state_of(client), JobKind.COMPARE, result=make_comparison())
            add_job(state_of(client), JobKind.VALIDATE, result=make_validation())
            yield client


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
