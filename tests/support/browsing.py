"""A real browser without a window, for tests and for the pictures of the documents."""

import contextlib
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_DRIVERS = ("chromedriver", "/usr/lib/chromium/chromedriver")
_PATIENCE_S = 120.0
_UNDRAWN = """
return document.querySelectorAll(".chart:not([data-is-drawn])").length
  + [...document.images].filter((one) => !(one.complete && one.naturalWidth)).length
"""
_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def find_browser() -> tuple[str, str] | None:
    """Give the browser and its driver; None where one is missing."""
    browser, driver = (
        next((path for name in names if (path := shutil.which(name))), None)
        for names in (_BROWSERS, _DRIVERS)
    )
    return None if browser is None or driver is None else (browser, driver)


def open_browser(width: int = 1400, height: int = 900) -> "Chrome":
    """Open a browser whose complaints are kept."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    found = find_browser()
    if found is None:
        raise RuntimeError("there is no browser; on Debian: apt install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = found[0]
    for one in (*_OPTIONS, f"--window-size={width},{height}"):
        options.add_argument(one)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=ChromeService(found[1]))
    browser.set_page_load_timeout(60)
    return browser


class Page:
    """What a browser shows, and what is done to it."""

    def __init__(self, chrome: "Chrome") -> None:
        self.chrome = chrome

    def open(self, address: str, *, width: int = 1400, theme: str = "light") -> None:
        """Open an address on a screen of some width; what was complained about before is gone."""
        feature = {"name": "prefers-color-scheme", "value": theme}
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        self.list_complaints()
        self.chrome.get(address)

    def run(self, script: str, *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """Run a script; give what it returns."""
        return self.chrome.execute_script(script, *arguments)

    def find(self, selector: str) -> "WebElement":
        """Give an element, once it is there."""
        found: WebElement = self.wait(lambda: self.find_all(selector)[:1])[0]
        return found

    def find_all(self, selector: str) -> "list[WebElement]":
        """Give the elements that are there: of a selector, or of an XPath that begins with `//`."""
        kind = "xpath" if selector.startswith("//") else "css selector"
        return self.chrome.find_elements(kind, selector)

    def text(self, selector: str = "main") -> str:
        """Give the text of elements; none while one page goes and the next one comes."""
        return "".join(one.text for one in self.find_all(selector))

    def press(self, selector: str, *keys: str) -> "WebElement":
        """Press keys, or Enter, at an element."""
        found = self.find(selector)
        found.send_keys(*keys or ("\ue007",))
        return found

    def has_focus(self, selector: str) -> bool:
        """Tell whether keys go to an element."""
        return bool(self.find(selector) == self.chrome.switch_to.active_element)

    def wait(self, until: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever there is to be seen
        """Wait until something is there; what was replaced meanwhile is looked for anew."""
        from selenium.common.exceptions import WebDriverException

        ends_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < ends_s:
            # A page that loads itself anew has no element at all for a moment, or one of the old
            # page, which drivers say in several ways.
            with contextlib.suppress(WebDriverException):
                if found := until():
                    return found
            time.sleep(0.05)
        raise AssertionError("it did not come")

    def wait_for_pictures(self) -> None:
        """Wait until charts are drawn and images are there."""
        self.wait(lambda: self.run(_UNDRAWN) == 0)

    def list_complaints(self) -> list[str]:
        """List what the browser complains about: blocked scripts, missing files."""
        logged: list[dict[str, Any]] = self.chrome.get_log("browser")  # type: ignore[no-untyped-call]
        # An answer with a status of 4xx is logged too; pages say what is wrong.
        return [one["message"] for one in logged if "status of 4" not in one["message"]]
