"""A wrong observation does not become the truth, and can be taken out or corrected."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelcast.collection.data_rows import remove_by_hand
from kernelcast.launches.data_store import Selection, open_data_store
from kernelcast.service import ServiceSettings
from support.service_backend import FakeBackend

Plain = dict[str, Any]
DEVICE = "fake-device-0000"
USUAL_S = 1024e-8
"""What the fake device samples."""
WRONG_S = 1e-9
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


def test_a_wrong_observation_changes_no_answer_and_is_told(
    client: TestClient, backend: FakeBackend, problem: Plain
) -> None:
    """In the reply to who reports it, and in the warnings of the estimate, which was kept."""
    _ask(client, problem)
    (doubt,) = _send(client, problem, WRONG_S)["doubted"]
    assert doubt["key"] == "n0"
    assert "impossible" in doubt["reason"]
    found = _wait(client, problem, lambda one: bool(one["warnings"]))
    assert (found["tier"], found["seconds"]) == ("linear", pytest.approx(USUAL_S))
    assert "1e-09 s" in found["warnings"][0]
    history = found["explanation"]["history"]
    assert history["observations"] == 0
    assert [one["key"] for one in history["set_aside"]] == [doubt["observation"]]
    assert "not believed" in found["explanation"]["missing"]["history"]
    assert backend.calls["sample"] == 1


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
