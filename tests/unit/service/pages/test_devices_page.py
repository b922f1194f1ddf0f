"""The page of devices, with and without calibrations."""

from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import NoDeviceError
from kernelcast.records.service_state import JobKind
from kernelcast.service import ServiceSettings
from support.service_backend import FIRST, FakeBackend, open_client, service_of

Check = Callable[[httpx.Response], str]
FIGURE = "/devices/machines/a100/saturation"


def test_a_damaged_calibration_is_told(client: TestClient, check_page: Check, folder: Path) -> None:
    """The other device is still there."""
    (folder / "machines").mkdir(parents=True)
    (folder / "machines" / f"{FIRST}.yaml").write_text("schema: [", encoding="utf-8")
    text = check_page(client.get("/devices"))
    assert "The calibration cannot be read" in text
    assert "Other device" in text


def test_no_device_at_all(
    settings: ServiceSettings, check_page: Check, backend: FakeBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The page says so, and how to get one."""

    def refuse() -> Sequence[DeviceDescription]:
        raise NoDeviceError("no OpenCL platform; install 'kernelcast[cpu]'")

    monkeypatch.setattr(backend, "list_devices", refuse)
    with open_client(settings, backend) as client:
        text = check_page(client.get("/devices"))
        assert "There is no OpenCL device here" in text
        assert "kernelcast[cpu]" in text
        assert "There is no OpenCL device here" in check_page(client.get("/lab"))


def test_pictures_in_both_themes(client: TestClient) -> None:
    """Dark is drawn in light ink; both hold no script and nothing from elsewhere."""
    light, dark = (client.get(f"{FIGURE}.svg?theme={theme}") for theme in ("light", "dark"))
    assert light.headers["content-type"] == "image/svg+xml"
    assert light.text != dark.text
    assert "#1b1d21" in light.text
    assert "#1b1d21" not in dark.text
    assert "#010203" not in light.text
    assert "<script" not in light.text


def test_the_button_starts_a_calibration(
    client: TestClient, post: Callable[..., httpx.Response], check_page: Check
) -> None:
    """The job is written down with device and effort, audited, and shown instead of the button."""
    answer = post("/jobs", {"kind": "calibrate", "devices": FIRST, "effort": "quick"})
    assert answer.status_code == 303
    state = service_of(client).state
    [job] = state.jobs.list(kinds=(JobKind.CALIBRATE,))
    assert answer.headers["location"] == f"/jobs/{job.id}"
    assert job.devices == (FIRST,)
    assert job.options == {"devices": [FIRST], "effort": "quick"}
    assert [one.action for one in state.audit.list(most=5)] == ["start_job"]
    text = check_page(client.get("/devices"))
    assert f'href="/jobs/{job.id}"' in text
    assert text.count('name="kind" value="calibrate"') == 1
