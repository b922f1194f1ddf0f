"""The home page, the lists that lead from it, and the description of the API."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
from fastapi.testclient import TestClient

from kernelcast.service import ServiceSettings, create_app
from support.page_examples import fill_store
from support.service_backend import FakeBackend

Check = Callable[[httpx.Response], str]


def test_a_new_service_says_what_to_do(client: TestClient, check_page: Check) -> None:
    """Without observations, calibrations and answers each is a step."""
    page = check_page(client.get("/"))
    for told in ("Ask for an estimate", "Calibrate a device", "Start a collection"):
        assert told in page
    assert "idle" in page


def test_what_was_done_is_seen(
    client: TestClient, settings: ServiceSettings, problem: dict[str, Any], check_page: Check
) -> None:
    """Estimates and observations are counted and listed, and their steps are gone."""
    fill_store(str(settings.database))
    answer = client.post("/v1/estimates", json={"problem": problem}).json()["estimates"][0]
    page = check_page(client.get("/"))
    assert "Start a collection" not in page
    assert f"/lab?problem={answer['problem_digest']}&amp;device=" in page
    assert f"/lab?problem={answer['problem_digest']}&amp;device=" in check_page(
        client.get("/kernels")
    )


def test_a_service_that_runs_nothing_says_so(
    settings: ServiceSettings, backend: FakeBackend, check_page: Check
) -> None:
    """The step names the option."""
    app = create_app(replace(settings, allow_run=False), backend=backend)
    with TestClient(app, base_url="http://127.0.0.1") as reader:
        assert "kernelcast serve --allow-run" in check_page(reader.get("/"))
