"""What all tests of pages need: forms that are sent, and what holds for every page."""

from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from urllib.parse import urlencode

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.workers import Task
from kernelcast.workers.task import find_function

_VOID = frozenset({"meta", "link", "input", "img", "source", "br", "rect", "hr"})
Fields = Mapping[str, str | Sequence[str]]
Post = Callable[..., httpx.Response]


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
        found: object = find_function(task.entry)(arguments, lambda _: None)  # type: ignore[arg-type]
        return found

    monkeypatch.setattr("kernelcast.service.service.run_isolated", run)
