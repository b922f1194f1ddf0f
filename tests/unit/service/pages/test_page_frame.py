"""What holds for every page, and the pages of devices and jobs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.records.errors import NoDeviceError
from kernelcast.records.service_state import JobKind
from kernelcast.service import ServiceSettings
from support.served_pages import add_job
from support.service_attacks.target import add_tokens
from support.service_backend import FIRST, FakeBackend, failing, open_client, service_of

Check = Callable[[httpx.Response], str]
PAGES = (
    "/", "/kernels", "/kernels/devices", "/devices", "/accuracy", "/accuracy/compare",
    "/accuracy/models", "/jobs", "/lab",
)  # fmt: skip
MOVED = {
    "/observations": "/kernels", "/estimates?x=1": "/kernels?show=estimates&x=1",
    "/comparing?of=1": "/accuracy/compare?of=1", "/models": "/accuracy/models",
}  # fmt: skip
FORM = {"origin": "http://127.0.0.1", "content-type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_sound(client: TestClient, check_page: Check, path: str) -> None:
    """Pages answer without data, well formed, with their place in the navigation marked."""
    text = check_page(client.get(path))
    assert text.count('aria-current="page"') >= 1
    assert 'href="#main"' in text
    assert 'aria-live="polite"' in text


@pytest.mark.parametrize(("path", "target"), MOVED.items())
def test_pages_that_moved_lead_on(client: TestClient, path: str, target: str) -> None:
    """Addresses of before are no dead ends, and keep what was asked."""
    answer = client.get(path, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, target)


@pytest.fixture
def locked(settings: ServiceSettings, backend: FakeBackend) -> Iterator[tuple[TestClient, str]]:
    """Give a client of a service that needs tokens, and one."""
    with open_client(settings, backend, require_tokens=True) as found:
        found.follow_redirects = False
        yield found, add_tokens(str(settings.database))["reader"]


def test_over_tls_the_cookie_stays_there(locked: tuple[TestClient, str]) -> None:
    """Browsers take it over TLS alone, and from this host alone."""
    client, token = locked
    client.base_url = httpx.URL("https://127.0.0.1")
    headers = {"origin": "https://127.0.0.1"}
    answer = client.post("/sign-in", content=f"token={token}", headers=headers)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"__Host-kernelcast_token={token};")
    for wanted in ("Secure", "HttpOnly", "Path=/", "SameSite=strict"):
        assert wanted in cookie
    assert "Domain" not in cookie
    cookies = {"cookie": f"__Host-kernelcast_token={token}"}
    assert client.get("/devices", headers=headers | cookies).status_code == 200
    planted = {"cookie": f"kernelcast_token={token}"}
    assert client.get("/devices", headers=headers | planted).status_code == 303
    gone = client.post("/sign-out", headers=headers | cookies).headers["set-cookie"]
    assert gone.startswith('__Host-kernelcast_token=""')
    assert "Secure" in gone


def test_without_tls_the_cookie_has_its_plain_name(locked: tuple[TestClient, str]) -> None:
    """Whatever a stranger says of the scheme; that of a revoked token goes.

    The pictures of a page would count as guesses otherwise.
    """
    client, token = locked
    headers = FORM | {"x-forwarded-proto": "https"}
    cookie = client.post("/sign-in", content=f"token={token}", headers=headers)
    assert cookie.headers["set-cookie"].startswith("kernelcast_token=")
    assert "Secure" not in cookie.headers["set-cookie"]
    client.cookies.set("kernelcast_token", "kc_000000000000_" + "a" * 43)
    answer = client.get("/devices")
    assert answer.status_code == 303
    assert 'kernelcast_token=""' in answer.headers["set-cookie"]


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


HTML = {"accept": "text/html"}


@pytest.mark.parametrize(
    ("kind", "fields", "options"),
    [
        (
            "collect",
            {"kernels": "nbody", "devices": "fake-device-0000", "time_budget_minutes": "2",
             "retry_failures_is_there": "1", "retry_failures": "on", "sizes": ""},
            {"kernels": ["nbody"], "devices": ["fake-device-0000"], "time_budget_seconds": 120.0,
             "retry_failures": True},
        ),
        ("calibrate", {"effort": "quick", "only": ""},
         {"effort": "quick", "devices": ["fake-device-0000", "other-device-1111"]}),
        ("train", {"model": "hybrid", "validate_is_there": "1"},
         {"model": "hybrid", "validate": False}),
        ("compare", {"first": "analytic", "second": "hybrid", "shortest_seconds": "0.05"},
         {"first": "analytic", "second": "hybrid", "shortest_seconds": 0.05}),
    ],
)  # fmt: skip
def test_a_form_starts_a_job(
    client: TestClient, post: Callable[..., httpx.Response], kind: str, fields: dict[str, Any],
    options: dict[str, Any],
) -> None:  # fmt: skip
    """With the options that the API takes."""
    answer = post("/jobs", {"kind": kind, **fields})
    [job] = client.get("/v1/jobs").json()["jobs"]
    assert (job["kind"], job["options"]) == (kind, options)
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    page = client.get(answer.headers["location"], headers=HTML).text
    assert "queued" in page
    assert "asked for by local" in page


@pytest.mark.parametrize(
    ("kind", "result", "told"),
    [
        (JobKind.COLLECT,
         {"devices": [{"device_id": "d", "kernels": 2, "measured": 12, "present": 0,
                       "disturbed": 1, "skipped": {"huge": "too large"},
                       "failures": [{"kernel": "k", "kind": "KernelRunError", "message": "bad"}],
                       "errors": {"e": "no source"}}]},
         ["too large", "KernelRunError: bad", "no source"]),
        (JobKind.CALIBRATE,
         {"devices": [{"device_id": "d", "durations_seconds": {"copy": 61.0}, "resumed": [],
                       "failed": {"walk": "no cache"}},
                      {"device_id": "e", "error_message": "it is gone"}]},
         ["no cache", "it is gone", "61"]),
        (JobKind.TRAIN,
         {"models": [{"name": "hybrid/d", "version": "0001", "rows": 9, "kernels": 3,
                      "devices": ["d"]}], "refused": {"hybrid/e": "too few rows"},
          "left_out": ["hybrid/d: 3 of 12 rows are left out"]},
         ["hybrid/d", "too few rows", "3 of 12 rows"]),
    ],
)  # fmt: skip
def test_results_are_tables(
    client: TestClient, kind: JobKind, result: object, told: list[str]
) -> None:
    """Of every kind of job; the whole result is a file."""
    job_id = add_job(service_of(client).state, kind, result=result)
    page = client.get(f"/jobs/{job_id}", headers=HTML).text
    assert all(one in page for one in told)
    assert client.get(f"/jobs/{job_id}/result.json").json() == result
