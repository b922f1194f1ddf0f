"""Pictures: charts of the browser, drawn here for those without, each as PNG and as CSV."""

import asyncio
import base64
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from kernelcast.reports.charts import Chart, chart_to_plain
from kernelcast.reports.drawing import INK, WIDTH_INCHES, draw_charts, figure_style, write_svg
from kernelcast.service.errors import refuse_unknown

if TYPE_CHECKING:  # slow to load
    from matplotlib.figure import Figure

T = TypeVar("T")
Theme = Literal["light", "dark"]
Cell = str | float | int | None
_INKS: Final[dict[str, str]] = {"light": "#1b1d21", "dark": "#e6e8ec"}
_PNG_DPI: Final = 150
# One thread: the library's settings while drawing are one for the whole process, and a page full of
# pictures must not keep the threads that wait for the database.
_PAINTER = ThreadPoolExecutor(1, thread_name_prefix="pictures")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is drawn, and the numbers that are drawn."""

    name: str
    """File name of downloads, without its ending."""
    alternative: str
    """Says what is to be seen to those who cannot."""
    columns: tuple[str, ...]
    """Names of the numbers, with units."""
    rows: Sequence[Sequence[Cell]]
    draw: "Callable[[Figure], None] | None" = None
    """Draws on an empty figure of matplotlib; None has the chart drawn."""
    caption: str = ""
    height_inches: float = 3.8
    """It is `WIDTH_INCHES` wide."""
    chart: Chart | None = None
    """What browsers with scripts draw in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPicture:
    """A picture as the templates' ``picture`` takes it."""

    name: str
    alternative: str
    caption: str
    light: str
    dark: str
    png: str
    csv: str
    chart: str = ""
    chart_content: str = ""


def link(picture: Picture, address: str) -> ShownPicture:
    """Show a picture that a route of its own answers, see `respond`.

    Parameters
    ----------
    picture : Picture
        What is shown; it is not drawn yet.
    address : str
        The route without ending: ``.svg``, ``.svg?theme=dark``, ``.png``, ``.csv`` and ``.json``
        follow, or stand before the query that it has.
    """
    path, mark, query = address.partition("?")
    more = f"&{query}" if mark else ""
    return ShownPicture(
        name=picture.name,
        alternative=picture.alternative,
        caption=picture.caption,
        light=f"{path}.svg?theme=light{more}",
        dark=f"{path}.svg?theme=dark{more}",
        png=f"{path}.png{mark}{query}",
        csv=f"{path}.csv{mark}{query}",
        chart="" if picture.chart is None else f"{path}.json{mark}{query}",
    )


def link_all(pictures: Mapping[str, Picture], address: str, query: str) -> dict[str, ShownPicture]:
    """Show the pictures of a page; the route below its address takes their names and the query."""
    return {name: link(one, f"{address}/{name}?{query}") for name, one in pictures.items()}


async def embed(picture: Picture) -> ShownPicture:
    """Show a picture whose content is within the page: of answers that are not kept."""
    svg = await _paint(_draw_svg, picture)
    png = await _paint(_draw_png, picture)
    return ShownPicture(
        name=picture.name,
        alternative=picture.alternative,
        caption=picture.caption,
        light=_pack("image/svg+xml", _ink(svg, "light")),
        dark=_pack("image/svg+xml", _ink(svg, "dark")),
        png=_pack("image/png", png),
        csv=f"data:text/csv;charset=utf-8,{quote(write_csv(picture))}",
        chart_content="" if picture.chart is None else json.dumps(chart_to_plain(picture.chart)),
    )


async def respond(picture: Picture, ending: str, theme: Theme = "light") -> Response:
    """Answer the route of a picture."""
    if ending == "svg":
        svg = await _paint(_draw_svg, picture)
        return Response(_ink(svg, theme), media_type="image/svg+xml")
    if ending == "png":
        png = await _paint(_draw_png, picture)
        return Response(png, media_type="image/png", headers=_name_file(picture, ending))
    if ending == "json" and picture.chart is not None:
        return JSONResponse(chart_to_plain(picture.chart))
    if ending != "csv":
        refuse_unknown("picture", f"{picture.name}.{ending}")
    return Response(
        write_csv(picture),
        media_type="text/csv; charset=utf-8",
        headers=_name_file(picture, ending),
    )


async def respond_by_name(
    pictures: Mapping[str, Picture], name: str, ending: str, theme: Theme
) -> Response:
    """Answer the route of one of a page's pictures, see `respond`."""
    if name not in pictures:
        refuse_unknown("picture", name)
    return await respond(pictures[name], ending, theme)


def write_csv(picture: Picture) -> str:
    """Write the numbers of a picture."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(picture.columns)
    writer.writerows(picture.rows)
    return text.getvalue()


def _name_file(picture: Picture, ending: str) -> dict[str, str]:
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", picture.name)
    return {"content-disposition": f'attachment; filename="{safe}.{ending}"'}


async def _paint(draw: Callable[[Picture], T], picture: Picture) -> T:
    return await asyncio.get_running_loop().run_in_executor(_PAINTER, draw, picture)


def _draw_svg(picture: Picture) -> str:
    with _drawn(picture) as figure:
        return write_svg(figure)


def _draw_png(picture: Picture) -> bytes:
    content = io.BytesIO()
    with _drawn(picture) as figure:
        figure.savefig(content, format="png", dpi=_PNG_DPI, facecolor="white")
    return content.getvalue()


@contextmanager
def _drawn(picture: Picture) -> "Iterator[Figure]":
    from matplotlib.figure import Figure

    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, picture.height_inches), layout="constrained")
        if picture.draw is not None:
            picture.draw(figure)
        elif picture.chart is not None:
            draw_charts(figure, picture.chart)
        yield figure


def _ink(svg: str, theme: Theme) -> str:
    return svg.replace(INK, _INKS[theme])


def _pack(media_type: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
