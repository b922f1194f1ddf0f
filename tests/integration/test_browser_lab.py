"""The Lab in a real browser over a real device: typed in, estimated, annotated, compared.

Needs Debian's ``chromium`` and ``chromium-driver``, and the package selenium.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kernelcast.client import Client
from support.service_process import ServiceProcess

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]
_WAIT_S = 120
SAXPY = """kernel void saxpy(global const float *x, global float *y, float a)
{
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Run a service that may run kernels."""
    data = tmp_path_factory.mktemp("pages") / "data"
    with ServiceProcess(data, "--allow-run", "--no-jobs") as found:
        yield found


@pytest.fixture(scope="module")
def device(service: ServiceProcess) -> str:
    """Give the embedded device, or the first one there is."""
    with Client(service.url) as client:
        devices = client.devices()
    return next((one.id for one in devices if "intel" in one.id.lower()), devices[0].id)


class LabPage:
    """The Lab as somebody uses it."""

    def __init__(self, browser: "Chrome", address: str) -> None:
        self.browser = browser
        browser.implicitly_wait(2)  # rows are drawn anew: a field may not take keys for a moment
        browser.get(address)

    def find(self, selector: str) -> "WebElement":
        """Give an element."""
        return self.browser.find_element("css selector", selector)

    def fill(self, **fields: str) -> None:
        """Type into fields, in place of what stands there."""
        for name, text in fields.items():
            # Keys one by one take seconds for a source.
            self.browser.execute_script(
                "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
                "field.dispatchEvent(new Event('input', {bubbles: true}));",
                name, text,
            )  # fmt: skip

    def open_tab(self, title: str) -> None:
        """Open a tab of the answers."""
        self.browser.find_element("xpath", f"//button[@role='tab'][.='{title}']").click()

    def choose(self, device: str) -> None:
        """Check this device, and no other."""
        for one in self.browser.find_elements("css selector", "input[name=device]"):
            if one.is_selected() != (one.get_attribute("value") == device):
                one.click()

    def press(self, text: str) -> None:
        """Press a button with the keyboard, and wait for its answer."""
        from selenium.webdriver.common.keys import Keys
        from selenium.webdriver.support.ui import WebDriverWait

        path = f"//button[normalize-space()='{text}']"
        announcer = self.find("#announcer")
        self.browser.execute_script("arguments[0].textContent = ''", announcer)
        self.browser.find_element("xpath", path).send_keys(Keys.ENTER)
        ends = {"Ready", "That did not work", "Arguments are filled in"}
        WebDriverWait(self.browser, _WAIT_S).until(lambda _: announcer.text in ends or (
            announcer.get_attribute("textContent") in ends
        ))  # fmt: skip

    def text(self, selector: str) -> str:
        """Give the text of an element."""
        return self.find(selector).text

    def wait_for(self, selector: str) -> None:
        """Wait until an element is there."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.browser, 10).until(
            lambda browser: browser.find_elements("css selector", selector)
        )

    def wait_for_charts(self) -> None:
        """Wait until every chart is drawn."""
        from selenium.webdriver.support.ui import WebDriverWait

        script = "return document.querySelectorAll('.chart:not([data-is-drawn])').length"
        WebDriverWait(self.browser, _WAIT_S).until(
            lambda _: not self.browser.execute_script(script)
        )

    def complaints(self) -> list[str]:
        """Give what the browser complains about: blocked scripts, missing files."""
        logged: list[dict[str, Any]] = self.browser.get_log("browser")  # type: ignore[no-untyped-call]
        # An answer with a status of 4xx is logged too; pages say what is wrong.
        return [one["message"] for one in logged if "status of 4" not in one["message"]]


@pytest.fixture
def lab(browser: "Chrome", service: ServiceProcess, device: str) -> LabPage:
    """Open the Lab with a kernel of our own."""
    page = LabPage(browser, f"{service.url}/lab")
    page.fill(
        code=SAXPY, kernel="", parameters="", global_size="4194304", local_size="128",
        global_offset="", args="", build_options="",
    )  # fmt: skip
    page.choose(device)
    return page


def test_from_a_source_to_an_estimate(lab: LabPage) -> None:
    """Arguments are filled in, the device is sampled, and the same question is answered at once."""
    lab.press("Fill in from the source")
    assert lab.find("#argument-rows input") == lab.browser.switch_to.active_element
    assert lab.find("#kernel").get_attribute("value") == "saxpy"
    lines = (lab.find("#args").get_attribute("value") or "").split("\n")
    assert [one.partition(":")[0] for one in lines] == ["buffer", "buffer", "scalar"]
    lab.press("Estimate")
    shown = lab.find("#lab-result .big")
    seconds = float(shown.get_attribute("data-seconds") or "nan")
    assert 0 < seconds < 60
    height = lab.browser.execute_script("return window.innerHeight")
    place = lab.browser.execute_script(
        "return arguments[0].getBoundingClientRect().bottom", lab.find("#lab-result .interval-bar")
    )
    assert 0 < place < height, "the answer is only seen after scrolling"
    assert "answered after" in lab.text(".elapsed")
    answer = lab.text("#lab-result")
    assert "90.0 % of such launches" in answer
    assert "work-groups were run" in " ".join(answer.split())
    lab.press("Estimate")
    assert "answered before" in lab.text("#lab-result")
    assert lab.find("#estimate-title") == lab.browser.switch_to.active_element
    lab.open_tab("Evidence")
    assert "interval" in lab.text("#tab-evidence")
    assert lab.complaints() == []


