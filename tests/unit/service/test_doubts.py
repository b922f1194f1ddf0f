"""What is removed beside the service is noticed by it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelcast.collection.data_rows import remove_by_hand
from kernelcast.launches.data_store import Selection, open_data_store
from kernelcast.service import ServiceSettings

Plain = dict[str, Any]
DEVICE = "fake-device-0000"
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def _send(client: TestClient, problem: Plain, *times_s: float, name: str = "n") -> Plain:
    """Report times, a minute apart."""
    observations = [
        {"key": f"{name}{n}", "problem": problem, "device": DEVICE, "seconds": seconds,
         "measured_at": (BEGIN + timedelta(minutes=n)).isoformat()}
        for n, seconds in enumerate(times_s)
    ]  # fmt: skip
    answer = client.post("/v1/observations", json={"observations": observations})
    assert answer.status_code == 200, answer.text
    found: Plain = answer.json()
    return found


def _ask(client: TestClient, problem: Plain, **more: object) -> Plain:
    asked = {"problem": problem, "devices": [DEVICE], **more}
    answer = client.post("/v1/estimates", json=asked)
    assert answer.status_code == 200, answer.text
    found: Plain = answer.json()["estimates"][0]
    return found


def _wait(client: TestClient, problem: Plain, is_so: Callable[[Plain], bool]) -> Plain:
    """Ask until the service has noticed a change."""
    for _ in range(250):
        found = _ask(client, problem)
        if is_so(found):
            return found
        time.sleep(0.02)
    pytest.fail(f"never came: {found}")


def test_what_is_removed_at_a_terminal_is_noticed(
    client: TestClient, settings: ServiceSettings, problem: Plain
) -> None:
    """The service's answers follow, and its audit log says so."""
    _send(client, problem, 3e-5, 3e-5)
    assert _ask(client, problem)["tier"] == "history"
    with open_data_store(settings.database) as store:
        assert remove_by_hand(store, Selection(kernels=("fill",)), 2) == 2
    _wait(client, problem, lambda one: one["tier"] == "linear")
    (entry,) = client.get("/v1/audit").json()["entries"]
    assert entry["actor"].startswith("command line: ")
    assert entry["detail"] == {"kernels": ["fill"]}
