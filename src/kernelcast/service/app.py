"""Makes the application and runs it: routes, how it is, errors, what frames every request.

How long headers and bodies take to arrive is the business of the proxy: docs/how-to/deploy.
"""

import asyncio
import contextlib
import errno
import json
import multiprocessing
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelcast.launches.data_folder import data_folder, protect_data_folder
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.private_files import OWNER_ONLY_UMASK, close_to_others
from kernelcast.service.authentication import Caller
from kernelcast.service.backend import Backend
from kernelcast.service.dependencies import (
    SIGN_IN_PATH,
    Documented,
    KnownParameters,
    OurService,
    get_service,
    identify,
)
from kernelcast.service.device_lock import host_name
from kernelcast.service.errors import ApiError, ErrorResponse, as_api_error, refuse_text
from kernelcast.service.guard import is_plain_form, is_text
from kernelcast.service.pages import include_pages
from kernelcast.service.pages.rendering import OF_PROGRAMS, render_error, wants_page
from kernelcast.service.routes import devices, estimates, jobs
from kernelcast.service.schemas import ErrorAnswer, Open
from kernelcast.service.service import Service
from kernelcast.service.settings import API_PREFIX, API_VERSION, CONVERTER, ServiceSettings
from kernelcast.service.telemetry import (
    LOGGER,
    Metrics,
    forget_ended_processes,
    log,
    set_up_logs,
    share_counts,
)
from kernelcast.service_state import StoreError

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
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "body_too_large",
}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    # Of answers that are no pages.
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
STREAMS: Final = "/events"  # they would go on where nobody listens
_SETTINGS_VARIABLE: Final = "KERNELCAST_SERVICE_SETTINGS"
router = APIRouter(tags=["operation"])


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
    for part in (devices, estimates, jobs):
        app.include_router(part.router, prefix=API_PREFIX, dependencies=[KnownParameters])
    app.include_router(router, dependencies=[KnownParameters])
    include_pages(app)
    for kind in (KernelcastError, ApiError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer_error)
    # Where tokens are needed a page of another site has none.
    is_ours_alone = settings.is_loopback and not settings.trusted_proxies
    hosts = ("localhost", "127.0.0.1", "[::1]") if is_ours_alone else None
    # What fits one packet gains nothing.
    app.add_middleware(GZipMiddleware, minimum_size=1400, compresslevel=5)
    most = settings.limits.body_bytes
    app.add_middleware(Frame, hosts=hosts, metrics=metrics, body_bytes=most)
    describe = app.openapi

    def describe_errors() -> dict[str, Any]:
        """Say that errors are problem details: FastAPI knows one media type of all answers."""
        described = describe()
        for operation in (one for path in described["paths"].values() for one in path.values()):
            for status in map(str, _ERRORS):
                answer = operation["responses"][status]
                (described_as,) = answer["content"].values()
                answer["content"] = {ErrorResponse.media_type: described_as}
        return described

    app.openapi = describe_errors  # type: ignore[method-assign]  # FastAPI's own way to change it
    return app


@contextlib.asynccontextmanager
async def _run(
    app: FastAPI, settings: ServiceSettings, metrics: Metrics, backend: Backend | None
) -> AsyncIterator[None]:
    service = await asyncio.to_thread(Service, settings, metrics, backend)
    app.state.service = service
    # The server waits for all answers: streams end as soon as it is told to end itself.
    loop = asyncio.get_running_loop()
    is_main = threading.current_thread() is threading.main_thread()
    for number in (signal.SIGTERM, signal.SIGINT) if is_main else ():
        before = signal.getsignal(number)
        if callable(before):

            def stop(received: int, frame: Any, before: Any = before) -> None:  # noqa: ANN401
                loop.call_soon_threadsafe(service.stopping.set)
                before(received, frame)

            signal.signal(number, stop)
    await service.start()
    log(
        "service starts",
        needs_tokens=settings.needs_tokens,
        allow_run=settings.allow_run,
        sandbox=service.sandbox,
    )
    if service.gap:
        log("strangers' kernels are not confined", level=30, said=service.gap)
    try:
        yield
    finally:
        await service.stop()
        log("service has stopped")


