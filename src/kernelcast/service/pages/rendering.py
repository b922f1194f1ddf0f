"""The frame of every page: templates, headers, numbers, evidence, and errors for people."""

import asyncio
import json
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache, partial, wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import urlencode

from fastapi import Request
from jinja2 import Environment
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kernelcast.records.service_state import JobRecord, Scope
from kernelcast.reports import numbers
from kernelcast.reports.machine import find_age_days, list_doubts, list_headlines, unit_of
from kernelcast.reports.presenter import make_environment
from kernelcast.service.authentication import Caller
from kernelcast.service.dependencies import forget_token, read_token
from kernelcast.service.errors import ApiError
from kernelcast.service.settings import API_PREFIX
from kernelcast.training.settings import pluralise

FIRST_PAGE: Final = "/"
"""Where a visit begins."""
OF_PROGRAMS: Final = (f"{API_PREFIX}/", "/health", "/ready", "/metrics")
"""What begins the addresses that are no pages."""
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
_TEMPLATES: Final = Path(__file__).parent / "templates"
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
    """Call a function that takes its time."""
    call = partial(function, *args, **options)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, call)


def render(
    request: Request,
    template: str,
    values: dict[str, Any] | None = None,
    *,
    status: int = HTTPStatus.OK,
) -> Response:
    """Make a page, or a part of one, of a template below ``templates``."""
    found = getattr(request.state, "identified", None)
    caller = found if isinstance(found, Caller) else None
    scopes = frozenset() if caller is None else caller.scopes
    shared = {
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
    """Tell whether a person with a browser asks: for a page, or in vain for one."""
    if request.url.path.startswith(OF_PROGRAMS):
        return False
    accepts = "text/html" in request.headers.get("accept", "")
    return "endpoint" in request.scope or (request.method in {"GET", "HEAD"} and accepts)


def answer_error(request: Request, error: ApiError) -> Response:
    """Tell a person what is wrong; who needs to sign in is led there."""
    if error.status == HTTPStatus.UNAUTHORIZED and not is_fragment(request):
        # Redirect; a token that is refused is forgotten, or each picture would count as a guess.
        wanted = request.url.path if request.method == "GET" else FIRST_PAGE
        redirection = RedirectResponse(
            f"/sign-in?{urlencode({'next': wanted})}", HTTPStatus.SEE_OTHER, _HEADERS
        )
        if read_token(request) is not None:
            forget_token(redirection, request)
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
    found = make_environment(_TEMPLATES)
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
    """Write a bandwidth."""
    scale, unit = unit_of("copy_bytes_per_s", bytes_per_s)
    return f"{write_digits(bytes_per_s / scale)} {unit}"


def write_moment(moment: datetime | None) -> str:
    """Write a day and a time of UTC."""
    return NOTHING if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def write_duration(job: JobRecord) -> str:
    """Write how long a job has taken."""
    took = (job.ended_at or datetime.now(UTC)) - (job.started_at or job.created_at)
    return numbers.format_duration(max(took.total_seconds(), 0.0))


def write_size(size: Sequence[int] | None) -> str:
    """Write a global size."""
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
