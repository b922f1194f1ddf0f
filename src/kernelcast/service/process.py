"""Runs the service under uvicorn, in one process or several."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI

from kernelcast.launches.data_folder import data_folder, protect_data_folder
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.private_files import OWNER_ONLY_UMASK, close_to_others
from kernelcast.service.app import create_app
from kernelcast.service.instance import INSTANCE_HEADER, Instance
from kernelcast.service.logs import log, set_up_logs
from kernelcast.service.metrics_folder import hold_shared_folder, shared_folder
from kernelcast.service.ports import check_port
from kernelcast.service.protocol import PatientProtocol
from kernelcast.service.settings import ServiceSettings, load_settings

_SETTINGS_VARIABLE: Final = "KERNELCAST_SERVICE_SETTINGS"
_SQLITE_VARIABLE: Final = "SQLITE_TMPDIR"
_MATPLOTLIB_VARIABLE: Final = "MPLCONFIGDIR"
_GRACE_S: Final = 30
_BACKLOG: Final = 2048
_SLOWEST_IMPORT_S: Final = 120
"""A worker answers uvicorn's pings once it has imported all: 0.9 s on an idle machine. By default
it is killed after 5 s, and on a machine that needs longer so is each that takes its place."""


def serve(settings: ServiceSettings, tell: Callable[[str], None] = lambda _: None) -> None:
    """Serve until a signal ends it; that is an orderly end, with exit status 0.

    `tell` is told the address before anything is answered; port 0 has none yet.
    """
    set_up_logs()
    os.umask(OWNER_ONLY_UMASK)  # of everything that this process and its children write
    check_port(settings.host, settings.port)
    if settings.port:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        tell(f"http://{host}:{settings.port}/")
    instance = Instance.make()
    instance.announce()
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn answers what is under way, and then raises the signal once more.
        signal.signal(number, _end)
    _warn_of_readers(settings)
    os.environ[_SETTINGS_VARIABLE] = settings.dump()
    try:
        with shared_folder() if settings.workers > 1 else contextlib.nullcontext():
            uvicorn.run(
                "kernelcast.service.process:make_app",
                factory=True,
                # uvicorn takes any callable that makes a protocol; other processes get it pickled.
                http=cast(Any, partial(PatientProtocol, limits=settings.limits)),
                host=settings.host,
                port=settings.port,
                workers=settings.workers,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                headers=[(INSTANCE_HEADER, instance.id)],
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_GRACE_S,
                timeout_worker_healthcheck=_SLOWEST_IMPORT_S,
            )
    except SystemExit as end:
        if not end.code:
            raise
        msg = f"the service at {settings.host}:{settings.port} cannot start; its log says why"
        raise KernelcastError(msg) from end


def _warn_of_readers(settings: ServiceSettings) -> None:
    """Tell of data that other users of this machine can reach, and that we may not close."""
    found = []
    with contextlib.suppress(InputError):  # a user without a home has no such folder
        if protect_data_folder():
            found.append(data_folder())
    if settings.database is not None and "://" not in settings.database:
        database = Path(settings.database)
        found += [database] if close_to_others(database) else []
    for one in found:
        log("others can read this; `chmod go-rwx` closes it", level=30, path=str(one))


def _end(number: int, frame: FrameType | None) -> None:
    del number, frame
    sys.exit(0)


def keep_files_together() -> None:
    """Have libraries write into the data folder, not into a home or where all users write.

    SQLite has temporary files for large sorts, matplotlib remembers the fonts it has found.
    """
    with contextlib.suppress(InputError):  # a user without a home has no such folder
        folder = data_folder()
        os.environ.setdefault(_SQLITE_VARIABLE, str(folder))
        os.environ.setdefault(_MATPLOTLIB_VARIABLE, str(folder / "matplotlib"))


def _end_with_parent() -> None:
    """End in order once the process that has started this one is gone; else it keeps the port."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def make_app() -> FastAPI:
    """Make the application of one process."""
    set_up_logs()
    keep_files_together()
    hold_shared_folder()
    _end_with_parent()
    return create_app(load_settings(os.environ[_SETTINGS_VARIABLE]))
