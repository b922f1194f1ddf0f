"""What pages of results show in tests: observations, a validation, a comparison; all made up."""

import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from kernelcast.launches.data_store import open_data_store
from kernelcast.models.validation.comparison import comparison_to_json
from kernelcast.models.validation.report import report_to_json
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.service_state import AnswerRecord, ServiceState, make_id
from kernelcast.training.comparing import compare_table
from kernelcast.training.settings import ALL_ROWS, ValidationSettings
from kernelcast.training.training import validate_models
from support.observations import make_observation
from support.synthetic_rows import make_rows

Plain = Mapping[str, Any]
_KERNELS = 6
_SIZES = 3


def fill_store(database: str, *, launches: int = 30) -> None:
    """Store observations of three devices and seven kernels, with samples."""
    with open_data_store(database) as store:
        store.add_many([make_observation(number) for number in range(launches)])


def make_answers(state: ServiceState, *, count: int = 60) -> None:
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
        for number in range(count)
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
    table = make_rows(kernels=_KERNELS, sizes=_SIZES)
    text = report_to_json(validate_models(table, settings))
    text = text.replace('"ridge"', '"hybrid"').replace('"analytic"', '"hybrid_without_analytic"')
    found: Plain = json.loads(text)
    return found


@cache
def make_comparison() -> Plain:
    """Make the result of a comparison, with explanations of the worst kernels."""
    settings = ValidationSettings(rows=ALL_ROWS, jobs=1)
    table = make_rows(kernels=_KERNELS, sizes=_SIZES)
    found: Plain = json.loads(
        comparison_to_json(compare_table(table, ("linear", "ridge"), settings).pair)  # type: ignore[arg-type]  # it is there
    )
    return found


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
