"""The page *Jobs*: what is under way, what it has come to, and the forms that start something."""

import asyncio
import contextlib
import hashlib
import json
import secrets
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import Any, Final, get_origin

from cachetools import LRUCache, cached
from fastapi import APIRouter, Request
from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse, RedirectResponse, Response

from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.reports.presenter import make_html
from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import ApiError, kind_of, message_of, refuse_unknown
from kernelcast.service.pages.dependencies import Form, PageAdmin, PageReader, SentForm
from kernelcast.service.pages.job_views import (
    TITLES,
    list_log,
    list_tables,
    make_view,
    tell_outcome,
)
from kernelcast.service.pages.rendering import PageRoute, render, run_in_thread
from kernelcast.service.routes.jobs import add_job, end_job, find_job, stream_job
from kernelcast.service.schemas.jobs import (
    CalibrateOptions,
    CollectOptions,
    CompareOptions,
    TrainOptions,
    ValidateOptions,
)
from kernelcast.service.service import Service

router = APIRouter(route_class=PageRoute)
_STARTED_HERE: Final = (JobKind.COLLECT, JobKind.CALIBRATE, JobKind.TRAIN, JobKind.VALIDATE)


@router.get("/jobs")
async def show_jobs(
    request: Request, service: OurService, _: PageReader, new: str = ""
) -> Response:
    """Show what is under way and was done, and the forms that start something."""
    return await _render_list(request, service, opened=new, form=Form({}))


@router.get("/jobs/rows")
async def show_rows(request: Request, service: OurService, _: PageReader) -> Response:
    """Show the list alone, for scripts that keep it fresh."""
    return render(request, "jobs/rows.html", {"jobs": await _list_jobs(service)})


@router.post("/jobs")
async def start_job(
    request: Request, service: OurService, caller: PageAdmin, form: SentForm
) -> Response:
    """Start a job; the same form sent twice starts one."""
    try:
        kind, options = read_job(form)
        # Somebody who goes back and changes a field wants another job.
        digest = hashlib.sha256(json.dumps([kind, options], sort_keys=True).encode()).hexdigest()
        key = f"page-{form.get('key')[:64]}-{digest[:16]}" if form.get("key") else None
        job = await add_job(kind, options, request, service, caller, key)
    except (KernelcastError, ApiError) as error:
        if kind_of(error).status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return await _render_list(request, service, opened=form.get("kind"), form=form, error=error)
    return RedirectResponse(f"/jobs/{job.id}", HTTPStatus.SEE_OTHER)


@router.get("/jobs/{job_id}")
async def show_job(job_id: str, request: Request, service: OurService, _: PageReader) -> Response:
    """Show where a job stands, what it has been at and what it has come to."""
    job = await find_job(job_id, service)
    view = {**make_view(job), "outcome": tell_outcome(job)}
    result = await run_in_thread(make_html, *list_tables(job))
    values = {"job": view, "log": list_log(job), "result": result}
    return render(request, "jobs/job.html", values)


@router.post("/jobs/{job_id}/cancel")
async def cancel_job(
    job_id: str, request: Request, service: OurService, caller: PageAdmin
) -> Response:
    """Have a job end; what it has measured stays."""
    await end_job(job_id, request, service, caller)
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.post("/jobs/{job_id}/rerun")
async def rerun_job(
    job_id: str, request: Request, service: OurService, caller: PageAdmin
) -> Response:
    """Start a job as it was started before."""
    before = await find_job(job_id, service)
    job = await add_job(before.kind, dict(before.options), request, service, caller, None)
    return RedirectResponse(f"/jobs/{job.id}", HTTPStatus.SEE_OTHER)


@router.get("/jobs/{job_id}/events")
async def follow_job(job_id: str, service: OurService, _: PageReader) -> Response:
    """Follow a job until it ends; as the API does, for who has signed in."""
    return await stream_job(job_id, service)


