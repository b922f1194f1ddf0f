"""Pages of results in a real browser: with data, without, by keyboard and mouse, live.

``tests/data/axe.min.js`` is axe-core 4.14.1 as its makers publish it, under the Mozilla Public
License 2.0; it is part of no wheel.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="pip install selenium")
from selenium.webdriver import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from kernelcast.records.service_state import JobState
from kernelcast.service_state import ServiceState
from support.browsing import Page
from support.served_pages import KERNEL_PAGE, SHOWN_PAGES, serve_pages

pytestmark = pytest.mark.timeout(600)
CANVAS, BUTTON = ".chart canvas", ".chart [data-show-all]"
CHART = "Chart.getChart(document.querySelector('.chart canvas'))"
AXE = (Path(__file__).parents[1] / "data" / "axe.min.js").read_text(encoding="utf-8")
RUN_AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations.map(
  (one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 4)}`
)), (error) => done([String(error)]));
"""
TOO_WIDE = """
const most = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= most) return [];
return [...document.querySelectorAll("main *")]
  .filter(one => one.getBoundingClientRect().right > most && !one.closest(".wide, pre"))
  .map(one => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`).slice(0, 9)
  .concat(location.pathname);
"""
FULL = {
    "/": "What to do next", "/devices/fake-device-0000": "Curves",
    "/accuracy?device=device-1": "Every answer that was observed",
    "/kernels": "Estimates and observations", KERNEL_PAGE: "Every size and device",
    "/accuracy/compare": "within noise", "/jobs": "Comparison",
}  # fmt: skip
EMPTY = {
    "/accuracy": "answered nothing in this time", "/": "Ask for an estimate",
    "/kernels": "holds no observations yet", "/accuracy/compare": "Nothing was compared yet",
    "/jobs": "No job was started yet",
}  # fmt: skip


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


@pytest.fixture
def charts(browser: Page, service: tuple[str, ServiceState]) -> Page:
    """Open a page with charts of many points."""
    browser.open(service[0] + "/accuracy?device=device-1")
    browser.wait_for_pictures()
    return browser


@pytest.mark.parametrize(
    ("width", "theme", "told"), [(1400, "light", FULL), (390, "dark", FULL), (390, "light", EMPTY)]
)
def test_pages_are_sound(
    browser: Page, request: pytest.FixtureRequest, width: int, theme: str, told: dict[str, str]
) -> None:
    """On screens and telephones nothing is missing, cut or blocked, and axe-core finds no fault.

    That is contrast, names, roles, order of headings, keyboard. Each page says what it must.
    """
    is_full = told is FULL
    address = request.getfixturevalue("service")[0] if is_full else request.getfixturevalue("empty")
    found = {}
    for path in {*SHOWN_PAGES, *told}:
        browser.open(address + path, width=width, theme=theme)
        browser.wait_for_pictures()
        assert told.get(path, "") in browser.text()
        assert all(one.get_attribute("alt") for one in browser.find_all("img"))
        assert browser.run(TOO_WIDE) == [], "the page scrolls sideways"
        assert browser.list_complaints() == []
        browser.run(AXE)
        if violations := browser.chrome.execute_async_script(RUN_AXE):
            found[path] = violations
    assert found == {}


def test_what_to_do_without_data(browser: Page, empty: str) -> None:
    """The button of an empty page leads to the open form."""
    browser.open(empty + "/accuracy")
    browser.press("//a[.='Start a collection']")
    browser.wait(lambda: "/jobs?new=collect" in browser.chrome.current_url)
    assert browser.find("#collect-kernels").is_displayed()


def _range_of(page: Page) -> tuple[float, float]:
    """Give the ends of the first chart's upright axis."""
    found = page.run(f"const {{min, max}} = {CHART}.scales.y; return [min, max]")
    return float(found[0]), float(found[1])


def _bring(page: Page, element: WebElement) -> float:
    """Bring an element into the middle of the screen at once; give how far the page is scrolled."""
    script = (
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'});return window.scrollY"
    )
    return float(page.run(script, element))


