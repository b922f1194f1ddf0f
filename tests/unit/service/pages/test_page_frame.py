"""What holds for every page: headers, structure, signing in, errors, files."""

from collections.abc import Callable, Iterator

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.service import ServiceSettings
from support.service_attacks.target import add_tokens
from support.service_backend import FakeBackend, open_client

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
