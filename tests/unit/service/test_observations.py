"""Observations are stored before they are acknowledged, each key once."""

from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient

from kernelcast.collection.data_rows import remove_by_hand
from kernelcast.launches.data_store import Selection, open_data_store
from kernelcast.service import ServiceSettings
from kernelcast.service_state import Store, StoreError
from kernelcast.service_state.state import ChangeTable
from support.running_service import wait_until
from support.service_backend import FIRST, FakeBackend, Plain, estimate, observe


def _report(problem: Plain, key: str, **more: object) -> Plain:
    return {"key": key, "problem": problem, "device": FIRST, "seconds": 0.5, **more}


def test_other_observations_leave_an_answer_as_it_is(
    client: TestClient, backend: FakeBackend, problem: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is observed of another launch costs no sampling of this one."""
    looks: list[int] = []
    look = backend.generation
    monkeypatch.setattr(backend, "generation", lambda: (looks.append(1), look())[1])
    estimate(client, problem)
    observe(client, _report({**problem, "global_size": [128]}, "a"))
    seen = len(looks) + 2  # the first may have begun before
    wait_until(lambda: len(looks), lambda count: count >= seen)
    assert estimate(client, problem)["tier"] == "linear"
    assert backend.calls["sample"] == 1


def test_a_store_that_is_away_is_told(
    client: TestClient, problem: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 and Retry-After, nothing acknowledged; kept answers still come."""
    estimate(client, problem)
    fail = Mock(side_effect=StoreError("the server does not answer"))
    monkeypatch.setattr(Store, "add_many", fail)
    monkeypatch.setattr(ChangeTable, "read", fail)
    refused = client.post("/v1/observations", json={"observations": [_report(problem, "a")]})
    assert estimate(client, problem)["is_kept"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "database_unavailable")
    assert "retry-after" in refused.headers


def test_what_is_removed_at_a_terminal_is_noticed(
    client: TestClient, settings: ServiceSettings, problem: Plain
) -> None:
    """The service's answers follow, and its audit log says so."""
    observe(client, *(_report(problem, key, seconds=3e-5) for key in ("a", "b")))
    assert estimate(client, problem)["tier"] == "history"
    with open_data_store(settings.database) as store:
        assert remove_by_hand(store, Selection(kernels=("fill",)), 2) == 2
    wait_until(lambda: estimate(client, problem)["tier"], lambda tier: tier == "linear")
    (entry,) = client.get("/v1/audit").json()["entries"]
    assert entry["actor"].startswith("command line: ")
    assert entry["detail"] == {"kernels": ["fill"]}
