"""How all charts look: colours, scales, and names short enough for a picture."""

import importlib.util
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.reports.targets import check_target, writing

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = (
    "#0a84d6", "#e07b00", "#0b9e6f", "#cc5fa4", "#c8a200", "#d9402f", "#7a6be0", "#5f9ea0",
)  # fmt: skip
"""Of curves; legible on white and on black (after Okabe and Ito)."""
MARKERS: Final = "osD^vPX*"
"""Of curves: colours alone do not tell them apart."""
INK: Final = "#010203"
"""Text and axes are drawn in it; it becomes the page's own colour of text."""
WIDTH_INCHES: Final = 8.0
"""Of figures, across the page."""
STYLE: Final[Any] = {  # matplotlib lists every name in its type
    "svg.hashsalt": "kernelcast", "font.family": "sans-serif", "font.size": 9,
    "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK, "axes.titlecolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False,
    "axes.spines.right": False, "axes.linewidth": 0.7, "axes.titlesize": 9,
    "legend.frameon": False, "legend.fontsize": 8,
    "grid.color": INK, "grid.alpha": 0.15, "grid.linewidth": 0.5,
    "text.parse_math": False,  # kernels and devices may have any name
}  # fmt: skip
"""Settings of matplotlib for figures of pages."""
PANEL_INCHES: Final = 3.2
"""Height of a panel of bars."""
SMALL_FONT: Final = 6.5
"""Of names below bars."""
_NAMES_ACROSS: Final = 60
LONGEST_NAME: Final = 26
"""Letters that a name in a picture may have."""
# Bars are cut where a few would make all others unreadable: beyond so many times the 90th
# percentile.
_CUT_FROM, _CUT_AT, _LOWEST_CUT = 2.5, 1.5, 0.1
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)


def require_matplotlib(option: str) -> None:
    """Make sure that figures can be drawn, before anything runs."""
    if importlib.util.find_spec("matplotlib") is None:
        msg = f"{option} needs matplotlib; install it with `pip install 'kernelcast[plot]'`"
        raise InputError(msg)


def check_plot(path: Path | None) -> None:
    """Make sure that a chart can be drawn and written, where one is wanted."""
    if path is None:
        return
    check_target(path)
    require_matplotlib("--plot")
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in kinds:
        msg = f"{path}: charts are written as {', '.join(kinds)}; end the name in one, as .png"
        raise InputError(msg)


@contextmanager
def saved_figure(
    path: Path, width: float, height: float, *, dpi: int | None = None
) -> Iterator["Figure"]:
    """Give a figure to draw on, of so many inches; afterwards it is written to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    with writing(path, "the chart"):
        figure.savefig(path, dpi=dpi or "figure")


@contextmanager
def figure_style(**more: Any) -> Iterator[None]:  # noqa: ANN401 - as matplotlib has them
    """Draw as figures of pages are drawn."""
    from matplotlib import rc_context

    style: Any = {**STYLE, **more}
    with rc_context(style):
        yield


def write_svg(figure: "Figure") -> str:
    """Write a figure that was drawn within `figure_style` as an SVG element, in `INK`."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    return _METADATA.sub("", svg[svg.index("<svg") :])


def choose_limit(values: Sequence[float]) -> float:
    """Give the error at which bars are cut; beyond all of them unless a few stick out.

    Examples
    --------
    >>> round(choose_limit([0.1, 0.2, 0.3]), 3), round(choose_limit([0.1] * 99 + [4.0]), 3)
    (0.315, 0.15)
    >>> choose_limit([0.0])
    1.0
    """
    largest, usual = max(values), float(np.quantile(values, 0.9))
    cut = max(_CUT_AT * usual, _LOWEST_CUT)
    limit = cut if largest > _CUT_FROM * usual and largest > cut else 1.05 * largest
    return limit or 1.0


def show_grid(axes: "Axes", axis: Literal["x", "y", "both"] = "y") -> None:
    """Draw lines behind what is drawn."""
    axes.grid(visible=True, axis=axis)
    axes.set_axisbelow(True)


def write_percent(value: float, _: object = None) -> str:
    """Write a tick.

    Examples
    --------
    >>> write_percent(0.025), write_percent(0.1)
    ('2.5 %', '10 %')
    """
    return f"{value * 100:.3g} %"


def count_panels(names: int) -> int:
    """Give how many panels so many names below bars need."""
    return -(-names // _NAMES_ACROSS)


def draw_panels(
    figure: "Figure", names: Sequence[str], draw: "Callable[[Axes, slice], None]"
) -> "Axes":
    """Draw bars with names below them, as many as stay legible in a panel.

    Parameters
    ----------
    figure : Figure
        Empty.
    names : sequence of str
        At least one.
    draw : callable
        Draws the bars of a part of the names at 0, 1, 2, ...

    Returns
    -------
    Axes
        The first panel.
    """
    panels = count_panels(len(names))
    across = -(-len(names) // panels)
    every = figure.subplots(panels, 1, squeeze=False)[:, 0]
    for place, axes in enumerate(every):
        part = slice(place * across, (place + 1) * across)
        draw(axes, part)
        shown = names[part]
        axes.set_xticks(range(len(shown)), shown, rotation=90, fontsize=SMALL_FONT)
        axes.set_xlim(-0.7, across - 0.3)
        show_grid(axes)
    first: Axes = every[0]
    return first


def shorten_names(labels: Iterable[str]) -> Mapping[str, str]:
    """Give each label a short name: its last part, with more parts where that is not enough.

    Parameters
    ----------
    labels : iterable of str
        Such as ``suite/application/kernel``.

    Returns
    -------
    mapping of str to str
        At most `LONGEST_NAME` letters each; the middle of a longer name is left out.

    Examples
    --------
    >>> shorten_names(["a/x/run", "a/y/run", "a/y/triad"])
    {'a/x/run': 'x/run', 'a/y/run': 'y/run', 'a/y/triad': 'triad'}
    """
    known = sorted(set(labels))
    short = {label: _end(label, 1) for label in known}
    deepest = max((label.count("/") for label in known), default=0) + 1
    for parts in range(2, deepest + 1):
        used = Counter(short.values())
        short |= {one: _end(one, parts) for one, name in short.items() if used[name] > 1}
    return {label: _elide(make_plain(name)) for label, name in short.items()}


def make_plain(text: str) -> str:
    r"""Replace what cannot be drawn: callers may call kernels and devices anything.

    Examples
    --------
    >>> make_plain("a\x01b")
    'a?b'
    """
    return "".join(one if one.isprintable() else "?" for one in text)


def _end(label: str, parts: int) -> str:
    return "/".join(label.split("/")[-parts:])


def _elide(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    half = (LONGEST_NAME - 1) // 2
    return f"{name[: LONGEST_NAME - 1 - half]}\N{HORIZONTAL ELLIPSIS}{name[-half:]}"
