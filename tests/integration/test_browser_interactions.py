"""What a person does on the pages with a mouse: points, clicks, folds out, compares, runs again."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("selenium", reason="pip install selenium")
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

from kernelcast.service_state import ServiceState
from support.browsing import find_browser, open_browser
from support.served_pages import serve_pages

pytestmark = pytest.mark.skipif(
    find_browser() is None, reason="apt install chromium chromium-driver"
)
_PATIENCE_S = 60.0
_CHART = "Chart.getChart(document.querySelector('.chart canvas'))"
_UNDRAWN = (
    "return [...document.querySelectorAll('.chart:not([data-is-drawn])')]"
    ".filter((one) => one.offsetParent).length"
)


class Person:
    """Opens pages and acts on them."""

    def __init__(self, browser: webdriver.Chrome, address: str) -> None:
        self.browser = browser
        self._address = address

    def open(self, path: str) -> None:
        """Open a page and wait for its charts."""
        self.browser.get(self._address + path)
        self.wait(lambda: self.browser.execute_script(_UNDRAWN) == 0)

    def wait(self, until: Callable[[], Any]) -> None:
        """Wait until something is there."""
        ends_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < ends_s:
            with contextlib.suppress(WebDriverException):  # a page that is on its way
                if until():
                    return
            time.sleep(0.05)
        msg = f"it did not come: {self.browser.current_url}"
        raise AssertionError(msg)

    def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the script gives
        """Run a script on the page."""
        return self.browser.execute_script(script)

    def find(self, selector: str) -> Any:  # noqa: ANN401 - selenium's
        """Find an element."""
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def press(self, text: str) -> None:
        """Press a button."""
        self.browser.find_element(By.XPATH, f"//main//button[normalize-space()='{text}']").click()

    def point_at(self, x: float, y: float) -> webdriver.ActionChains:
        """Move the mouse to a place on the first chart; what is to be done there is added."""
        canvas = self.find(".chart canvas")
        self.browser.execute_script(
            "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas
        )
        size = canvas.size
        across, down = round(x - size["width"] / 2), round(y - size["height"] / 2)
        return webdriver.ActionChains(self.browser).move_to_element_with_offset(
            canvas, across, down
        )


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ServiceState]]:
    """Give a service with observations and jobs that are done."""
    with serve_pages(tmp_path_factory.mktemp("pages"), is_full=True) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Give one browser for all tests."""
    found = open_browser()
    # Pages scroll smoothly else, and what is to be clicked moves away.
    still = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    found.execute_cdp_cmd("Emulation.setEmulatedMedia", still)
    yield found
    found.quit()


@pytest.fixture
def person(browser: webdriver.Chrome, service: tuple[str, ServiceState]) -> Person:
    """Give somebody in front of the pages."""
    return Person(browser, service[0])


def test_a_point_says_what_it_is_and_leads_there(person: Person) -> None:
    """Resting on a point shows its kernel and times; a click opens the kernel's page."""
    person.open("/accuracy?device=device-1")
    x, y = person.run(f"const one = {_CHART}.getDatasetMeta(0).data[0]; return [one.x, one.y]")
    person.point_at(x, y).perform()
    person.wait(lambda: person.run(f"return {_CHART}.tooltip.opacity") > 0)
    told = person.run(f"return {_CHART}.tooltip.body.flatMap((one) => one.lines)")
    assert any("suite/application" in one for one in told)
    assert any("measured time" in one for one in told)
    person.point_at(x, y).click().perform()
    person.wait(lambda: "/kernels/of?name=suite" in person.browser.current_url)


def test_a_click_in_the_legend_hides_a_series(person: Person) -> None:
    """And a second one shows it again."""
    person.open("/accuracy?device=device-1")
    box = person.run(f"return {_CHART}.legend.legendHitBoxes[0]")
    middle = (box["left"] + box["width"] / 2, box["top"] + box["height"] / 2)
    person.point_at(*middle).click().perform()
    person.wait(lambda: not person.run(f"return {_CHART}.isDatasetVisible(0)"))
    person.point_at(*middle).click().perform()
    person.wait(lambda: person.run(f"return {_CHART}.isDatasetVisible(0)"))


def test_numbers_of_a_chart_fold_out(person: Person) -> None:
    """The table below holds the points that are drawn."""
    person.open("/accuracy?device=device-1")
    assert not person.find("details.numbers").get_attribute("open")
    person.find("details.numbers summary").click()
    person.wait(lambda: person.find("details.numbers table").is_displayed())
    points = person.run(
        f"return {_CHART}.data.datasets.filter((one) => !one.isGuide)"
        ".reduce((sum, one) => sum + one.data.length, 0)"
    )
    rows = person.browser.find_element(By.CSS_SELECTOR, "details.numbers")
    assert len(rows.find_elements(By.CSS_SELECTOR, "tbody tr")) == points


def test_devices_are_compared(person: Person) -> None:
    """Boxes are ticked, the address keeps them, and numbers and roofs stand side by side."""
    person.open("/devices")
    person.browser.find_element(By.LINK_TEXT, "Compare devices").click()
    for name in ("h200", "mi300x", "a100"):
        box = person.browser.find_elements(By.CSS_SELECTOR, f"input[value={name}]")
        if box and not box[0].is_selected():
            box[0].click()
    person.press("Compare")
    person.wait(lambda: "machine=a100" in person.browser.current_url)
    person.wait(lambda: person.run(_UNDRAWN) == 0)
    rows = person.browser.find_elements(By.CSS_SELECTOR, "main table tbody tr")
    assert len(rows) >= 2
    roofs = person.run(f"return {_CHART}.data.datasets.length")
    assert roofs >= 2