def test_arguments_have_a_row_each(lab: LabPage) -> None:
    """Rows are named by the signature, follow the source, and write the lines that are sent."""
    import time

    rows = lab.find("#argument-rows")
    lab.fill(args="", code=SAXPY)
    deadline_s = time.monotonic() + 5
    while "x" not in rows.text and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert [one.text for one in rows.find_elements("css selector", "th")] == ["x", "y", "a"]
    value = rows.find_element("css selector", "[aria-label='a: value']")
    value.clear()
    value.send_keys("2.5")
    lines = (lab.find("#args").get_attribute("value") or "").split("\n")
    assert lines[2] == "scalar: float32, value: 2.5"
    assert lines[0] == "buffer: float32, count: 4194304, init: uniform"


def test_time_over_a_size(lab: LabPage) -> None:
    """A named number is varied; the chart is drawn, its points can be walked, its numbers read."""
    from selenium.webdriver.common.keys import Keys

    lab.fill(
        args='buffer: float32, count: "{N}"\n' * 2 + "scalar: float32, value: 2.0",
        parameters="N = 4194304", global_size="{N}",
    )  # fmt: skip
    lab.open_tab("Limiters")
    lab.find("#machine").send_keys("a100")
    lab.press("Limiters and volumes")
    assert "Roofline of" in (lab.find("#lab-model canvas").get_attribute("aria-label") or "")
    lab.open_tab("Time over size")
    lab.press("Vary the size")
    canvas = lab.find("#lab-sizes canvas")
    canvas.send_keys(Keys.ARROW_RIGHT)
    told = lab.find("#announcer").get_attribute("textContent") or ""
    assert "N: 262,144" in told
    assert "predicted time" in told
    lab.find("#lab-sizes details.numbers summary").send_keys(Keys.ENTER)
    lab.wait_for("#lab-sizes details.numbers table")  # the page makes it once it is opened
    assert "4,194,304" in lab.text("#lab-sizes details.numbers table")
    assert lab.complaints() == []


def test_source_model_and_local_sizes(lab: LabPage) -> None:
    """What needs no device: annotated source, limiters of a machine, a map that can be saved."""
    lab.fill(
        args="buffer: float32, count: 4194304, init: uniform\n"
        "buffer: float32, count: 4194304\nscalar: float32, value: 2.0",
        global_size="32, 32", local_size="8, 4",
        code=SAXPY.replace("get_global_id(0)", "get_global_id(1) * 2048 + get_global_id(0)"),
    )  # fmt: skip
    lab.open_tab("Source")
    lab.press("Annotate the source")
    assert "load x[gid.x + 2048*gid.y]" in lab.text("#lab-result")
    lab.open_tab("Limiters")
    lab.find("#machine").send_keys("a100")
    lab.press("Limiters and volumes")
    assert "limited by" in lab.text("#lab-result")
    lab.open_tab("Local sizes")
    lab.press("Compare local sizes")
    chart = lab.find("#lab-local-sizes .chart canvas")
    assert "local sizes" in (chart.get_attribute("aria-label") or "")
    assert (
        lab.find("#lab-local-sizes a[download$='.png']").get_attribute("href") or ""
    ).startswith("data:image/")
    assert (
        lab.find("#lab-local-sizes a[download$='.csv']").get_attribute("href") or ""
    ).startswith("data:text/csv")
    assert lab.complaints() == []


def test_an_error_is_shown_to_a_person(lab: LabPage) -> None:
    """It stands at the source with its line, the field has the focus, and goes when corrected."""
    lab.fill(
        code=SAXPY.replace("a * x[i]", "b * x[i]"),
        args="buffer: float32, count: 4194304\nbuffer: float32, count: 4194304\n"
        "scalar: float32, value: 1",
    )  # fmt: skip
    lab.press("Estimate")
    assert "line 4: use of undeclared identifier 'b'" in (
        lab.find("#code-errors").get_attribute("textContent") or ""
    )
    mark = lab.find(".editor-message")
    assert mark.text == "use of undeclared identifier 'b'"
    assert "undeclared" not in lab.text("#lab-result")
    assert "undeclared" not in lab.text("#code-errors")
    assert lab.find("#code").get_attribute("aria-invalid") == "true"
    assert lab.find("#code") == lab.browser.switch_to.active_element
    lab.fill(code=SAXPY)
    lab.browser.implicitly_wait(0)  # what is absent is not waited for
    assert lab.browser.find_elements("css selector", ".editor-message") == []
    lab.open_tab("Source")
    lab.press("Annotate the source")
    assert lab.find("#code-errors").get_attribute("textContent") == ""
    assert lab.find("#code").get_attribute("aria-invalid") is None


def test_the_keyboard_reaches_everything(browser: "Chrome", service: ServiceProcess) -> None:
    """The first key leads past the navigation; focus can be seen."""
    from selenium.webdriver.common.keys import Keys

    page = LabPage(browser, f"{service.url}/devices")
    page.find("body").send_keys(Keys.TAB)
    focused = browser.switch_to.active_element
    assert focused.text == "Skip to the content"
    assert focused.rect["x"] >= 0
    assert (
        browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", focused)
        != "none"
    )
    focused.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element == page.find("main")
