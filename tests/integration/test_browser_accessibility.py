"""Every page by axe-core in a real browser: empty and with data, light and dark, wide and narrow.

``tests/data/axe.min.js`` is axe-core 4.14.1 as its makers publish it, under the Mozilla Public
License 2.0; it is part of no wheel.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="pip install selenium")
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from support.served_pages import KERNEL_PAGE, SHOWN_PAGES, serve_pages

pytestmark = pytest.mark.timeout(600)
_AXE = (Path(__file__).parents[1] / "data" / "axe.min.js").read_text(encoding="utf-8")
_RUN = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations.map(
  (one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 4)}`
)), (error) => done([String(error)]));
"""
_UNDRAWN = "return document.querySelectorAll('.chart:not([data-is-drawn])').length"


@pytest.fixture(scope="module")
def pages(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """Give the pages of a service that holds something, and of one that holds nothing."""
    is_full = request.param == "full"
    with serve_pages(tmp_path_factory.mktemp(request.param), is_full=is_full) as (address, _):
        shown = (*SHOWN_PAGES, KERNEL_PAGE) if is_full else SHOWN_PAGES
        yield [address + one for one in shown]


@pytest.mark.parametrize(
    ("pages", "width", "theme"),
    [("full", 1400, "light"), ("full", 390, "dark"), ("empty", 390, "light")],
    indirect=["pages"],
)
def test_no_page_violates_a_rule(
    browser: webdriver.Chrome, pages: list[str], width: int, theme: str
) -> None:
    """Contrast, names, roles, order of headings, keyboard: whatever axe-core checks."""
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    found: dict[str, Any] = {}
    for page in pages:
        browser.get(page)
        WebDriverWait(browser, 60).until(lambda one: not one.execute_script(_UNDRAWN))
        browser.execute_script(_AXE)
        if violations := browser.execute_async_script(_RUN):
            found[page.partition("://")[2]] = violations
    assert found == {}
