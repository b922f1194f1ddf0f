"""Takes the pictures of the Lab and the devices for docs/how-to/use-the-pages.md.

``python docs/make_page_pictures.py http://127.0.0.1:8372 docs/how-to/pictures`` needs a running
service with a calibrated device, chromium with its driver, and selenium.
"""

import io
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from selenium.webdriver.support.ui import WebDriverWait

from support.browsing import open_browser

WIDTH, SCALE, TALLEST = 1100, 0.75, 1500
WAIT_S = 180
_COLOURS = 256


class Camera:
    """Opens pages and keeps what they look like."""

    def __init__(self, address: str, folder: Path) -> None:
        self.browser = open_browser()
        self._address = address
        self._folder = folder

    def take(
        self, name: str, path: str, act: Callable[["Camera"], None] = lambda _: None, *,
        theme: str = "light", below: str = "", tallest: int = TALLEST,
    ) -> None:  # fmt: skip
        """Open a page, act on it, and keep it from an element on."""
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": WIDTH, "height": 1000, "deviceScaleFactor": SCALE, "mobile": False,
        })  # fmt: skip
        self.browser.get(self._address + path)
        self.wait_for_charts()
        act(self)
        self.browser.execute_script("document.activeElement.blur()")
        top, height = self.browser.execute_script(
            "const one = arguments[0] && document.querySelector(arguments[0]);"
            "return [one ? one.getBoundingClientRect().top + window.scrollY - 12 : 0,"
            "        document.documentElement.scrollHeight]",
            below,
        )
        clip = {"x": 0, "y": top, "width": WIDTH, "height": min(height - top, tallest), "scale": 1}
        found = self.browser.execute_cdp_cmd(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
        )
        image = Image.open(io.BytesIO(b64decode(found["data"]))).convert("RGB")
        # A page has few colours; a palette takes half of the room.
        image.quantize(_COLOURS).save(self._folder / f"{name}.png", optimize=True)

    def press(self, text: str) -> None:
        """Press a button and wait for its answer."""
        path = f"//button[normalize-space()='{text}']"
        announcer = self.browser.find_element("id", "announcer")
        self.browser.execute_script("arguments[0].textContent = ''", announcer)
        button = self.browser.find_element("xpath", path)
        self.browser.execute_script("arguments[0].click()", button)
        WebDriverWait(self.browser, WAIT_S).until(
            lambda _: announcer.get_attribute("textContent") in {"Ready", "That did not work"}
        )
        self.wait_for_charts()

    def wait_for_charts(self) -> None:
        """Wait until every chart that can be seen is drawn."""
        script = (
            "return [...document.querySelectorAll('.chart:not([data-is-drawn])')]"
            ".filter((one) => one.offsetParent).length"
        )
        WebDriverWait(self.browser, WAIT_S).until(lambda _: not self.browser.execute_script(script))

    def choose(self, name: str, value: str) -> None:
        """Choose of a list, or type."""
        self.browser.execute_script(
            "document.getElementById(arguments[0]).value = arguments[1]", name, value
        )


def _break_source(camera: Camera) -> None:
    camera.browser.execute_script(
        "const code = document.getElementById('code');"
        "code.value = code.value.replace('float centre', 'flaot centre')"
    )
    camera.press("Annotate the source")


def main() -> None:
    """Take all pictures."""
    camera = Camera(sys.argv[1], Path(sys.argv[2]))
    device = camera.browser
    try:
        camera.take("lab", "/lab", tallest=1900)
        camera.take("lab-estimate", "/lab", lambda one: one.press("Estimate"), below="#lab-result")
        camera.take(
            "lab-source", "/lab", lambda one: one.press("Annotate the source"),
            below="#lab-result", theme="dark",
        )  # fmt: skip
        camera.take("lab-error", "/lab", _break_source, below="#lab-form", tallest=640)

        def compare(one: Camera) -> None:
            one.choose("machine", "a100")
            one.press("Compare local sizes")

        def limit(one: Camera) -> None:
            one.choose("machine", "a100")
            one.press("Limiters and volumes")

        camera.take("lab-local-sizes", "/lab", compare, below="#lab-result")
        camera.take("lab-limiters", "/lab", limit, below="#lab-result")
        camera.take("devices", "/devices", theme="dark")
        device.get(sys.argv[1] + "/devices")
        first = device.find_element("css selector", ".card h2 a").get_attribute("href") or ""
        path = first.removeprefix(sys.argv[1])
        camera.take("device", path, tallest=2300)
    finally:
        camera.browser.quit()


if __name__ == "__main__":
    main()
