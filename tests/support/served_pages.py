"""A service over fake devices whose pages can be looked at: one that holds much, or a new one."""

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

import httpx

from kernelcast.collection.data_rows import import_file
from kernelcast.launches.data_store import open_data_store
from kernelcast.records.service_state import JobKind, JobState
from kernelcast.service import ServiceSettings, create_app
from kernelcast.service_state import ServiceState, open_state
from support.page_examples import (
    add_job,
    fill_store,
    make_answers,
    make_comparison,
    make_validation,
)
from support.running_service import find_port
from support.service_backend import FIRST, PROBLEM, FakeBackend

SHOWN_PAGES: Final = (
    "/", "/lab", "/devices", f"/devices/{FIRST}", "/devices/compared?machine=a100&machine=v100",
    "/kernels", "/kernels/devices", "/accuracy", "/accuracy/compare", "/accuracy/models", "/jobs",
    "/audit", "/docs",
)  # fmt: skip
"""Addresses of pages that are there whatever the service holds."""
KERNEL_PAGE: Final = "/kernels/of?name=suite/application0/kernel0"
"""The page of a kernel of one that holds much."""
_PATIENCE_S: Final = 60.0


@contextmanager
def serve_pages(
    folder: Path, *, is_full: bool, measured: Sequence[str] = ()
) -> Iterator[tuple[str, ServiceState]]:
    """Serve a data folder; give the address, and the state behind it."""
    import pytest

    database = str(folder / "rows.sqlite")
    settings = ServiceSettings(
        database=database, registry=str(folder / "models"), runs_jobs=False, allow_run=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELCAST_DATA", str(folder))
        with _run(settings) as address, open_state(database) as state:
            if is_full:
                _fill(folder, database, state)
                _add_measured(database, measured)
                httpx.post(f"{address}/v1/estimates", json={"problem": PROBLEM}, timeout=60)
            yield address, state


def _fill(folder: Path, database: str, state: ServiceState) -> None:
    fill_store(database)
    make_answers(state)
    add_job(state, JobKind.COMPARE, result=make_comparison())
    add_job(state, JobKind.VALIDATE, result=make_validation())
    options = {"devices": [FIRST], "effort": "quick"}
    add_job(state, JobKind.CALIBRATE, JobState.FAILED, options=options,
            error={"code": "device_lost", "message": "the device was lost"})  # fmt: skip
    shipped = Path(str(files("kernelcast"))) / "data" / "machines" / "a100.yaml"
    (folder / "machines").mkdir(parents=True, exist_ok=True)
    shutil.copy(shipped, folder / "machines" / f"{FIRST}.yaml")


def _add_measured(database: str, devices: Sequence[str]) -> None:
    shipped = Path(str(files("kernelcast"))) / "training_data" / "measured"
    with open_data_store(database) as store:
        for one in devices:
            import_file(store, shipped / f"{one}.parquet")


@contextmanager
def _run(settings: ServiceSettings) -> Iterator[str]:
    import uvicorn

    app = create_app(settings, backend=FakeBackend(str(settings.database)))
    port = find_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    ends_s = time.monotonic() + _PATIENCE_S
    while not server.started and time.monotonic() < ends_s:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(_PATIENCE_S)
