"""Runs the service under uvicorn, in one process or several."""

import contextlib
import errno
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvicorn
from fastapi import FastAPI

from kernelcast.launches.data_folder import data_folder, protect_data_folder
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.private_files import OWNER_ONLY_UMASK, close_to_others
from kernelcast.service.app import create_app
from kernelcast.service.device_lock import host_name
from kernelcast.service.settings import CONVERTER, ServiceSettings
from kernelcast.service.telemetry import (
    INSTANCE_HEADER,
    forget_ended_processes,
    log,
    set_up_logs,
    share_counts,
)

_SETTINGS_VARIABLE: Final = "KERNELCAST_SERVICE_SETTINGS"


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
                "kernelcast.service.process:make_app",
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
                headers=[(INSTANCE_HEADER, settings.instance.id)],
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
