"""Pictures: charts that browsers draw, drawn here for those without scripts, and as PNG and CSV."""

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

from fastapi import APIRouter
from starlette.datastructures import URL
from starlette.responses import JSONResponse, Response

from kernelcast.reports.charts import Figure, Kind, Point, Series, chart_to_plain
from kernelcast.reports.drawing import INK, draw_png, draw_svg, write_number
from kernelcast.reports.presenter import tabulate, write_csv
from kernelcast.service.dependencies import Call
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.pages.rendering import render
from kernelcast.service_state import AnswerRecord

T = TypeVar("T")
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Response]])
_INKS: Final[dict[str, str]] = {"light": "#1b1d21", "dark": "#e6e8ec"}
_MOST_TOLD: Final = 6
# One thread: the library's settings while drawing are one for the whole process, and a page full of
# pictures must not keep the threads that wait for the database.
_PAINTER = ThreadPoolExecutor(1, thread_name_prefix="pictures")


def group_points(named: Iterable[tuple[str, Point]], kind: Kind = "points") -> list[Series]:
    """Make a series of the points of each name, in the order of the names' first points."""
    found: dict[str, list[Point]] = {}
    for name, point in named:
        found.setdefault(name, []).append(point)
    return [Series(name=name, points=points, kind=kind) for name, points in found.items()]


def mark_answer(one: AnswerRecord, label: str, link: str = "") -> Point:
    """Mark an observed answer, as it was, over the measured time."""
    x = one.measured_s or 0.0
    return Point(x=x, y=one.seconds, low=one.low, high=one.high, label=label, link=link)


def describe(figure: Figure) -> str:
    """Say what a figure shows, and where series begin and end, for those who cannot see it."""
    series = [
        (one, chart)
        for chart in figure.charts
        for one in chart.series
        if one.kind != "guide" and one.points
    ]
    told = []
    for one, chart in series[:_MOST_TOLD]:
        ends = " to ".join(
            f"{write_number(at.y, chart.y)} at "
            f"{chart.x.names[int(at.x)] if chart.x.names else write_number(at.x, chart.x)}"
            for at in [one.points[0], one.points[-1]][: len(one.points)]
        )
        told.append(f"{one.name}, {len(one.points)} points: {ends}")
    more = f"; and {len(series) - _MOST_TOLD} more" if len(series) > _MOST_TOLD else ""
    return f"{figure.title}. {'; '.join(told)}{more}. The CSV file has all numbers."


def link(picture: Figure, address: str) -> dict[str, str]:
    """Show a picture that has an address of its own, by the templates' ``picture``."""
    path, mark, query = address.partition("?")
    more = f"&{query}" if mark else ""
    return {
        "name": picture.name,
        "title": picture.title,
        "alternative": describe(picture),
        "caption": picture.caption,
        "light": f"{path}.svg?theme=light{more}",
        "dark": f"{path}.svg?theme=dark{more}",
        "png": f"{path}.png{mark}{query}",
        "csv": f"{path}.csv{mark}{query}",
        "chart": f"{path}.json{mark}{query}" if len(picture.charts) == 1 else "",
        "chart_content": "",
    }


def link_all(pictures: Mapping[str, Figure], page: URL) -> dict[str, dict[str, str]]:
    """Show the pictures of a page: below its address, by their names, with its query."""
    return {name: link(one, f"{page.path}/{name}?{page.query}") for name, one in pictures.items()}


async def embed(picture: Figure) -> dict[str, str]:
    """Show a picture whose content is within the page: of answers that are not kept."""
    svg, png = await _paint(draw_svg, picture), await _paint(draw_png, picture)
    single = len(picture.charts) == 1
    return {
        **link(picture, ""),
        **{
            theme: _pack("image/svg+xml", svg.replace(INK, ink).encode())
            for theme, ink in _INKS.items()
        },
        "png": _pack("image/png", png),
        "csv": f"data:text/csv;charset=utf-8,{quote(write_csv(tabulate(picture)))}",
        "chart": "",
        "chart_content": json.dumps(chart_to_plain(picture.charts[0])) if single else "",
    }


def with_pictures(router: APIRouter, path: str) -> Callable[[Handler], Handler]:
    """Have a function answer the address of a page and, by `show`, those of its pictures below."""

    def add(handler: Handler) -> Handler:
        router.get(path)(handler)
        return router.get(f"{path}/{{picture}}.{{ending}}")(handler)

    return add


async def show(
    page: Call,
    template: str,
    values: Mapping[str, Any],
    pictures: Mapping[str, Figure],
    *,
    address: URL | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    """Make a page, or where its address names one of the page's pictures, that picture."""
    asked = page.request.path_params
    if "picture" in asked:
        theme = page.request.query_params.get("theme", "light")
        return await _send(pictures, asked["picture"], asked["ending"], _INKS.get(theme, INK))
    links = link_all(pictures, address or page.request.url)
    return render(page.request, template, {**values, "pictures": links}, status=status)


async def _send(pictures: Mapping[str, Figure], name: str, ending: str, ink: str) -> Response:
    picture = pictures.get(name)
    if picture is None:
        refuse_unknown("picture", name)
    if ending == "svg":
        svg = await _paint(draw_svg, picture)
        return Response(svg.replace(INK, ink), media_type="image/svg+xml")
    if ending == "json" and len(picture.charts) == 1:
        return JSONResponse(chart_to_plain(picture.charts[0]))
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", picture.name)
    headers = {"content-disposition": f'attachment; filename="{safe}.{ending}"'}
    if ending == "png":
        return Response(await _paint(draw_png, picture), media_type="image/png", headers=headers)
    if ending != "csv":
        refuse_unknown("picture", f"{name}.{ending}")
    return Response(
        write_csv(tabulate(picture)), media_type="text/csv; charset=utf-8", headers=headers
    )


async def _paint(draw: Callable[[Figure], T], picture: Figure) -> T:
    return await asyncio.get_running_loop().run_in_executor(_PAINTER, draw, picture)


def _pack(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
