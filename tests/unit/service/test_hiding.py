"""Callers are not told where this installation keeps its files."""

import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import kernelcast
from kernelcast.records.errors import DeviceError, InputError
from kernelcast.service.errors import describe_error, message_of
from kernelcast.service.hiding import hide_paths
from kernelcast.testing.service_backend import FakeBackend, failing


def test_our_places_have_names(folder: Path) -> None:
    """Those of data, package, interpreter and home."""
    package = Path(kernelcast.__file__).parent
    assert hide_paths(f"{folder}/machines/a.yaml: no") == "<data>/machines/a.yaml: no"
    assert hide_paths(f"in '{package}/cli/app.py'") == "in '<installation>/cli/app.py'"
    library = Path(sys.prefix) / "lib" / "site-packages" / "yaml.py"
    assert str(sys.prefix) not in hide_paths(str(library))


def test_home_has_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As shells write it; a neighbour whose name begins alike is somebody else."""
    from kernelcast.service import hiding

    hiding._known_places.cache_clear()
    with monkeypatch.context() as patch:
        patch.setenv("HOME", "/home/someone")
        assert hide_paths("/home/someone/.cache/pocl: full") == "~/.cache/pocl: full"
        assert hide_paths("/home/someone-else/x") == "/home/someone-else/x"
        assert hide_paths("/srv/home/someone/x") == "/srv/home/someone/x"
    hiding._known_places.cache_clear()


def test_errors_hold_no_places(folder: Path) -> None:
    """Wherever an error becomes an answer."""
    error = InputError(f"{folder}/x.yaml: cannot be read")
    assert message_of(error) == "<data>/x.yaml: cannot be read"
    assert str(folder) not in str(describe_error("x", str(error)))


def test_a_damaged_file_is_told_without_its_place(client: TestClient, folder: Path) -> None:
    """By the API and by pages."""
    machines = folder / "machines"
    machines.mkdir(parents=True, exist_ok=True)
    (machines / "fake-device-0000.yaml").write_text("schema: [")
    answer = client.get("/v1/machines/fake-device-0000")
    assert answer.status_code == 422
    assert "<data>/machines/fake-device-0000.yaml" in answer.json()["error"]["message"]
    for path in ("/v1/machines/fake-device-0000", "/devices"):
        assert str(folder) not in client.get(path).text


def test_a_failing_device_is_told_without_places(
    client: TestClient, backend: FakeBackend, problem: dict[str, object]
) -> None:
    """A driver's words name its library."""
    place = f"{sys.prefix}/lib/libpocl.so"
    error = DeviceError(f"{place}: no symbol")
    backend.list_devices = lambda: failing(error)(None)  # type: ignore[method-assign,arg-type]
    for path in ("/v1/devices", "/devices", "/lab"):
        assert sys.prefix not in client.get(path).text
    assert sys.prefix not in client.post("/v1/estimates", json={"problem": problem}).text