class Health(Open):
    """The service answers."""

    status: str
    service: str = Field(description="Always `kernelcast`.")
    instance: str = Field(
        description="Drawn when the service starts; `X-Kernelcast-Instance` names it in answers."
    )
    version: str = Field(description="Of kernelcast.")
    api: str = Field(description="Version of this description.")
    started_at: str = Field(description="ISO 8601, UTC.")
    pid: int = Field(description="Of the process that was started, on the service's host.")
    refine_share: float = Field(
        description="Of the time, which may go into sampling again what was asked for; 0: none."
    )


class Readiness(Open):
    """The service can answer estimates."""

    status: str
    devices: int
    sandbox: Literal["bubblewrap", "none"]


@router.get("/health")
async def health(service: OurService) -> Health:
    """Tell that the process lives, and which service it is."""
    settings = service.settings
    share = settings.refine_share if settings.allow_run else 0.0
    named = asdict(settings.identity)
    return Health(status="ok", service="kernelcast", refine_share=share, **named)


@router.get("/ready")
async def readiness(service: OurService) -> Readiness:
    """Tell whether the database and the devices answer, and what confines submitted kernels."""
    await asyncio.to_thread(service.state.check)
    return Readiness(
        status="ready",
        devices=len(await service.devices.list()),
        sandbox=service.sandbox,
    )


@router.get(
    "/metrics",
    response_model=None,
    responses={200: {"description": "Prometheus text.", "content": {"text/plain": {}}}},
)
async def metrics(service: OurService, _: Annotated[Caller, Depends(identify)]) -> Response:
    """Give what the service has counted; any token will do where one is needed."""
    await service.answers.flush()
    with contextlib.suppress(KernelcastError):  # counts are wanted most when something is away
        counts = await asyncio.to_thread(service.state.jobs.count)
        for state, number in counts.items():
            service.metrics.jobs.labels(state).set(number)
    content, kind = service.metrics.write()
    return Response(content, headers={"content-type": kind})


async def answer_error(request: Request, error: Exception) -> Response:
    """Give every error the one shape, or make a page of it for people."""
    headers: Mapping[str, str] = {}
    if isinstance(error, RequestValidationError):
        told = _describe_invalid(error)
    elif isinstance(error, HTTPException):
        status, headers = HTTPStatus(error.status_code), error.headers or {}
        told = ApiError(status, _CODES.get(status, "http_error"), error.detail)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            # List the methods that a path takes; a route knows only its own.
            found = [
                method
                for method in _METHODS
                if any(
                    route.matches({**request.scope, "method": method})[0] is Match.FULL
                    for route in request.app.routes
                )
            ]
            has_head = "GET" in found and not request.url.path.endswith(STREAMS)
            headers = {"allow": ", ".join([*found, "HEAD"] if has_head else found)}
    else:
        told = as_api_error(error)
        if isinstance(error, StoreError):
            get_service(request).metrics.database_failures.labels("requests").inc()
        if told.message != str(error):
            log("request failed", level=40, code=told.code, error=str(error))
    answer = render_error(request, told) if wants_page(request) else ErrorResponse(told)
    answer.headers.update(headers)
    return answer


def _describe_invalid(error: RequestValidationError) -> ApiError:
    # What was sent is not repeated: it may be large, or secret.
    places: dict[tuple[str, ...], list[str]] = {}
    for one in error.errors()[:20]:
        # Find the place in what was sent: which of several types was tried is no part of it.
        body, (first, *rest) = error.body, one["loc"]
        where = [str(first)]
        for part in rest:
            is_there = isinstance(body, dict) and part in body
            if is_there or (isinstance(body, list) and isinstance(part, int)):
                body = body[part]
            elif first == "body" and one["type"] != "missing":
                continue
            where.append(str(part))
        said = one["msg"].removeprefix("Value error, ")  # pydantic's before ours
        places.setdefault(tuple(where), []).append(said)
    told = {where: ", or: ".join(dict.fromkeys(said)) for where, said in places.items()}
    lines = [
        f"{'.'.join(where[1:])}: {message}".removeprefix(": ") for where, message in told.items()
    ]
    return ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request",
        "; ".join(lines[:3]) or "the request is invalid",
        detail=[{"where": where, "message": message} for where, message in told.items()],
    )  # fmt: skip


