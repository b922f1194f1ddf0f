"""The pages that commands write: Jinja2 templates, one file each, no network, for screen and print.

The service's pages use the parts that both show.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup as Html

from kernelcast.reports import drawing
from kernelcast.reports.charts import Chart
from kernelcast.reports.drawing import draw_charts
from kernelcast.reports.targets import writing

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.figure import Figure

__all__ = ["Html"]
_TEMPLATES: Final = Path(__file__).parent / "templates"
# Names of parts that nothing refers to; several figures on a page would repeat them.
_IDS = re.compile(
    r' id="(?:figure|axes|patch|line2d|text|xtick|ytick|matplotlib\.axis|legend|'
    r'FillBetweenPolyCollection|LineCollection|PathCollection)_\d+"'
)
_SVG = re.compile(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>')


def make_environment(*folders: Path) -> Environment:
    """Give the templates of these folders and those of the reports."""
    return Environment(
        loader=FileSystemLoader([*folders, _TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _find_templates() -> Environment:
    return make_environment()


def find_part(template: str, name: str) -> Any:  # noqa: ANN401 - the library's macros have no types
    """Give a macro of a template of the reports; plain texts that it is given are escaped."""
    return getattr(_find_templates().get_template(template).module, name)


def save_document(path: Path, title: str, body: Html) -> None:
    """Write a page to a file."""
    document = str(find_part("parts.html", "document")(title, body))
    with writing(path, "the report"):
        path.write_text(document, encoding="utf-8")


def make_article(title: str, about: Sequence[str], *parts: Html) -> Html:
    """Give a part of the page with a title of its own; what it is about is told in one line."""
    return Html(find_part("parts.html", "article")(title, about, parts))


def make_section(title: str, *parts: Html) -> Html:
    """Give a section with its heading."""
    return Html(find_part("parts.html", "section")(title, parts))


def make_table(columns: Sequence[str], rows: Sequence[Html], note: str = "") -> Html:
    """Give a table of rows, see `make_row`, with a note below it."""
    return Html(find_part("parts.html", "table")(columns, rows, note))


def make_row(cells: Sequence[str], *, is_chosen: bool = False) -> Html:
    """Give a row of a table; a chosen one stands out."""
    return Html(find_part("parts.html", "row")(cells, is_chosen))


def make_note(text: str) -> Html:
    """Give a paragraph in softer ink; nothing for nothing."""
    return Html(find_part("parts.html", "explain")(text))


def make_figure(svg: Html, caption: str) -> Html:
    """Give a figure of an SVG element and its words."""
    return Html(find_part("parts.html", "figure")(svg, caption))


def make_definitions(entries: Sequence[tuple[str, str]]) -> Html:
    """Give a list of names and what is to be said of them."""
    return Html(find_part("parts.html", "definitions")(entries))


def draw_svg(height_inches: float, draw: "Callable[[Figure], None]") -> Html:
    """Draw a figure as wide as the page as an SVG element: words as text, no fixed ink, no ids."""
    from matplotlib.figure import Figure

    with drawing.figure_style(**{"svg.fonttype": "none"}):
        figure = Figure(figsize=(drawing.WIDTH_INCHES, height_inches), layout="constrained")
        draw(figure)
        svg = _IDS.sub("", drawing.write_svg(figure).replace(drawing.INK, "currentColor"))
    return Html(_SVG.sub(r'<svg viewBox="\1" role="img">', svg))


def chart_svg(height_inches: float, *charts: Chart) -> Html:
    """Draw charts as an SVG element."""
    return draw_svg(height_inches, lambda figure: draw_charts(figure, *charts))
