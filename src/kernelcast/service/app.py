"""Makes the application: routes, errors, and what frames every request."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Match

from kernelcast.records.errors import KernelcastError
from kernelcast.service.backend import Backend
from kernelcast.service.dependencies import Documented, KnownParameters
from kernelcast.service.errors import ApiError, ErrorResponse, as_api_error
from kernelcast.service.middleware import STREAMS, Frame
from kernelcast.service.pages import include_pages
from kernelcast.service.pages.rendering import answer_error, wants_page
from kernelcast.service.routes import (
    answers,
    devices,
    estimates,
    health,
    jobs,
    models,
    observations,
)
from kernelcast.service.schemas.common import ErrorAnswer
from kernelcast.service.service import Service
from kernelcast.service.settings import API_PREFIX, ServiceSettings
from kernelcast.service.telemetry import Instance, Metrics, log
from kernelcast.service_state import StoreError

API_VERSION: Final = "1.13.1"
"""Grows with every change of the API: docs/reference/openapi.yaml."""
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request cannot be answered."},
    "422": {
        "model": ErrorAnswer,
        "description": "Something of the request cannot be used, or a parameter is unknown.",
    },
    "503": {"model": ErrorAnswer, "description": "Busy or without a database; see Retry-After."},
}
_METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")
_CODES: Final = {
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.BAD_REQUEST: "bad_request",
}


def create_app(
    settings: ServiceSettings | None = None, *, backend: Backend | None = None
) -> FastAPI:
    """Make the application."""
    settings = settings or ServiceSettings()
    metrics = Metrics(API_VERSION)
    app = FastAPI(
        title="kernelcast",
        version=API_VERSION,
        summary="How long OpenCL kernels take on each device of this host.",
        openapi_url=f"{API_PREFIX}/openapi.json",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        lifespan=lambda app: _run(app, settings, metrics, backend),
        responses=_ERRORS,
        dependencies=[Documented],
        separate_input_output_schemas=False,
    )
    app.state.instance = Instance.find()
    for part in (devices, estimates, answers, observations, models, jobs, health):
        prefix = "" if part is health else API_PREFIX
        app.include_router(part.router, prefix=prefix, dependencies=[KnownParameters])
    include_pages(app)
    _handle_errors(app, metrics)
    # Where tokens are needed a page of another site has none.
    hosts = _LOOPBACK_NAMES if settings.is_loopback and not settings.trusted_proxies else None

    # What fits one packet gains nothing.
    app.add_middleware(GZipMiddleware, minimum_size=1400, compresslevel=5)
    app.add_middleware(Frame, hosts=hosts, metrics=metrics)
    describe = app.openapi
    app.openapi = lambda: _name_problem_type(describe())  # type: ignore[method-assign]  # FastAPI's own way to change it
    return app


def _name_problem_type(described: dict[str, Any]) -> dict[str, Any]:
    """Say that errors are problem details: FastAPI knows one media type of a route's answers."""
    for path in described["paths"].values():
        for operation in path.values():
            for status in map(str, _ERRORS):
                content = operation["responses"][status]["content"]
                content[ErrorResponse.media_type] = content.pop(
                    "application/json", content.get(ErrorResponse.media_type)
                )
    return described


@contextlib.asynccontextmanager
async def _run(
    app: FastAPI, settings: ServiceSettings, metrics: Metrics, backend: Backend | None
) -> AsyncIterator[None]:
    service = await asyncio.to_thread(Service, settings, metrics, backend)
    app.state.service = service
    _stop_streams_on_signal(service)
    await service.start()
    log(
        "service starts",
        needs_tokens=settings.needs_tokens,
        allow_run=settings.allow_run,
        sandbox=service.protection.name,
    )
    if warning := settings.describe_gap(service.protection):
        log("strangers' kernels are not confined", level=30, said=warning)
    try:
        yield
    finally:
        await service.stop()
        log("service has stopped")


def _stop_streams_on_signal(service: Service) -> None:
    """End event streams as soon as the server is told to end: it waits for all answers."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if not callable(before):
            continue

        def stop(received: int, frame: Any, before: Any = before) -> None:  # noqa: ANN401
            loop.call_soon_threadsafe(service.stopping.set)
            before(received, frame)

        signal.signal(number, stop)


def _find_place(body: Any, error: dict[str, Any]) -> tuple[str, ...]:  # noqa: ANN401 - JSON
    """Find the place in what was sent: which of several types was tried is no part of it."""
    first, *rest = error["loc"]
    found = [str(first)]
    for part in rest:
        is_there = isinstance(body, dict) and part in body
        if is_there or (isinstance(body, list) and isinstance(part, int)):
            body = body[part]
        elif first == "body" and error["type"] != "missing":
            continue
        found.append(str(part))
    return tuple(found)


def _handle_errors(app: FastAPI, metrics: Metrics) -> None:
    """Give every error the one shape."""

    async def handle_ours(_: Request, error: Exception) -> Response:
        told = as_api_error(error)
        if isinstance(error, StoreError):
            metrics.database_failures.labels("requests").inc()
        if told.message != str(error):
            log("request failed", level=40, code=told.code, error=str(error))
        return ErrorResponse(told)

    async def handle_invalid(_: Request, error: Exception) -> Response:
        # What was sent is not repeated: it may be large, or secret.
        places: dict[tuple[str, ...], list[str]] = {}
        if isinstance(error, RequestValidationError):
            for one in error.errors()[:20]:
                said = one["msg"].removeprefix("Value error, ")  # pydantic's before ours
                places.setdefault(_find_place(error.body, one), []).append(said)
        told = {where: ", or: ".join(dict.fromkeys(said)) for where, said in places.items()}
        lines = [
            f"{'.'.join(where[1:])}: {message}".removeprefix(": ")
            for where, message in told.items()
        ]
        return ErrorResponse(ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request",
            "; ".join(lines[:3]) or "the request is invalid",
            detail=[{"where": where, "message": message} for where, message in told.items()],
        ))  # fmt: skip

    async def handle_http(request: Request, error: Exception) -> Response:
        if wants_page(request):
            return answer_error(request, error)
        status, message = HTTPStatus.BAD_REQUEST, str(error)
        headers = None
        if isinstance(error, HTTPException):
            status, message, headers = HTTPStatus(error.status_code), error.detail, error.headers
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            # List the methods that a path takes; a route knows only its own.
            found = [
                method
                for method in _METHODS
                if any(
                    route.matches({**request.scope, "method": method})[0] is Match.FULL
                    for route in app.routes
                )
            ]
            has_head = "GET" in found and not request.url.path.endswith(STREAMS)
            headers = {"allow": ", ".join([*found, "HEAD"] if has_head else found)}
        code = _CODES.get(status, "http_error")
        return ErrorResponse(ApiError(status, code, message), headers)

    app.add_exception_handler(KernelcastError, handle_ours)
    app.add_exception_handler(ApiError, handle_ours)
    app.add_exception_handler(RequestValidationError, handle_invalid)
    app.add_exception_handler(HTTPException, handle_http)
