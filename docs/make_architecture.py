"""Draws the rooms of the package: their layers from the import contracts, a sentence from each.

``python docs/make_architecture.py`` writes the picture and the page that shows it; with ``--check``
it only says, by its exit status, whether the page is up to date.
"""

import ast
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PICTURE = PAGE.parent / "pictures" / "architecture.svg"
_CONTRACT = "Rooms import downwards only"
_HEADER = """# The rooms

<!-- Written by docs/make_architecture.py from the import contracts and docstrings; do not edit. -->

![rooms of the package in layers](pictures/architecture.svg)

A room is a package of `kernelcast`. It may import from rooms below it, not from others in its row.
`make lint` checks this.

| room | does |
|---|---|
"""
_WAY = """
## The way of an estimate

The trace of a first estimate for a launch of pyopencl objects. A box is a module that is called
from another room, with its main function. `python docs/make_estimate_picture.py` draws it.

![modules that one estimate calls, from the predictor to the sampler](pictures/estimate.svg)
"""
_WIDTH, _HEIGHT, _GAP = 12.0, 0.62, 0.22


def read_layers() -> list[list[str]]:
    """Give the rooms of each layer, the uppermost first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"] == _CONTRACT)
    return [[room.strip() for room in layer.split("|")] for layer in layers if layer != "__main__"]


def describe(room: str) -> str:
    """Give the first sentence of a room's docstring."""
    path = ROOT / "src" / "kernelcast" / room / "__init__.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0]


def make_page() -> str:
    """Give the text of the page."""
    rows = [f"| `{room}` | {describe(room)} |" for layer in read_layers() for room in layer]
    return _HEADER + "\n".join(rows) + "\n" + _WAY


def draw(layers: Sequence[Sequence[str]]) -> None:
    """Draw a box per room, a row per layer."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    mpl.rcParams["svg.hashsalt"] = "kernelcast"
    mpl.rcParams["svg.fonttype"] = "none"
    height = len(layers) * (_HEIGHT + _GAP)
    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(0, height)
    axes.axis("off")
    for row, layer in enumerate(layers):
        bottom = height - (row + 1) * (_HEIGHT + _GAP) + _GAP / 2
        width = (_WIDTH - 0.4 - _GAP * (len(layer) - 1)) / len(layer)
        for column, room in enumerate(layer):
            left = 0.2 + column * (width + _GAP)
            axes.add_patch(FancyBboxPatch(
                (left, bottom), width, _HEIGHT, boxstyle="round,pad=0,rounding_size=0.08",
                facecolor="#eef3f8", edgecolor="#4a6785",
            ))  # fmt: skip
            middle = left + width / 2
            axes.text(middle, bottom + _HEIGHT / 2, room, ha="center", va="center", fontsize=12,
                      color="#1d2b3a")  # fmt: skip
    figure.savefig(PICTURE, metadata={"Date": None})


def main(arguments: list[str]) -> int:
    """Write or check the page; give the exit status."""
    text = make_page()
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        draw(read_layers())
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE} is out of date; run `python docs/make_architecture.py`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
