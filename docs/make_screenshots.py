"""Takes a picture of every page: wide and narrow, light and dark, of a new service and a used one.

``python docs/make_screenshots.py FOLDER`` needs chromium with its driver, and selenium. The used
service has fake devices and, beside made-up observations, the shipped measurements of two devices.
``python docs/make_screenshots.py FOLDER SHEETS`` also lays the pictures of each page side by side,
for docs/how-to/pages-in-pictures.md.
"""

import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from selenium.webdriver.support.ui import WebDriverWait

from support.browsing import open_browser
from support.served_pages import KERNEL_PAGE, SHOWN_PAGES, serve_pages

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTHS = (1400, 390)
THEMES = ("light", "dark")
_TALLEST = 4000
_MEASURED = ("intel-amd-epyc-55ea", "pocl-skylake-avx512-amd-91ef")
# Pages of which one says more about what was measured.
_TELLING = {
    "/accuracy": f"/accuracy?device={_MEASURED[0]}",
    KERNEL_PAGE: "/kernels/of?name=SNU%20NPB/npb_mg/psinv",
}
_SHEET_SCALE, _SHEET_HEIGHT, _GAP = 0.45, 1400, 16
_COLOURS = 256
_UNDRAWN = "return document.querySelectorAll('.chart:not([data-is-drawn])').length"


def take(browser: "Chrome", page: str, width: int, theme: str, path: Path) -> list[str]:
    """Take the picture of a page; give complaints, and whether it scrolls sideways."""
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(page)
    WebDriverWait(browser, 60).until(lambda one: not one.execute_script(_UNDRAWN))
    needed, height = browser.execute_script(
        "const page = document.documentElement; return [page.scrollWidth, page.scrollHeight]"
    )
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, _TALLEST), "scale": 1}
    taken = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
    )
    path.write_bytes(b64decode(taken["data"]))
    found = [one["message"] for one in browser.get_log("browser")]
    return [*found, *([f"needs {needed} pixels"] if needed > width else [])]


def take_all(browser: "Chrome", folder: Path, *, is_full: bool) -> Iterator[str]:
    """Take all pictures of a service; give a line for each page that is not as it should be."""
    held = "full" if is_full else "empty"
    with (
        tempfile.TemporaryDirectory() as data,
        serve_pages(Path(data), is_full=is_full, measured=_MEASURED if is_full else ()) as found,
    ):
        pages = (*SHOWN_PAGES, KERNEL_PAGE) if is_full else SHOWN_PAGES
        for page, width, theme in product(pages, WIDTHS, THEMES):
            name = page.strip("/").partition("?")[0].replace("/", "-") or "home"
            path = folder / f"{name}-{held}-{width}-{theme}.png"
            shown = _TELLING.get(page, page) if is_full else page
            for told in take(browser, found[0] + shown, width, theme, path):
                yield f"{path.name}: {told}"
        browser.get("about:blank")  # or the next change of theme would ask a service that is gone


def make_sheets(folder: Path, target: Path) -> None:
    """Lay the pictures of each page side by side, from the top."""
    target.mkdir(parents=True, exist_ok=True)
    names = {one.name.partition("-1400-")[0] for one in folder.glob("*-1400-light.png")}
    for name in sorted(names):
        parts = [
            Image.open(folder / f"{name}-{width}-{theme}.png").convert("RGB")
            for width, theme in product(WIDTHS, THEMES)
        ]
        height = min(max(one.height for one in parts), _SHEET_HEIGHT)
        width = sum(one.width + _GAP for one in parts) - _GAP
        sheet = Image.new("RGB", (width, height), "#808080")
        place = 0
        for one in parts:
            sheet.paste(one.crop((0, 0, one.width, min(one.height, height))), (place, 0))
            place += one.width + _GAP
        size = (round(width * _SHEET_SCALE), round(height * _SHEET_SCALE))
        small = sheet.resize(size, Image.Resampling.LANCZOS)
        few = small.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE)
        few.save(target / f"{name}.png", optimize=True)


def main() -> int:
    """Take all pictures; the exit status says whether all pages are as they should be."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    browser = open_browser()
    wrong = 0
    try:
        for is_full in (True, False):
            for told in take_all(browser, folder, is_full=is_full):
                sys.stdout.write(f"{told}\n")
                wrong += 1
    finally:
        browser.quit()
    if len(sys.argv) > 2:
        make_sheets(folder, Path(sys.argv[2]))
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