def _turn_wheel(page: Page, canvas: WebElement) -> None:
    """Turn the wheel by one notch above the middle of a chart."""
    origin = ScrollOrigin.from_element(canvas)
    ActionChains(page.chrome).scroll_from_origin(origin, 0, -100).perform()


def test_a_chart_is_looked_at_closely(charts: Page) -> None:
    """Dragging, the wheel and keys zoom; a button and a key show all again; pages still scroll."""
    canvas, button = charts.find(CANVAS), charts.find(BUTTON)
    _bring(charts, canvas)
    whole, before = _range_of(charts), _bring(charts, canvas)
    assert not button.is_displayed()
    _turn_wheel(charts, canvas)  # nobody has pointed at this chart: the page scrolls
    charts.wait(lambda: charts.run("return window.scrollY") != before)
    assert _range_of(charts) == whole
    charts.wait(lambda: _bring(charts, canvas) == before)

    drag = ActionChains(charts.chrome).move_to_element_with_offset(canvas, -60, -60)
    drag.click_and_hold().move_by_offset(120, 120).release().perform()
    charts.wait(lambda: _range_of(charts)[0] > whole[0] and _range_of(charts)[1] < whole[1])
    assert "/accuracy" in charts.chrome.current_url  # a drag is no click
    charts.wait(button.is_displayed)
    button.click()
    charts.wait(lambda: _range_of(charts) == pytest.approx(whole))
    assert not button.is_displayed()
    assert charts.has_focus(CANVAS)

    _turn_wheel(charts, canvas)  # it has the focus now
    charts.wait(lambda: _range_of(charts)[1] < whole[1])
    canvas.send_keys("0")
    charts.wait(lambda: _range_of(charts) == pytest.approx(whole))

    canvas.send_keys("+")
    charts.wait(button.is_displayed)
    closer = _range_of(charts)
    canvas.send_keys(Keys.SHIFT, Keys.ARROW_UP)
    charts.wait(lambda: _range_of(charts)[1] > closer[1])
    canvas.send_keys("0")
    charts.wait(lambda: _range_of(charts) == pytest.approx(whole))
    assert charts.find("#announcer").get_attribute("textContent") == "All is shown"


def test_rows_become_cards_on_a_telephone(browser: Page, service: tuple[str, ServiceState]) -> None:
    """Each cell says what it is, nothing is cut at the side, and rows can still be sorted."""
    browser.open(service[0] + KERNEL_PAGE, width=390)
    row = browser.find("#sizes tbody tr")
    shown = browser.run(
        "return [...arguments[0].cells].slice(1).map((cell) => "
        "getComputedStyle(cell, '::before').content.slice(1, -1))",
        row,
    )
    assert shown[:3] == ["device", "time", "noise"]
    box = browser.find(".wide:has(#sizes)")
    assert browser.run("return arguments[0].scrollWidth <= arguments[0].clientWidth", box)
    assert row.get_attribute("role") == "row"
    before = [one.text for one in browser.find_all("#sizes tbody th")]
    browser.press("#sizes thead button")
    assert [one.text for one in browser.find_all("#sizes tbody th")] == sorted(before)


def test_tables_are_sorted_and_searched(charts: Page) -> None:
    """By a head's button and by words; the address keeps both."""

    def list_shown() -> list[str]:
        heads = charts.find_all("#kernels tbody tr th")
        return [one.text for one in heads if one.is_displayed()]

    before = list_shown()
    charts.press("#kernels th button")
    assert list_shown() == sorted(before)
    charts.press("#kernels-search", "kernel3")
    assert list_shown() == [one for one in sorted(before) if "kernel3" in one]
    charts.open(charts.chrome.current_url)
    assert list_shown() == [one for one in sorted(before) if "kernel3" in one]
    assert charts.find("#kernels th").get_attribute("aria-sort")


def test_a_choice_by_keyboard(charts: Page) -> None:
    """Another device is chosen and shown without a mouse."""
    charts.press("#device", "device-2", Keys.ENTER)
    charts.press("//*[@id='device']/ancestor::form//button")
    charts.wait(lambda: "device=device-2" in charts.chrome.current_url)
    assert "device-1" not in charts.find(".wide").text