@dataclass(eq=False)
class Frame:
    """Frames every request; the outermost layer of the service."""

    app: ASGIApp
    _: KW_ONLY
    hosts: tuple[str, ...] | None
    """Names that a request may call us, None means any: a page of another site cannot reach a
    service on loopback under a name of its own (DNS rebinding)."""
    metrics: Metrics
    body_bytes: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started_s = time.perf_counter()
        headers = Headers(scope=scope)
        told_id, told_bytes = headers.get("x-request-id", ""), headers.get("content-length", "0")
        request_id = told_id if _REQUEST_ID.fullmatch(told_id) else secrets.token_hex(8)
        has_body = told_bytes != "0" or "transfer-encoding" in headers
        state = scope.setdefault("state", {})
        state |= {"request_id": request_id, "has_body": has_body}
        # The form of a stranger holds a token and where to go.
        most = 4096 if scope["path"] == SIGN_IN_PATH else self.body_bytes
        size = int(told_bytes) if told_bytes.isdecimal() and int(told_bytes) > most else 0
        is_read, is_begun, status = not has_body, False, 500
        method = scope["method"]
        if method == "HEAD" and not scope["path"].endswith(STREAMS):
            scope = {**scope, "method": "GET"}  # by its own scope the server leaves the body out

        async def receive_limited() -> Message:
            nonlocal is_read, size
            if size <= most:
                message = await receive()
                if is_read:
                    return message
                if message["type"] != "http.request":
                    raise HTTPException(HTTPStatus.BAD_REQUEST, "the caller went away")
                size += len(message.get("body", b""))
                is_read = size <= most and not message.get("more_body", False)
            if size > most:
                told = f"the body is larger than {most} bytes; send less at once"
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
            return message

        async def send_framed(message: Message) -> None:
            nonlocal is_begun, status
            if message["type"] == "http.response.start":
                is_begun, status = True, message["status"]
                sent = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    sent.setdefault(name, value)
                sent["x-request-id"] = request_id
                if not is_read:  # nor is the rest of it
                    sent["connection"] = "close"
            await send(message)

        try:
            self._check(scope, headers)
            await self.app(scope, receive_limited, send_framed)
        except ApiError as error:
            await ErrorResponse(error)(scope, receive, send_framed)
        except Exception as error:  # whatever it is: the caller gets no traceback
            LOGGER.exception("request failed", extra={"fields": {"request_id": request_id}})
            if is_begun:
                raise
            told = ApiError(
                HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error",
                f"the service failed ({type(error).__name__}); please report it with the request "
                f"id {request_id}",
            )  # fmt: skip
            await ErrorResponse(told)(scope, receive, send_framed)
        finally:
            seconds = time.perf_counter() - started_s
            self.metrics.watch_request(method, _name_route(scope), status, seconds)
            log(
                "request",
                request_id=request_id,
                method=method,
                path=scope["path"],
                status=status,
                seconds=round(seconds, 6),
                client=(scope.get("client") or (None,))[0],
                caller=getattr(state.get("caller"), "name", None),
            )

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Refuse what a page of another site has sent, forms that no page has sent, and what is no
        text."""
        if not (is_text(scope["path"]) and is_plain_form(scope.get("query_string", b""))):
            refuse_text()
        host = headers.get("host", "")
        # The name without its port; brackets hold an IPv6 address.
        name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
        if self.hosts is not None and name not in self.hosts:
            names = ", ".join(sorted(self.hosts))
            raise ApiError(
                HTTPStatus.MISDIRECTED_REQUEST, "wrong_host",
                f"this service is not called {name!r}; use one of {names}",
            )  # fmt: skip
        origin = headers.get("origin")
        is_safe = scope["method"] in {"GET", "HEAD", "OPTIONS"}
        # Browsers name the origin of every form; what names none is no browser, and has the API.
        if is_safe or (origin is None and scope["path"].startswith(OF_PROGRAMS)):
            return
        if origin is None or origin.partition("://")[2] != host:
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                "wrong_origin",
                f"this was sent from {origin or 'no page of this service'}; programs use the API",
            )


def _name_route(scope: Scope) -> str:
    """Give the pattern of the route that has answered: its names and not what stood for them."""
    path: str = getattr(scope.get("route"), "path", None) or "other"
    if scope["path"].startswith(f"{API_PREFIX}/") and path.startswith("/"):
        # Routes of routers do not know where those were put.
        path = API_PREFIX + path.removeprefix(API_PREFIX)
    return path


def serve(settings: ServiceSettings, tell: Callable[[str], None] = lambda _: None) -> None:
    """Serve until a signal ends it; that is an orderly end, with exit status 0."""
    set_up_logs(settings.log_level)
    os.umask(OWNER_ONLY_UMASK)  # of everything that this process and its children write
    check_port(settings.host, settings.port)
    if settings.port:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        tell(f"http://{host}:{settings.port}/")
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn answers what is under way, and then raises the signal once more.
        signal.signal(number, lambda *_: sys.exit(0))
    # Tell of data that other users of this machine can reach, and that we may not close.
    found = []
    with contextlib.suppress(InputError):  # a user without a home has no such folder
        if protect_data_folder():
            found.append(data_folder())
    if settings.database is not None and "://" not in settings.database:
        database = Path(settings.database)
        found += [database] if close_to_others(database) else []
    for one in found:
        log("others can read this; `chmod go-rwx` closes it", level=30, path=str(one))
    os.environ[_SETTINGS_VARIABLE] = CONVERTER.dumps(settings)
    _notify_when_ready(settings.host, settings.port)
    try:
        # No two services of a host listen there.
        place = f"{host_name()}-{settings.host}-{settings.port or os.getpid()}"
        counts = data_folder() / "metrics" / place
        with share_counts(counts) if settings.workers > 1 else contextlib.nullcontext():
            uvicorn.run(
                "kernelcast.service.app:make_app",
                factory=True,
                host=settings.host,
                port=settings.port,
                workers=settings.workers,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=list(settings.trusted_proxies),
                limit_concurrency=settings.limits.connections,
                # Clients notice another instance at the same address.
                headers=[("x-kernelcast-instance", settings.identity.instance)],
                backlog=2048,
                timeout_graceful_shutdown=30,
                # A worker answers uvicorn's pings once it has imported all: 0.9 s on an idle
                # machine. By default it is killed after 5 s, and on a machine that needs longer so
                # is each that takes its place.
                timeout_worker_healthcheck=120,
            )
    except SystemExit as end:
        if not end.code:
            raise
        msg = f"the service at {settings.host}:{settings.port} cannot start; its log says why"
        raise KernelcastError(msg) from end


def _notify_when_ready(host: str, port: int) -> None:
    """Tell systemd (``Type=notify``), where it has started this, that requests are answered."""
    address = os.environ.pop("NOTIFY_SOCKET", "")  # children have nothing to tell
    if not address:
        return

    def wait() -> None:
        while not _name_service(host, port):
            time.sleep(0.1)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            one.sendto(b"READY=1", address.replace("@", "\0", 1))

    threading.Thread(target=wait, name="ready", daemon=True).start()


def check_port(host: str, port: int) -> None:
    """Check that a service could listen, before it opens anything."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        msg = f"host {host!r}: {error.strerror}; give an address of this machine"
        raise InputError(msg) from error
    family, kind, _, _, address = found[0]
    try:
        with socket.socket(family, kind) as one:
            # As the server does: what a service has left behind a minute ago hinders nobody.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(address)
            one.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            holder = _name_service(host, port) or "another program"
            msg = f"{host}:{port} is in use by {holder}; end that, or choose another --port"
            raise KernelcastError(msg) from error
        msg = f"{host}:{port}: {error.strerror}; choose another --host or --port"
        raise KernelcastError(msg) from error


