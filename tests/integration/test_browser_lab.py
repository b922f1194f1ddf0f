"""The Lab in a real browser over a real device: typed in, estimated, annotated, compared.

Needs Debian's ``chromium`` and ``chromium-driver``, and the package selenium.
"""

from collections.abc import Iterator

import pytest

from kernelcast.client import Client
from support.browsing import Page
from support.running_service import ServiceProcess, choose_device

pytest.importorskip("selenium", reason="pip install selenium")
from selenium.webdriver.common.keys import Keys

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]
SAXPY = """kernel void saxpy(global const float *x, global float *y, float a)
{
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}
"""
ARGUMENTS = "buffer: float32, count: 4194304\n" * 2 + "scalar: float32, value: 2.0"
ENDS = {"Ready", "That did not work", "Arguments are filled in"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Run a service that may run kernels."""
    data = tmp_path_factory.mktemp("pages") / "data"
    with ServiceProcess(data, "--allow-run", "--no-jobs") as found:
        yield found


class LabPage(Page):
    """The Lab as somebody uses it."""

    def fill(self, **fields: str) -> None:
        """Type into fields, in place of what stands there."""
        for name, text in fields.items():
            # Keys one by one take seconds for a source.
            self.run(
                "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
                "field.dispatchEvent(new Event('input', {bubbles: true}));",
                name, text,
            )  # fmt: skip

    def value(self, selector: str, name: str = "value") -> str:
        """Give a field's value, or another attribute."""
        return self.find(selector).get_attribute(name) or ""

    def open_tab(self, title: str) -> None:
        """Open a tab of the answers."""
        self.find(f"//button[@role='tab'][.='{title}']").click()

    def ask(self, text: str) -> None:
        """Press a button with the keyboard, and wait for its answer."""
        self.run("document.getElementById('announcer').textContent = ''")
        self.press(f"//button[normalize-space()='{text}']")
        self.wait(lambda: self.value("#announcer", "textContent") in ENDS)


@pytest.fixture
def lab(browser: Page, service: ServiceProcess) -> LabPage:
    """Open the Lab with a kernel of our own and one device."""
    with Client(service.url) as client:
        device = choose_device(one.id for one in client.devices())
    page = LabPage(browser.chrome)
    page.open(f"{service.url}/lab")
    page.fill(
        code=SAXPY, kernel="", parameters="", global_size="4194304", local_size="128",
        global_offset="", args="", build_options="",
    )  # fmt: skip
    for one in page.find_all("input[name=device]"):
        if one.is_selected() != (one.get_attribute("value") == device):
            one.click()
    return page


def test_from_a_source_to_an_estimate(lab: LabPage) -> None:
    """Arguments are filled in, the device is sampled, and the same question is answered at once.

    Rows of arguments are named by the signature, and write the lines that are sent.
    """
    lab.ask("Fill in from the source")
    assert lab.has_focus("#argument-rows input")
    assert lab.value("#kernel") == "saxpy"
    assert [one.text for one in lab.find_all("#argument-rows th")] == ["x", "y", "a"]
    lab.find("#argument-rows [aria-label='a: value']").clear()
    lab.press("#argument-rows [aria-label='a: value']", "2.5")
    lines = lab.value("#args").split("\n")
    assert [one.partition(":")[0] for one in lines] == ["buffer", "buffer", "scalar"]
    assert lines[0] == "buffer: float32, count: 4194304, init: uniform"
    assert lines[2] == "scalar: float32, value: 2.5"
    lab.ask("Estimate")
    assert 0 < float(lab.value("#lab-result .big", "data-seconds")) < 60
    height, place = lab.run(
        "return [window.innerHeight,"
        "document.querySelector('#lab-result .interval-bar').getBoundingClientRect().bottom]"
    )
    assert 0 < place < height, "the answer is only seen after scrolling"
    assert "answered after" in lab.text(".elapsed")
    answer = lab.text("#lab-result")
    assert "90.0 % of such launches" in answer
    assert "work-groups were run" in " ".join(answer.split())
    lab.ask("Estimate")
    assert "answered before" in lab.text("#lab-result")
    assert lab.has_focus("#estimate-title")
    lab.open_tab("Evidence")
    assert "interval" in lab.text("#tab-evidence")
    assert lab.list_complaints() == []


def test_time_over_a_size(lab: LabPage) -> None:
    """A named number is varied; the chart is drawn, its points can be walked, its numbers read."""
    lab.fill(
        args=ARGUMENTS.replace("4194304", '"{N}"'), parameters="N = 4194304", global_size="{N}"
    )
    lab.open_tab("Limiters")
    lab.press("#machine", "a100")
    lab.ask("Limiters and volumes")
    assert "Roofline of" in lab.value("#lab-model canvas", "aria-label")
    lab.open_tab("Time over size")
    lab.ask("Vary the size")
    lab.press("#lab-sizes canvas", Keys.ARROW_RIGHT)
    told = lab.value("#announcer", "textContent")
    assert "N: 262,144" in told
    assert "predicted time" in told
    lab.press("#lab-sizes details.numbers summary")
    lab.find("#lab-sizes details.numbers table")  # the page makes it once it is opened
    assert "4,194,304" in lab.text("#lab-sizes details.numbers table")
    assert lab.list_complaints() == []


def test_source_model_and_local_sizes(lab: LabPage) -> None:
    """What needs no device: annotated source, limiters of a machine, a map that can be saved."""
    lab.fill(
        args=ARGUMENTS, global_size="32, 32", local_size="8, 4",
        code=SAXPY.replace("get_global_id(0)", "get_global_id(1) * 2048 + get_global_id(0)"),
    )  # fmt: skip
    lab.open_tab("Source")
    lab.ask("Annotate the source")
    assert "load x[gid.x + 2048*gid.y]" in lab.text("#lab-result")
    lab.open_tab("Limiters")
    lab.press("#machine", "a100")
    lab.ask("Limiters and volumes")
    assert "limited by" in lab.text("#lab-result")
    lab.open_tab("Local sizes")
    lab.ask("Compare local sizes")
    assert "local sizes" in lab.value("#lab-local-sizes .chart canvas", "aria-label")
    for end, kind in (("png", "data:image/"), ("csv", "data:text/csv")):
        assert lab.value(f"#lab-local-sizes a[download$='.{end}']", "href").startswith(kind)
    assert lab.list_complaints() == []


def test_an_error_is_shown_to_a_person(lab: LabPage) -> None:
    """It stands at the source with its line, the field has the focus, and goes when corrected."""
    lab.fill(code=SAXPY.replace("a * x[i]", "b * x[i]"), args=ARGUMENTS)
    lab.ask("Estimate")
    errors = lab.value("#code-errors", "textContent")
    assert "line 4: use of undeclared identifier 'b'" in errors
    assert lab.text(".editor-message") == "use of undeclared identifier 'b'"
    assert "undeclared" not in lab.text("#lab-result") + lab.text("#code-errors")
    assert lab.value("#code", "aria-invalid") == "true"
    assert lab.has_focus("#code")
    lab.fill(code=SAXPY)
    assert lab.find_all(".editor-message") == []
    lab.open_tab("Source")
    lab.ask("Annotate the source")
    assert lab.value("#code-errors", "textContent") == lab.value("#code", "aria-invalid") == ""


def test_the_keyboard_reaches_everything(browser: Page, service: ServiceProcess) -> None:
    """The first key leads past the navigation; focus can be seen."""
    browser.open(f"{service.url}/devices")
    browser.press("body", Keys.TAB)
    focused = browser.chrome.switch_to.active_element
    assert focused.text == "Skip to the content"
    assert focused.rect["x"] >= 0
    assert browser.run("return getComputedStyle(arguments[0]).outlineStyle", focused) != "none"
    focused.send_keys(Keys.ENTER)
    assert browser.has_focus("main")