def test_a_job_is_started_followed_and_cancelled(
    browser: Page, service: tuple[str, ServiceState]
) -> None:
    """What happens to it is seen without loading the page again."""
    address, state = service
    browser.open(address + "/jobs?new=train")
    browser.press("//*[@id='train-model']/ancestor::form//button")
    browser.find("[data-alone]")
    job_id = browser.chrome.current_url.rpartition("/")[2]
    browser.run("window.isSame = true")
    claimed = state.jobs.claim("elsewhere", ())
    assert claimed is not None
    assert claimed.id == job_id
    progress = {"done": 3, "total": 8, "stage": "fits", "remaining_seconds": 90,
                "log": [["2126-01-01T00:00:00+00:00", "fits begin"]]}  # fmt: skip
    state.jobs.report(job_id, "elsewhere", progress)
    browser.wait(lambda: "3 of 8" in browser.text() and "fits begin" in browser.text())
    assert "about 90 s left" in browser.text()
    assert browser.run("return window.isSame")
    browser.open(address + "/jobs")
    browser.press(f'[data-job="{job_id}"] button')
    browser.wait(lambda: "ends soon" in browser.text())
    state.jobs.finish(job_id, "elsewhere", JobState.CANCELLED)
    # It is over: the page loads itself anew, with the end in the log.
    browser.wait(lambda: "cancelled" in browser.text(".log"))
    assert browser.list_complaints() == []


def _point_at(page: Page, x: float, y: float) -> ActionChains:
    """Move the mouse to a place on the first chart; what is to be done there is added."""
    canvas = page.find(CANVAS)
    _bring(page, canvas)
    across, down = round(x - canvas.size["width"] / 2), round(y - canvas.size["height"] / 2)
    return ActionChains(page.chrome).move_to_element_with_offset(canvas, across, down)


def test_a_chart_hides_series_and_its_points_lead_to_kernels(charts: Page) -> None:
    """A click in the legend hides a series, a second one shows it; a table has the points drawn.

    Resting on a point shows its kernel and times; a click opens the kernel's page.
    """
    box = charts.run(f"return {CHART}.legend.legendHitBoxes[0]")
    middle = (box["left"] + box["width"] / 2, box["top"] + box["height"] / 2)
    for is_shown in (False, True):
        _point_at(charts, *middle).click().perform()
        script = f"return {CHART}.isDatasetVisible(0) === arguments[0]"
        charts.wait(lambda want=is_shown, script=script: charts.run(script, want))
    charts.press("details.numbers summary")
    charts.wait(lambda: charts.find("details.numbers table").is_displayed())
    points = charts.run(
        f"return {CHART}.data.datasets.filter((one) => !one.isGuide)"
        ".reduce((sum, one) => sum + one.data.length, 0)"
    )
    numbers = charts.find("details.numbers")
    assert len(numbers.find_elements("css selector", "tbody tr")) == points
    x, y = charts.run(f"const one = {CHART}.getDatasetMeta(0).data[0]; return [one.x, one.y]")
    _point_at(charts, x, y).perform()
    charts.wait(lambda: charts.run(f"return {CHART}.tooltip.opacity") > 0)
    told = charts.run(f"return {CHART}.tooltip.body.flatMap((one) => one.lines)")
    assert any("suite/application" in one for one in told)
    assert any("measured time" in one for one in told)
    _point_at(charts, x, y).click().perform()
    charts.wait(lambda: "/kernels/of?name=suite" in charts.chrome.current_url)


def test_devices_are_compared(browser: Page, service: tuple[str, ServiceState]) -> None:
    """Boxes are ticked, the address keeps them, and numbers and roofs stand side by side."""
    browser.open(service[0] + "/devices")
    browser.press("//a[.='Compare devices']")
    browser.find("input[value=a100]")
    for name in ("h200", "mi300x", "a100"):
        box = browser.find_all(f"input[value={name}]")
        if box and not box[0].is_selected():
            box[0].send_keys(Keys.SPACE)
    browser.find("//main//button[normalize-space()='Compare']").click()
    browser.wait(lambda: "machine=a100" in browser.chrome.current_url)
    browser.wait_for_pictures()
    assert len(browser.find_all("main table tbody tr")) >= 2
    assert browser.run(f"return {CHART}.data.datasets.length") >= 2