def _name_service(host: str, port: int) -> str:
    """Name the kernelcast service at an address; empty where something else listens."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    url = f"http://{f'[{name}]' if ':' in name else name}:{port}/health"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2.0) as answer:
            told = json.loads(answer.read(4096))
        names = ("version", "instance", "started_at", "pid")
        version, instance, started_at, pid = (str(told[name])[:100] for name in names)
    except Exception:  # noqa: BLE001 - whatever listens there may answer anything
        return ""
    text = f"{version}, instance {instance}, running since {started_at} as process {pid}"
    is_ours = told.get("service") == "kernelcast" and text.isprintable()
    return f"kernelcast {text}" if is_ours else ""


def make_app() -> FastAPI:
    settings = CONVERTER.loads(os.environ[_SETTINGS_VARIABLE], ServiceSettings)
    set_up_logs(settings.log_level)
    # Libraries write into the data folder, not into a home or where all users write.
    with contextlib.suppress(InputError):  # a user without a home has no such folder
        folder = data_folder()
        os.environ.setdefault("SQLITE_TMPDIR", str(folder))
        os.environ.setdefault("MPLCONFIGDIR", str(folder / "matplotlib"))
    forget_ended_processes()
    if (parent := multiprocessing.parent_process()) is not None:

        def end_with_parent() -> None:
            """End in order once the process that has started this one is gone, as it has the
            port."""
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=end_with_parent, name="parent", daemon=True).start()
    return create_app(settings)
