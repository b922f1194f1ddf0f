"""Conditional requests (RFC 9110, section 13): who has an answer gets it again when it changes."""

import hashlib
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles

_FILES: Final = StaticFiles()  # compares tags; no file is read
_NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The ETag in If-None-Match still holds."}
}


class ConditionalRoute(APIRoute):
    """Gives what is read an ETag, and 304 to who names it in If-None-Match."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - FastAPI's
        if "GET" in (options.get("methods") or ()):
            options["responses"] = {**(options.get("responses") or {}), **_NOT_MODIFIED}
        super().__init__(*arguments, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Handle a request as other routes do, then look at the answer."""
        handle = super().get_route_handler()

        async def handle_condition(request: Request) -> Response:
            answer = await handle(request)
            return respond_if_changed(request, answer) if request.method == "GET" else answer

        return handle_condition


def respond_if_changed(request: Request, answer: Response, usage: str = "private") -> Response:
    """Tag an answer; leave it out where the caller has it."""
    tag = f'"{hashlib.sha256(answer.body).hexdigest()[:16]}"'
    # Weak: what is compressed differs in its bytes.
    answer.headers.update({"etag": f"W/{tag}", "cache-control": f"{usage}, no-cache"})
    if _FILES.is_not_modified(Headers({"etag": tag}), request.headers):
        return NotModifiedResponse(answer.headers)
    return answer
