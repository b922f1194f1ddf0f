"""Pages of results in a real browser: with data, without, by keyboard and mouse, live."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("selenium", reason="pip install selenium")
from selenium import webdriver
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from kernelcast.records.service_state import JobState
from kernelcast.service_state import ServiceState
from support.served_pages import serve_pages

_PATIENCE_S = 60.0
KERNEL = "suite/application0/kernel0"
_CHART = "Chart.getChart(document.querySelector('.chart canvas'))"
_TOO_WIDE = """
const most = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= most) return [];
return [...document.querySelectorAll("main *")]
  .filter(one => one.getBoundingClientRect().right > most && !one.closest(".wide, pre"))
  .map(one => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`).slice(0, 9)
  .concat(location.pathname);
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ServiceState]]:
    """Give a service with observations and jobs that are done."""
    with serve_pages(tmp_path_factory.mktemp("pages"), is_full=True) as found:
        yield found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a service that holds nothing."""
    with serve_pages(tmp_path_factory.mktemp("nothing"), is_full=False) as (address, _):
        yield address


def _wait(until: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever there is to be seen
    """Wait until something is there; what was replaced, or is not there yet, is looked for anew."""
    from selenium.common.exceptions import WebDriverException

    ends_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < ends_s:
        # A page that loads itself anew has no element at all for a moment, or one of the old page,
        # which drivers say in several ways.
        with contextlib.suppress(WebDriverException):
            if found := until():
                return found
        time.sleep(0.05)
    raise AssertionError("it did not come")


def _text(browser: webdriver.Chrome) -> str:
    # None while one page goes and the next one comes.
    return "".join(one.text for one in browser.find_elements(By.TAG_NAME, "main"))


def _check(browser: webdriver.Chrome) -> None:
    """See to it that pictures are drawn, nothing was blocked and nothing failed."""
    undrawn = "return document.querySelectorAll('.chart:not([data-is-drawn])').length"
    _wait(lambda: browser.execute_script(undrawn) == 0)
    script = "return [...document.images].filter(one => !(one.complete && one.naturalWidth)).length"
    _wait(lambda: browser.execute_script(script) == 0)
    assert all(one.get_attribute("alt") for one in browser.find_elements(By.TAG_NAME, "img"))
    assert browser.execute_script(_TOO_WIDE) == [], "the page scrolls sideways"
    assert [one["message"] for one in browser.get_log("browser")] == []


@pytest.mark.parametrize(("width", "theme"), [(1200, "light"), (390, "dark")])
def test_pages_with_data(
    browser: webdriver.Chrome, service: tuple[str, ServiceState], width: int, theme: str
) -> None:
    """In both themes, on a screen and on a telephone; no picture is missing."""
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    for path, told in (
        ("/", "What to do next"),
        ("/devices/fake-device-0000", "Curves"),
        ("/accuracy?device=device-1", "Every answer that was observed"),
        ("/kernels", "Estimates and observations"),
        (f"/kernels/of?name={KERNEL}", "Every size and device"),
        ("/accuracy/compare", "within noise"),
        ("/jobs", "Comparison"),
    ):
        browser.get(service[0] + path)
        assert told in _text(browser)
        _check(browser)


def test_pages_without_data(browser: webdriver.Chrome, empty: str) -> None:
    """Each says what to do, and its button leads to the open form."""
    for path, told in (
        ("/accuracy", "answered nothing in this time"),
        ("/", "Ask for an estimate"),
        ("/kernels", "holds no observations yet"),
        ("/accuracy/compare", "Nothing was compared yet"),
        ("/jobs", "No job was started yet"),
    ):
        browser.get(empty + path)
        assert told in _text(browser)
        _check(browser)
    browser.get(empty + "/accuracy")
    browser.find_element(By.LINK_TEXT, "Start a collection").send_keys(Keys.ENTER)
    _wait(lambda: "/jobs?new=collect" in browser.current_url)
    assert browser.find_element(By.ID, "collect-kernels").is_displayed()


def _range_of(browser: webdriver.Chrome) -> tuple[float, float]:
    """Give the ends of the first chart's upright axis."""
    found = browser.execute_script(f"const {{min, max}} = {_CHART}.scales.y; return [min, max]")
    return float(found[0]), float(found[1])


def _bring(browser: webdriver.Chrome, element: WebElement) -> float:
    """Bring an element into the middle of the screen at once; give how far the page is scrolled."""
    script = (
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'});return window.scrollY"
    )
    return float(browser.execute_script(script, element))


def _turn_wheel(browser: webdriver.Chrome, canvas: WebElement) -> None:
    """Turn the wheel by one notch above the middle of a chart."""
    origin = ScrollOrigin.from_element(canvas)
    webdriver.ActionChains(browser).scroll_from_origin(origin, 0, -100).perform()


def test_a_chart_is_looked_at_closely(
    browser: webdriver.Chrome, service: tuple[str, ServiceState]
) -> None:
    """Dragging, the wheel and keys zoom; a button and a key show all again; pages still scroll."""
    browser.get(service[0] + "/accuracy?device=device-1")
    _check(browser)
    canvas = browser.find_element(By.CSS_SELECTOR, ".chart canvas")
    button = browser.find_element(By.CSS_SELECTOR, ".chart [data-show-all]")
    _bring(browser, canvas)
    whole, before = _range_of(browser), _bring(browser, canvas)
    assert not button.is_displayed()
    _turn_wheel(browser, canvas)  # nobody has pointed at this chart: the page scrolls
    _wait(lambda: browser.execute_script("return window.scrollY") != before)
    assert _range_of(browser) == whole
    _wait(lambda: _bring(browser, canvas) == before)

    drag = webdriver.ActionChains(browser).move_to_element_with_offset(canvas, -60, -60)
    drag.click_and_hold().move_by_offset(120, 120).release().perform()
    _wait(lambda: _range_of(browser)[0] > whole[0] and _range_of(browser)[1] < whole[1])
    assert "/accuracy" in browser.current_url  # a drag is no click
    _wait(button.is_displayed)
    button.click()
    _wait(lambda: _range_of(browser) == pytest.approx(whole))
    assert not button.is_displayed()
    assert browser.switch_to.active_element == canvas

    _turn_wheel(browser, canvas)  # it has the focus now
    _wait(lambda: _range_of(browser)[1] < whole[1])
    canvas.send_keys("0")
    _wait(lambda: _range_of(browser) == pytest.approx(whole))

    canvas.send_keys("+")
    _wait(button.is_displayed)
    closer = _range_of(browser)
    canvas.send_keys(Keys.SHIFT, Keys.ARROW_UP)
    _wait(lambda: _range_of(browser)[1] > closer[1])
    canvas.send_keys("0")
    _wait(lambda: _range_of(browser) == pytest.approx(whole))
    announced = browser.find_element(By.ID, "announcer")
    assert announced.get_attribute("textContent") == "All is shown"


def test_rows_become_cards_on_a_telephone(
    browser: webdriver.Chrome, service: tuple[str, ServiceState]
) -> None:
    """Each cell says what it is, nothing is cut at the side, and rows can still be sorted."""
    screen = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(service[0] + f"/kernels/of?name={KERNEL}")
    _check(browser)
    row = browser.find_element(By.CSS_SELECTOR, "#sizes tbody tr")
    shown = browser.execute_script(
        "return [...arguments[0].cells].slice(1).map((cell) => "
        "getComputedStyle(cell, '::before').content.slice(1, -1))",
        row,
    )
    assert shown[:3] == ["device", "time", "noise"]
    box = browser.find_element(By.CSS_SELECTOR, ".wide:has(#sizes)")
    assert browser.execute_script(
        "return arguments[0].scrollWidth <= arguments[0].clientWidth", box
    )
    assert row.get_attribute("role") == "row"
    before = [one.text for one in browser.find_elements(By.CSS_SELECTOR, "#sizes tbody th")]
    browser.find_element(By.CSS_SELECTOR, "#sizes thead button").send_keys(Keys.ENTER)
    after = [one.text for one in browser.find_elements(By.CSS_SELECTOR, "#sizes tbody th")]
    assert after == sorted(before)


def test_tables_are_sorted_and_searched(
    browser: webdriver.Chrome, service: tuple[str, ServiceState]
) -> None:
    """By a head's button and by words; the address keeps both."""

    def list_shown() -> list[str]:
        rows = browser.find_elements(By.CSS_SELECTOR, "#kernels tbody tr")
        return [one.find_element(By.TAG_NAME, "th").text for one in rows if one.is_displayed()]

    browser.get(service[0] + "/accuracy?device=device-1")
    before = list_shown()
    head = browser.find_element(By.CSS_SELECTOR, "#kernels th button")
    head.send_keys(Keys.ENTER)
    assert list_shown() == sorted(before)
    browser.find_element(By.ID, "kernels-search").send_keys("kernel3")
    assert list_shown() == [one for one in sorted(before) if "kernel3" in one]
    browser.get(browser.current_url)
    assert list_shown() == [one for one in sorted(before) if "kernel3" in one]
    assert browser.find_element(By.CSS_SELECTOR, "#kernels th").get_attribute("aria-sort")


def test_a_choice_by_keyboard(browser: webdriver.Chrome, service: tuple[str, ServiceState]) -> None:
    """Another device is chosen and shown without a mouse."""
    browser.get(service[0] + "/accuracy")
    field = browser.find_element(By.ID, "device")
    field.send_keys("device-2")
    field.send_keys(Keys.ENTER)
    button = field.find_element(By.XPATH, "ancestor::form//button")
    button.send_keys(Keys.ENTER)
    _wait(lambda: "device=device-2" in browser.current_url)
    assert "device-1" not in browser.find_element(By.CSS_SELECTOR, ".wide").text


def test_a_job_is_started_followed_and_cancelled(
    browser: webdriver.Chrome, service: tuple[str, ServiceState]
) -> None:
    """What happens to it is seen without loading the page again."""
    address, state = service
    browser.get(address + "/jobs?new=train")
    model = browser.find_element(By.ID, "train-model")
    form = model.find_element(By.XPATH, "ancestor::form")
    form.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    _wait(lambda: browser.find_elements(By.CSS_SELECTOR, "[data-alone]"))
    job_id = browser.current_url.rpartition("/")[2]
    browser.execute_script("window.isSame = true")
    claimed = state.jobs.claim("elsewhere", ())
    assert claimed is not None
    assert claimed.id == job_id
    progress = {"done": 3, "total": 8, "stage": "fits", "remaining_seconds": 90,
                "log": [["2126-01-01T00:00:00+00:00", "fits begin"]]}  # fmt: skip
    state.jobs.report(job_id, "elsewhere", progress)
    _wait(lambda: "3 of 8" in _text(browser) and "fits begin" in _text(browser))
    assert "about 90 s left" in _text(browser)
    assert browser.execute_script("return window.isSame")
    browser.get(address + "/jobs")
    row = f'[data-job="{job_id}"]'
    browser.find_element(By.CSS_SELECTOR, f"{row} button").send_keys(Keys.ENTER)
    _wait(lambda: "ends soon" in _text(browser))
    state.jobs.finish(job_id, "elsewhere", JobState.CANCELLED)
    # It is over: the page loads itself anew, with the end in the log.
    _wait(lambda: "cancelled" in browser.find_element(By.CSS_SELECTOR, ".log").text)
    _check(browser)


def _point_at(browser: webdriver.Chrome, x: float, y: float) -> webdriver.ActionChains:
    """Move the mouse to a place on the first chart; what is to be done there is added."""
    canvas = browser.find_element(By.CSS_SELECTOR, ".chart canvas")
    _bring(browser, canvas)
    across, down = round(x - canvas.size["width"] / 2), round(y - canvas.size["height"] / 2)
    return webdriver.ActionChains(browser).move_to_element_with_offset(canvas, across, down)


def test_a_point_says_what_it_is_and_leads_there(
    browser: webdriver.Chrome, service: tuple[str, ServiceState]
) -> None:
    """Resting on a point shows its kernel and times; a click opens the kernel's page."""
    browser.get(service[0] + "/accuracy?device=device-1")
    _check(browser)
    place = f"const one = {_CHART}.getDatasetMeta(0).data[0]; return [one.x, one.y]"
    x, y = browser.execute_script(place)
    _point_at(browser, x, y).perform()
    _wait(lambda: browser.execute_script(f"return {_CHART}.tooltip.opacity") > 0)
    told = browser.execute_script(f"return {_CHART}.tooltip.body.flatMap((one) => one.lines)")
    assert any("suite/application" in one for one in told)
    assert any("measured time" in one for one in told)
    _point_at(browser, x, y).click().perform()
    _wait(lambda: "/kernels/of?name=suite" in browser.current_url)


def test_a_chart_hides_series_and_shows_its_numbers(
    browser: webdriver.Chrome, service: tuple[str, ServiceState]
) -> None:
    """A click in the legend hides a series, a second one shows it; a table has the points drawn."""
    browser.get(service[0] + "/accuracy?device=device-1")
    _check(browser)
    box = browser.execute_script(f"return {_CHART}.legend.legendHitBoxes[0]")
    middle = (box["left"] + box["width"] / 2, box["top"] + box["height"] / 2)
    for is_shown in (False, True):
        _point_at(browser, *middle).click().perform()
        script = f"return {_CHART}.isDatasetVisible(0) === arguments[0]"
        _wait(lambda want=is_shown, script=script: browser.execute_script(script, want))
    numbers = browser.find_element(By.CSS_SELECTOR, "details.numbers")
    numbers.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    _wait(lambda: numbers.find_element(By.TAG_NAME, "table").is_displayed())
    points = browser.execute_script(
        f"return {_CHART}.data.datasets.filter((one) => !one.isGuide)"
        ".reduce((sum, one) => sum + one.data.length, 0)"
    )
    assert len(numbers.find_elements(By.CSS_SELECTOR, "tbody tr")) == points


def test_devices_are_compared(browser: webdriver.Chrome, service: tuple[str, ServiceState]) -> None:
    """Boxes are ticked, the address keeps them, and numbers and roofs stand side by side."""
    browser.get(service[0] + "/devices")
    browser.find_element(By.LINK_TEXT, "Compare devices").send_keys(Keys.ENTER)
    _wait(lambda: browser.find_elements(By.CSS_SELECTOR, "input[value=a100]"))
    for name in ("h200", "mi300x", "a100"):
        box = browser.find_elements(By.CSS_SELECTOR, f"input[value={name}]")
        if box and not box[0].is_selected():
            box[0].send_keys(Keys.SPACE)
    browser.find_element(By.XPATH, "//main//button[normalize-space()='Compare']").click()
    _wait(lambda: "machine=a100" in browser.current_url)
    _check(browser)
    assert len(browser.find_elements(By.CSS_SELECTOR, "main table tbody tr")) >= 2
    assert browser.execute_script(f"return {_CHART}.data.datasets.length") >= 2