@router.get("/jobs/{job_id}/result.json")
async def download_result(job_id: str, service: OurService, _: PageReader) -> Response:
    """Give what a job has come to as a file."""
    job = await find_job(job_id, service)
    if job.result is None:
        refuse_unknown("result of the job", job_id)
    name = f"{job.kind.value}-{job.id}.json"
    return JSONResponse(
        job.result, headers={"content-disposition": f'attachment; filename="{name}"'}
    )


async def _list_jobs(service: Service) -> list[Any]:
    look = partial(service.state.jobs.list, most=100, with_results=False)
    jobs = await asyncio.to_thread(look)
    return [
        {
            **make_view(one),
            "outcome": await asyncio.to_thread(_read_outcome, service, one)
            if one.state is JobState.DONE
            else tell_outcome(one),
        }
        for one in jobs
    ]


@cached(LRUCache(1000), key=lambda _, job: job.id, lock=Lock())
def _read_outcome(service: Service, job: JobRecord) -> str:
    """Say what a finished job did; results may be large, so what is said of each is kept."""
    found = service.state.jobs.find(job.id)
    return "" if found is None else tell_outcome(found)


async def _render_list(
    request: Request,
    service: Service,
    *,
    opened: str,
    form: Form,
    error: Exception | None = None,
) -> Response:
    devices, _ = await service.devices.find()  # what needs none can be started all the same
    values = {
        "jobs": await _list_jobs(service),
        "devices": [one.id for one in devices],
        "kinds": {one.value: TITLES[one] for one in _STARTED_HERE},
        "opened": opened,
        "form": form,
        "error": "" if error is None else message_of(error),
        "key": secrets.token_hex(8),
        "runs_jobs": service.settings.runs_jobs,
        **await run_in_thread(_list_models),
    }
    status = HTTPStatus.OK if error is None else kind_of(error).status
    return render(request, "jobs/list.html", values, status=int(status))


def _list_models() -> dict[str, Any]:
    from kernelcast.reports.accuracy.judging import RIVALS, list_models

    return {"models": list_models(), "rivals": RIVALS}


_OPTIONS: Final[Mapping[str, type[BaseModel]]] = {
    JobKind.COLLECT: CollectOptions, JobKind.CALIBRATE: CalibrateOptions,
    JobKind.TRAIN: TrainOptions, JobKind.VALIDATE: ValidateOptions,
    JobKind.COMPARE: CompareOptions,
}  # fmt: skip


def read_job(form: Form) -> tuple[JobKind, dict[str, Any]]:
    """Read what somebody wants to be done: fields of a form are options of the kind of job."""
    kind = form.get("kind")
    if kind not in _OPTIONS:
        msg = f"kind: {kind[:40]!r} is no kind of job; choose of {', '.join(_OPTIONS)}"
        raise InputError(msg)
    options: dict[str, Any] = {}
    for field, described in _OPTIONS[kind].model_fields.items():
        name = described.alias or field
        value: object = form.get(name)
        if described.annotation is bool:  # a form that has the box says so, ticked or not
            value = name in form if f"{name}_is_there" in form else None
        elif get_origin(described.annotation) is list:  # boxes, or words with commas or blanks
            value = " ".join(form.list(name)).replace(",", " ").split()
        if value not in (None, "", []):
            options[name] = value
    if minutes := form.get("time_budget_minutes"):
        options["time_budget_seconds"] = minutes  # what is no number is told by whoever checks
        with contextlib.suppress(ValueError):
            options["time_budget_seconds"] = float(minutes) * 60.0
    try:
        asked = _OPTIONS[kind].model_validate(options, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = " ".join(map(str, first["loc"])).replace("_", " ")
        msg = f"{where or 'kind'}: {first['msg']}"
        raise InputError(msg) from error
    return JobKind(kind), asked.model_dump(mode="json", exclude_unset=True, by_alias=True)
