"""The page of devices, with and without calibrations."""

from collections.abc import Callable
from pathlib import Path

import httpx
from fastapi.testclient import TestClient

from kernelcast.records.errors import NoDeviceError
from kernelcast.service import ServiceSettings
from support.service_backend import FIRST, FakeBackend, failing, open_client, service_of

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
    settings: ServiceSettings, check_page: Check, backend: FakeBackend
) -> None:
    """The service lives and is not ready; pages say why, and how to get a device."""
    error = NoDeviceError("no OpenCL platform; install 'kernelcast[cpu]'")
    backend.list_devices = lambda: failing(error)(None)  # type: ignore[method-assign,arg-type]
    with open_client(settings, backend) as client:
        client.base_url = httpx.URL("http://[::1]")
        assert client.get("/health").status_code == 200
        ready = client.get("/ready")
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "no_device")
        assert "retry-after" in ready.headers
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
    """The job is audited, and shown instead of the button of its device."""
    answer = post("/jobs", {"kind": "calibrate", "devices": FIRST, "effort": "quick"})
    assert [one.action for one in service_of(client).state.audit.list(most=5)] == ["start_job"]
    text = check_page(client.get("/devices"))
    assert f'href="{answer.headers["location"]}"' in text
    assert text.count('name="kind" value="calibrate"') == 1
