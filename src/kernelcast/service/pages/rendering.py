"""The frame of every page: templates, headers, navigation, numbers, and errors for people."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache, partial, wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import urlencode

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import Scope
from kernelcast.reports import numbers
from kernelcast.reports.machine import unit_of
from kernelcast.reports.presenter import make_environment
from kernelcast.service.authentication import Caller
from kernelcast.service.errors import ApiError, as_api_error
from kernelcast.service.pages.dependencies import forget_token, read_token
from kernelcast.service.settings import API_PREFIX
from kernelcast.service.telemetry import log

FIRST_PAGE: Final = "/"
"""Where a visit begins."""
FRAGMENT_HEADER: Final = "x-fragment"
"""Is sent by scripts that want a part of a page only."""
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of pages: nothing from elsewhere, no script or style within a page."""
_HEADERS: Final = {
    "content-security-policy": PAGE_POLICY,
    # Forms of pages without a referrer would tell no origin either.
    "referrer-policy": "same-origin",
}
_KERNEL_TABS: Final = (
    ("/kernels", "Estimates and observations"), ("/kernels/devices", "By device"),
)  # fmt: skip
_ACCURACY_TABS: Final = (
    ("/accuracy", "Predictions"), ("/accuracy/compare", "Compare"), ("/accuracy/models", "Models"),
)  # fmt: skip
_TEMPLATES: Final = Path(__file__).parent / "templates"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


NAVIGATION: Final = {
    "/": "Home", "/kernels": "Kernels", "/devices": "Devices", "/accuracy": "Accuracy",
    "/jobs": "Jobs", "/lab": "Lab",
}  # fmt: skip
"""All pages by their addresses, in the order of the navigation."""

P = ParamSpec("P")
T = TypeVar("T")
# For what pages work out: reading, resampling. Few, and their own: the API's short looks at the
# database go through the event loop's threads, and must never wait behind pictures.
_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="pages")


async def run_in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call a function that takes its time."""
    call = partial(function, *args, **options)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, call)


class PageRoute(APIRoute):
    """A route that tells errors as a page, and not as JSON; ``route_class`` of page routers."""

    def get_route_handler(self) -> Handler:
        """Give the handler, with errors turned into pages."""
        handle = super().get_route_handler()

        async def handle_framed(request: Request) -> Response:
            try:
                return await handle(request)
            except (KernelcastError, ApiError, RequestValidationError, HTTPException) as error:
                return answer_error(request, error)

        return handle_framed


def render(
    request: Request,
    template: str,
    values: dict[str, Any] | None = None,
    *,
    status: int = HTTPStatus.OK,
) -> Response:
    """Make a page, or a part of one, of a template below ``templates``."""
    caller: Caller | None = getattr(request.state, "page_caller", None)
    scopes = frozenset() if caller is None else caller.scopes
    shared = {
        "navigation": NAVIGATION,
        "path": request.url.path,
        "caller": caller,
        "is_signed_in": read_token(request) is not None and caller is not None,
        "is_fragment": is_fragment(request),
        "can": lambda scope: Scope(scope) in scopes,
    }
    text = _environment().get_template(template).render(shared | (values or {}))
    return HTMLResponse(text, status, _HEADERS)


def is_fragment(request: Request) -> bool:
    """Tell whether a script asks for a part of a page."""
    return FRAGMENT_HEADER in request.headers


def wants_page(request: Request) -> bool:
    """Tell whether a person with a browser asks, and not a program."""
    is_of_api = request.url.path.startswith(f"{API_PREFIX}/")
    accepts = "text/html" in request.headers.get("accept", "")
    return request.method in {"GET", "HEAD"} and accepts and not is_of_api


def answer_error(request: Request, error: Exception) -> Response:
    """Tell a person what is wrong; who needs to sign in is led there."""
    told = _describe(error)
    if told.status == HTTPStatus.UNAUTHORIZED and not is_fragment(request):
        # Redirect; a token that is refused is forgotten, or each picture would count as a guess.
        wanted = request.url.path if request.method == "GET" else FIRST_PAGE
        redirection = RedirectResponse(
            f"/sign-in?{urlencode({'next': wanted})}", HTTPStatus.SEE_OTHER, _HEADERS
        )
        if read_token(request) is not None:
            forget_token(redirection, request)
        return redirection
    answer = render(request, "error.html", {"error": told}, status=told.status)
    if told.retry_after_s is not None:
        answer.headers["retry-after"] = str(told.retry_after_s)
    return answer


def _describe(error: Exception) -> ApiError:
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(one) for one in first["loc"][1:])
        message = f"{where}: {first['msg']}"
        return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request", message)
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, "http_error", str(error.detail))
    told = as_api_error(error)
    if told.message != str(error):
        log("page failed", level=40, code=told.code, error=str(error))
    return told


@cache
def _environment() -> Environment:
    found = make_environment(_TEMPLATES)
    found.globals["kernel_tabs"] = _KERNEL_TABS
    found.globals["accuracy_tabs"] = _ACCURACY_TABS
    found.filters.update(FILTERS | {"kernel_link": link_kernel})
    return found


NOTHING: Final = "\N{EN DASH}"
"""Stands where there is no number."""


def _typeset(write: Callable[P, str]) -> Callable[P, str]:
    """Have numbers written with the characters that a terminal may lack."""

    @wraps(write)
    def typeset(*args: P.args, **options: P.kwargs) -> str:
        text = write(*args, **options)
        if text == numbers.NOTHING:
            return NOTHING
        return numbers.typeset(text)

    return typeset


write_seconds = _typeset(numbers.format_seconds)
write_share = _typeset(numbers.format_share)
write_digits = _typeset(numbers.format_digits)
write_bytes = _typeset(numbers.format_bytes)
write_points = _typeset(numbers.format_points)


def write_signed_share(share: float | None) -> str:
    """Write a share in percent, with its sign."""
    return write_share(share, signed=True)


def write_rate(bytes_per_s: float) -> str:
    """Write a bandwidth."""
    scale, unit = unit_of("copy_bytes_per_s", bytes_per_s)
    return f"{write_digits(bytes_per_s / scale)} {unit}"


def write_moment(moment: datetime | None) -> str:
    """Write a day and a time of UTC."""
    return NOTHING if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def write_size(size: Sequence[int] | None) -> str:
    """Write a global size."""
    return " x ".join(map(str, size)) if size else "unknown size"


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "seconds": write_seconds,
    "share": write_share,
    "signed_share": write_signed_share,
    "memory": write_bytes,
    "rate": write_rate,
    "digits": write_digits,
    "count": _typeset(numbers.format_whole),
    "moment": write_moment,
    "size": write_size,
}
"""Filters of the templates by their names."""


def link_kernel(kernel: str) -> str:
    """Give the address of a kernel's page; its name may hold anything."""
    return f"/kernels/of?{urlencode({'name': kernel})}"
