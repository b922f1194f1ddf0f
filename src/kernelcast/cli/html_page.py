"""The frame of every HTML page that commands write: one file, no network, light, dark and print."""

import importlib.util
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NewType

from kernelcast.records.errors import InputError
from kernelcast.reports.drawing import INK, STYLE

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.figure import Figure

Html = NewType("Html", str)
"""Text that needs no escaping any more."""

# Names of parts that nothing refers to; several figures on a page would repeat them.
_IDS = re.compile(
    r' id="(?:figure|axes|patch|line2d|text|xtick|ytick|matplotlib\.axis|legend|'
    r'FillBetweenPolyCollection|LineCollection|PathCollection)_\d+"'
)

_SVG = re.compile(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>')

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1d21; --soft: #5c6470; --line: #d5d9e0;
  --paper: #ffffff; --mark: #0a6ebd; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --soft: #9aa3b0; --line: #3a404a;
  --paper: #16181c; --mark: #6cb6ff; } }
body { background: var(--paper); color: var(--ink); max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.about, figcaption, .note { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; white-space: pre-line; } th:first-child, td:first-child { text-align: left; }
td + td { white-space: nowrap; } td:first-child { min-width: 6.5rem; overflow-wrap: anywhere; }
tr.chosen td { font-weight: 600; }
td div { white-space: nowrap; } td .low { color: var(--soft); font-size: .8rem; }
td .source { color: var(--mark); font-size: .75rem; cursor: help; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
svg text { font-family: system-ui, sans-serif !important; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 1.2rem; color: var(--soft); white-space: pre-line;
  overflow-wrap: anywhere; }
article + article { border-top: 2px solid var(--line); margin-top: 3rem; }
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --mark: #000; }
  body { max-width: none; margin: 0; font-size: 11px; } figure, table, tr { break-inside: avoid; }
  h2 { break-after: avoid; } }
"""


def require_matplotlib(option: str) -> None:
    """Make sure that figures can be drawn, before anything runs.

    Raises
    ------
    InputError
        If matplotlib is missing.
    """
    if importlib.util.find_spec("matplotlib") is None:
        msg = f"{option} needs matplotlib; install it with `pip install 'kernelcast[plot]'`"
        raise InputError(msg)


def save_document(path: Path, title: str, body: Html) -> None:
    """Write a page to a file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        path.write_text(make_document(title, body), encoding="utf-8")
    except OSError as error:
        msg = f"{path}: the report cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def make_document(title: str, body: Html) -> str:
    """Give a page's text; the title is plain."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n"
        "</body>\n</html>\n"
    )


def make_article(title: str, about: Sequence[str], *parts: Html) -> Html:
    """Give a part of the page with a title of its own; what it is about is told in one line."""
    told = " &middot; ".join(escape(one) for one in about if one)
    head = f"<article>\n<h1>{escape(title)}</h1>\n<p class='about'>{told}</p>"
    return Html("\n".join([head, *(part for part in parts if part), "</article>"]))


def make_section(title: str, *parts: Html) -> Html:
    """Give a section with its heading, which is plain text."""
    told = "\n".join(part for part in parts if part)
    return Html(f"<section>\n<h2>{escape(title)}</h2>\n{told}</section>")


def make_table(columns: Sequence[str], rows: Sequence[Html], note: str = "") -> Html:
    """Give a table.

    Parameters
    ----------
    columns : sequence of str
        Headings, as plain text.
    rows : sequence of Html
        See `make_row`.
    note : str
        Below it, as plain text.
    """
    head = "".join(f"<th>{escape(one)}</th>" for one in columns)
    body = "\n".join(rows)
    return Html(
        f"<div class='wide'><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n"
        f"</tbody></table></div>\n{make_note(note)}"
    )


def make_row(cells: Sequence[str], *, is_chosen: bool = False) -> Html:
    """Give a row of a table; cells are plain text, a chosen row stands out."""
    told = "".join(f"<td>{escape(one)}</td>" for one in cells)
    begin = "<tr class='chosen'>" if is_chosen else "<tr>"
    return Html(f"{begin}{told}</tr>")


def make_note(text: str) -> Html:
    """Give a paragraph in softer ink; nothing for nothing."""
    return Html(f"<p class='note'>{escape(text)}</p>\n" if text else "")


def make_figure(svg: Html, caption: str) -> Html:
    """Give a figure of an SVG element and its plain words."""
    return Html(f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>\n")


def make_definitions(entries: Sequence[tuple[str, str]]) -> Html:
    """Give a list of names and what is to be said of them, in plain text."""
    told = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in entries)
    return Html(f"<dl>\n{told}\n</dl>\n")


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw in the page's ink and with words as text."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", **STYLE}):
        yield


def figure_to_svg(figure: "Figure") -> Html:
    """Give a figure, drawn within `figure_style`, as an SVG element: no fixed ink, no ids."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = _IDS.sub("", svg)
    return Html(_SVG.sub(r'<svg viewBox="\1" role="img">', svg))
