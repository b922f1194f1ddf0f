"""A service over fake devices whose pages can be looked at: one that holds much, or a new one."""

import json
import secrets
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import httpx

from kernelcast.collection.data_rows import import_file
from kernelcast.launches.data_store import open_data_store
from kernelcast.models.validation.comparison import comparison_to_json
from kernelcast.models.validation.report import report_to_json
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.service import ServiceSettings, create_app
from kernelcast.service_state import AnswerRecord, ServiceState, make_id, open_state
from kernelcast.training.comparing import compare_table
from kernelcast.training.settings import ALL_ROWS, ValidationSettings
from kernelcast.training.training import validate_models
from support.observations import make_observation
from support.running_service import find_port
from support.service_backend import FIRST, PROBLEM, FakeBackend
from support.synthetic_rows import make_rows

SHOWN_PAGES: Final = (
    "/", "/lab", "/devices", f"/devices/{FIRST}", "/devices/compared?machine=a100&machine=v100",
    "/kernels", "/kernels/devices", "/accuracy", "/accuracy/compare", "/accuracy/models", "/jobs",
    "/audit", "/docs",
)  # fmt: skip
"""Addresses of pages that are there whatever the service holds."""
KERNEL_PAGE: Final = "/kernels/of?name=suite/application0/kernel0"
"""The page of a kernel of one that holds much."""
_PATIENCE_S: Final = 60.0
Plain = Mapping[str, Any]


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
                fill_store(database)
                make_answers(state)
                add_job(state, JobKind.COMPARE, result=make_comparison())
                add_job(state, JobKind.VALIDATE, result=make_validation())
                options = {"devices": [FIRST], "effort": "quick"}
                error = {"code": "device_lost", "message": "the device was lost"}
                add_job(state, JobKind.CALIBRATE, JobState.FAILED, options=options, error=error)
                shipped = Path(str(files("kernelcast")))
                (folder / "machines").mkdir(parents=True, exist_ok=True)
                shutil.copy(
                    shipped / "data/machines/a100.yaml", folder / "machines" / f"{FIRST}.yaml"
                )
                with open_data_store(database) as store:
                    for one in measured:
                        import_file(store, shipped / f"training_data/measured/{one}.parquet")
                httpx.post(f"{address}/v1/estimates", json={"problem": PROBLEM}, timeout=60)
            yield address, state


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


def fill_store(database: str) -> None:
    """Store observations of three devices and seven kernels, with samples."""
    with open_data_store(database) as store:
        store.add_many([make_observation(number) for number in range(30)])


def make_answers(state: ServiceState) -> None:
    """Store answers of three devices and twelve kernels, with what was observed of them."""
    now = datetime.now(UTC)
    answers = [
        AnswerRecord(
            id=make_id(now - timedelta(hours=5 * number)), launch_key=f"launch-{number}",
            problem_digest=f"{number // 3:064x}", problem=f"problem {number // 3}",
            kernel=f"suite/application{number % 3}/kernel{number % 12}",
            device_id=f"device-{number % 3}", global_size=(1024 * (1 + number % 5), 16),
            local_size=(64, 1), tier=("linear", "history", "hybrid")[number % 3 - 1],
            seconds=1e-3 * (1 + number), low=0.85e-3 * (1 + number), high=1.2e-3 * (1 + number),
            coverage=0.9, slowdown=1.0, cost_s=0.02, caller="local",
        )
        for number in range(60)
    ]  # fmt: skip
    observed = [
        (one.launch_key, one.seconds * (1 + 0.04 * (number % 9 - 4)), one.at)
        for number, one in enumerate(answers)
    ]
    state.answers.write(answers, {}, observed)


@cache
def make_validation() -> Plain:
    """Make the result of a validation of the linear model, the hybrid and an ablation."""
    settings = ValidationSettings(models=("analytic", "linear", "ridge"), rows=ALL_ROWS, jobs=1)
    table = make_rows(kernels=6, sizes=3)
    text = report_to_json(validate_models(table, settings))
    text = text.replace('"ridge"', '"hybrid"').replace('"analytic"', '"hybrid_without_analytic"')
    return dict(json.loads(text))


@cache
def make_comparison() -> Plain:
    """Make the result of a comparison, with explanations of the worst kernels."""
    settings = ValidationSettings(rows=ALL_ROWS, jobs=1)
    table = make_rows(kernels=6, sizes=3)
    pair = compare_table(table, ("linear", "ridge"), settings).pair
    assert pair is not None
    return dict(json.loads(comparison_to_json(pair)))


def add_job(
    state: ServiceState,
    kind: JobKind,
    job_state: JobState = JobState.DONE,
    *,
    options: Plain | None = None,
    result: object = None,
    error: Plain | None = None,
    progress: Plain | None = None,
) -> str:
    """Add a job that has come so far; give its id."""
    now = datetime.now(UTC)
    begun = now - timedelta(minutes=5)
    job = JobRecord(
        id=secrets.token_hex(8),
        kind=kind,
        options=options or {},
        state=job_state,
        created_at=begun,
        created_by="local",
        started_at=None if job_state is JobState.QUEUED else begun,
        ended_at=now if job_state.is_final else None,
        # Of another host that is at it: nobody here takes it away.
        owner="elsewhere" if job_state is JobState.RUNNING else "",
        heartbeat_at=now + timedelta(hours=1),
        progress=progress or {},
        result=result,
        error=error,
    )
    return state.jobs.add(job)[0].id
