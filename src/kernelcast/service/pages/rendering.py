"""The frame of every page: templates, headers, numbers, evidence, and errors for people."""

import asyncio
import base64
import json
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache, partial, wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from jinja2 import Environment
from starlette.datastructures import URL
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from kernelcast.records.service_state import JobRecord, Scope
from kernelcast.reports import numbers
from kernelcast.reports.charts import Figure, Kind, Point, Series, chart_to_plain
from kernelcast.reports.drawing import INK, draw_png, draw_svg, write_number
from kernelcast.reports.machine import find_age_days, list_doubts, list_headlines, unit_of
from kernelcast.reports.presenter import make_environment, tabulate, write_csv
from kernelcast.service.authentication import Caller
from kernelcast.service.dependencies import Call, describe_cookie, get_service, read_token
from kernelcast.service.errors import ApiError, refuse_unknown
from kernelcast.service.settings import API_PREFIX
from kernelcast.service_state import AnswerRecord
from kernelcast.training.settings import pluralise

FIRST_PAGE: Final = "/"
OF_PROGRAMS: Final = (f"{API_PREFIX}/", "/health", "/ready", "/metrics")
"""What begins the addresses that are no pages."""
_HEADERS: Final = {
    # Nothing from elsewhere, no script or style within a page.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Forms of pages without a referrer would tell no origin either.
    "referrer-policy": "same-origin",
}
_TIERS: Final = {
    "history": "this very launch was measured before",
    "sizes": "other sizes of this kernel are known",
    "hybrid": "from samples, corrected by a learned model",
    "linear": "from samples of a few work-groups",
    "learned": "from a model of one's own; nothing was run",
    "analytic": "from the analytic model; nothing was run",
}
P = ParamSpec("P")
T = TypeVar("T")
# For what pages work out: reading, resampling. Few, and their own: the API's short looks at the
# database go through the event loop's threads, and must never wait behind pictures.
_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="pages")


async def run_in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    call = partial(function, *args, **options)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, call)


def render(
    request: Request, template: str, values: Mapping[str, Any], *, status: int | None = None
) -> Response:
    """Make a page, or a part of one, of a template below ``templates``.

    One with an ``error``, or ``errors`` of fields, has the status 422 unless another one is given.
    """
    caller: Caller | None = getattr(request.state, "caller", None)
    scopes = frozenset() if caller is None else caller.scopes
    shared = {
        "service": get_service(request),
        "path": request.url.path,
        "caller": caller,
        "is_signed_in": read_token(request) is not None and caller is not None,
        "is_fragment": is_fragment(request),
        "can": lambda scope: Scope(scope) in scopes,
    }
    text = _environment().get_template(template).render(**shared, **values)
    is_wrong = values.get("error") or values.get("errors")
    usual = HTTPStatus.UNPROCESSABLE_ENTITY if is_wrong else HTTPStatus.OK
    return HTMLResponse(text, status or usual, _HEADERS)


def is_fragment(request: Request) -> bool:
    return "x-fragment" in request.headers  # scripts that want a part of a page send it


def wants_page(request: Request) -> bool:
    """Tell whether a person with a browser asks: for a page, or in vain for one."""
    if request.url.path.startswith(OF_PROGRAMS):
        return False
    accepts = "text/html" in request.headers.get("accept", "")
    return "endpoint" in request.scope or (request.method in {"GET", "HEAD"} and accepts)


def render_error(request: Request, error: ApiError) -> Response:
    """Tell a person what is wrong; who needs to sign in is led there."""
    if error.status == HTTPStatus.UNAUTHORIZED and not is_fragment(request):
        # Redirect; a token that is refused is forgotten, or each picture would count as a guess.
        wanted = request.url.path if request.method == "GET" else FIRST_PAGE
        redirection = RedirectResponse(
            f"/sign-in?{urlencode({'next': wanted})}", HTTPStatus.SEE_OTHER, _HEADERS
        )
        if read_token(request) is not None:
            redirection.delete_cookie(**describe_cookie(request))
        return redirection
    answer = render(request, "error.html", {"error": error}, status=error.status)
    if error.retry_after_s is not None:
        answer.headers["retry-after"] = str(error.retry_after_s)
    return answer


def fill(template: str, macro: str, *values: object) -> str:
    """Write what a macro of a template makes of values."""
    return str(getattr(_environment().get_template(template).module, macro)(*values)).strip()


