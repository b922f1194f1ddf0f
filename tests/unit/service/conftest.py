"""A service over fake devices, with a folder and a database of its own."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    # It wants httpx2 by now; httpx still works, and our own client speaks it.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

from kernelcast.service import ServiceSettings, changes
from support.service_backend import PROBLEM, FakeBackend, open_client


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """See what has changed without waiting for a second."""
    monkeypatch.setattr(changes, "PERIOD_S", 0.1)


@pytest.fixture
def problem() -> dict[str, Any]:
    """Give a problem that can be sent."""
    return {**PROBLEM}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the data folder."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("KERNELCAST_STORE", raising=False)
    monkeypatch.delenv("KERNELCAST_MODELS", raising=False)
    return tmp_path / "data"


@pytest.fixture
def settings(folder: Path) -> ServiceSettings:
    """Give settings under which everything is allowed."""
    return ServiceSettings(
        database=str(folder / "store.sqlite"),
        registry=str(folder / "models"),
        allow_run=True,
        runs_jobs=False,
    )


@pytest.fixture
def backend(settings: ServiceSettings) -> FakeBackend:
    """Give the fake devices."""
    return FakeBackend(str(settings.database))


@pytest.fixture
def client(settings: ServiceSettings, backend: FakeBackend) -> Iterator[TestClient]:
    """Give a client of a running service."""
    with open_client(settings, backend) as found:
        yield found
