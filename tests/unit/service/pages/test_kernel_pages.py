"""The pages of observed launches and of one kernel."""

import csv
import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.service import ServiceSettings
from support.page_examples import fill_store

Check = Callable[[httpx.Response], str]
KERNEL = "suite/application0/kernel0"


@pytest.fixture
def filled(client: TestClient, settings: ServiceSettings) -> TestClient:
    """Give a client of a service with observations."""
    fill_store(str(settings.database))
    return client


def test_launches_lead_to_their_kernels(filled: TestClient, check_page: Check) -> None:
    """Each launch stands once, with a link to the page of its kernel."""
    page = check_page(filled.get("/observations"))
    assert "30 launches: each once" in page
    assert "/kernels/of?name=suite%2Fapplication0%2Fkernel0" in page


def test_a_kernel_over_sizes_and_devices(filled: TestClient, check_page: Check) -> None:
    """Predictions, times and sizes are those of the store, as chart and as numbers."""
    page = check_page(filled.get("/kernels/of", params={"name": KERNEL}))
    assert "Every size and device" in page
    numbers = filled.get("/kernels/of/predicted.csv", params={"name": KERNEL}).text
    rows = list(csv.DictReader(io.StringIO(numbers)))
    assert rows
    assert all(one["global_size"].split(" x ")[0].isdecimal() for one in rows)
    chart: dict[str, Any] = filled.get("/kernels/of/history.json", params={"name": KERNEL}).json()
    assert chart["y"]["unit"] == "s"
    assert sum(len(one["points"]) for one in chart["series"]) == len(rows)
    drawn = filled.get("/kernels/of/history.svg", params={"name": KERNEL})
    assert drawn.text.startswith("<svg")


def test_a_kernel_that_was_asked_about(
    client: TestClient, problem: dict[str, Any], check_page: Check
) -> None:
    """The last answer stands with what it rests on, and a link to the question."""
    answer = client.post("/v1/estimates", json={"problem": problem}).json()["estimates"][0]
    page = check_page(client.get("/kernels/of", params={"name": answer["kernel"]}))
    assert f"/lab?problem={answer['problem_digest']}" in page
    assert "What the newest rests on" in page
    lab = check_page(client.get("/lab", params={"problem": answer["problem_digest"]}))
    assert f'value="{answer["kernel"]}"' in lab


def test_a_kernel_that_nobody_knows(client: TestClient, check_page: Check) -> None:
    """A page says so."""
    answer = client.get("/kernels/of", params={"name": "<b>"}, headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert "<b>" not in check_page(answer)
