"""A service over fake devices, with a database of its own; its forms, and what holds for pages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from kernelcast.service import ServiceSettings
from kernelcast.service import backend as backend_module
from kernelcast.service_state import ServiceState, open_state
from kernelcast.workers import Task
from support.service_backend import PROBLEM, FakeBackend, TestClient, make_settings, open_client

_VOID = frozenset({"meta", "link", "input", "img", "source", "br", "rect", "hr"})
Fields = Mapping[str, str | Sequence[str]]
Post = Callable[..., httpx.Response]


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """See what has changed without waiting for a second."""
    monkeypatch.setattr(backend_module, "PERIOD_S", 0.1)


@pytest.fixture
def problem() -> dict[str, Any]:
    return {**PROBLEM}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("KERNELCAST_STORE", raising=False)
    monkeypatch.delenv("KERNELCAST_MODELS", raising=False)
    return tmp_path / "data"


@pytest.fixture
def settings(folder: Path) -> ServiceSettings:
    return make_settings(folder)


@pytest.fixture
def backend(settings: ServiceSettings) -> FakeBackend:
    return FakeBackend(str(settings.database))


@pytest.fixture
def state(settings: ServiceSettings) -> Iterator[ServiceState]:
    with open_state(str(settings.database)) as found:
        yield found


@pytest.fixture
def client(settings: ServiceSettings, backend: FakeBackend) -> Iterator[TestClient]:
    with open_client(settings, backend) as found:
        yield found


class _Checker(HTMLParser):
    """Makes sure that tags close in order, and that nothing within the page is script or style."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        assert tag != "style", "a style element within the page"
        assert tag != "script" or held.get("src"), "a script within the page"
        assert not [name for name in held if name == "style" or name.startswith("on")], attrs
        if tag == "img":
            assert held.get("alt"), "a picture without words"
        if "id" in held:
            self.ids.append(held["id"] or "")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _VOID, f"<{tag}/> closes itself"

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"


def _check(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    checker = _Checker()
    checker.feed(answer.text)
    checker.close()
    assert not checker.open, f"never closed: {checker.open}"
    twice = {one for one in checker.ids if checker.ids.count(one) > 1}
    assert not twice, f"ids that stand twice: {twice}"
    return answer.text


@pytest.fixture
def check_page() -> Callable[[httpx.Response], str]:
    """Give what checks headers and structure of a page or a part of one; it gives the text."""
    return _check


@pytest.fixture
def post(client: TestClient) -> Post:
    """Give what sends a form as a browser does."""

    def send(path: str, fields: Fields, *, is_fragment: bool = False) -> httpx.Response:
        headers = {
            "origin": "http://127.0.0.1",
            "content-type": "application/x-www-form-urlencoded",
            "accept": "text/html",
        }
        if is_fragment:
            headers["x-fragment"] = "1"
        body = urlencode(fields, doseq=True)
        found: httpx.Response = client.post(
            path, content=body, headers=headers, follow_redirects=False
        )
        return found

    return send


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do here what the Lab does in child processes: they take a second each to start."""

    def run(
        task: Task[object], arguments: object, *, timeout_s: float, subject: str, **_: object
    ) -> object:
        assert timeout_s > 0
        assert subject
        found: object = resolve_name(task.entry)(arguments, lambda _: None)
        return found

    monkeypatch.setattr("kernelcast.service.service.run_isolated", run)