@cache
def _environment() -> Environment:
    found = make_environment(Path(__file__).parent / "templates")
    found.globals["tiers"] = _TIERS
    found.filters.update({
        "seconds": write_seconds, "share": write_share, "memory": _typeset(numbers.format_bytes),
        "rate": write_rate, "digits": write_digits, "points": _typeset(numbers.format_points),
        "error": _typeset(numbers.format_error), "error_class": numbers.format_class,
        "plural": pluralise, "duration": numbers.format_duration, "took": write_duration,
        "count": _typeset(numbers.format_whole),
        "moment": write_moment, "named": write_named, "size": write_size,
        "kernel_link": link_kernel, "headlines": list_headlines, "doubts": list_doubts,
        "age_days": find_age_days, "quoted": shlex.quote,
        "json": partial(json.dumps, indent=1, ensure_ascii=False),
    })  # fmt: skip
    return found


NOTHING: Final = "\N{EN DASH}"
"""Stands where there is no number."""


def _typeset(write: Callable[P, str]) -> Callable[P, str]:
    """Have numbers written with the characters that a terminal may lack."""

    @wraps(write)
    def typeset(*args: P.args, **options: P.kwargs) -> str:
        text = write(*args, **options)
        return NOTHING if text == numbers.NOTHING else numbers.typeset(text)

    return typeset


write_seconds = _typeset(numbers.format_seconds)
write_share = _typeset(numbers.format_share)
write_digits = _typeset(numbers.format_digits)


def write_rate(bytes_per_s: float) -> str:
    scale, unit = unit_of("copy_bytes_per_s", bytes_per_s)
    return f"{write_digits(bytes_per_s / scale)} {unit}"


def write_moment(moment: datetime | None) -> str:
    return NOTHING if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def write_duration(job: JobRecord) -> str:
    took = (job.ended_at or datetime.now(UTC)) - (job.started_at or job.created_at)
    return numbers.format_duration(max(took.total_seconds(), 0.0))


def write_size(size: Sequence[int] | None) -> str:
    return " x ".join(map(str, size)) if size else "unknown size"


def link_kernel(kernel: str) -> str:
    """Give the address of a kernel's page; its name may hold anything."""
    return f"/kernels/of?{urlencode({'name': kernel})}"


def write_named(value: object, name: str) -> str:
    """Write a value as its name says."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if name.endswith(("_s", "seconds")):
            return write_seconds(value)
        if name in {"weight", "coverage", "share"}:
            return write_share(value)
        return write_digits(value)
    if isinstance(value, list):
        return ", ".join(write_named(one, "") for one in value)
    return str(value)


Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Response]])
_INKED: Final = (
    "<style>svg { color: #1b1d21 } "
    "@media (prefers-color-scheme: dark) { svg { color: #e6e8ec } }</style>"
)
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


def link(picture: Figure, address: str) -> dict[str, str]:
    """Show a picture that has an address of its own, by the templates' ``picture``."""
    # What it shows, and where series begin and end, for those who cannot see it.
    series = [
        (one, chart)
        for chart in picture.charts
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
    if len(series) > _MOST_TOLD:
        told.append(f"and {len(series) - _MOST_TOLD} more")
    path, mark, query = address.partition("?")
    svg, png, csv, points = (f"{path}.{one}{mark}{query}" for one in ("svg", "png", "csv", "json"))
    return {
        "name": picture.name,
        "title": picture.title,
        "alternative": f"{picture.title}. {'; '.join(told)}. The CSV file has all numbers.",
        "caption": picture.caption,
        "svg": svg, "png": png, "csv": csv,
        "chart": points if len(picture.charts) == 1 else "",
        "chart_content": "",
    }  # fmt: skip


def link_all(pictures: Mapping[str, Figure], page: URL) -> dict[str, dict[str, str]]:
    """Show the pictures of a page: below its address, by their names, with its query."""
    return {name: link(one, f"{page.path}/{name}?{page.query}") for name, one in pictures.items()}


async def embed(picture: Figure) -> dict[str, str]:
    """Show a picture whose content is within the page: of answers that are not kept."""
    svg, png = await _paint(_draw_svg, picture), await _paint(draw_png, picture)
    single = len(picture.charts) == 1
    return {
        **link(picture, ""),
        "svg": _pack("image/svg+xml", svg.encode()),
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
) -> Response:
    """Make a page, or where its address names one of the page's pictures, that picture."""
    asked = page.request.path_params
    if "picture" not in asked:
        links = link_all(pictures, address or page.request.url)
        return render(page.request, template, {**values, "pictures": links})
    name, ending = asked["picture"], asked["ending"]
    picture = pictures.get(name)
    if picture is None:
        refuse_unknown("picture", name)
    if ending == "svg":
        return Response(await _paint(_draw_svg, picture), media_type="image/svg+xml")
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


def _draw_svg(picture: Figure) -> str:
    """Draw a picture whose ink is light where a browser's pages are dark."""
    head, mark, rest = draw_svg(picture).replace(INK, "currentColor").partition(">")
    return head + mark + _INKED + rest


def _pack(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
