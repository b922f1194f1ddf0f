"""A real browser without a window, for tests and for the pictures of the documents."""

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_DRIVERS = ("chromedriver", "/usr/lib/chromium/chromedriver")
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
