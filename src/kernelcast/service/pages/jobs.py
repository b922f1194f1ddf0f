"""The page *Jobs*: what is under way, what it has come to, and the forms that start something."""

import asyncio
import contextlib
import hashlib
import json
import secrets
from http import HTTPStatus
from threading import Lock
from typing import Any, get_origin

from cachetools import LRUCache, cached
from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse
from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse, RedirectResponse, Response

from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.service_state import JobKind, JobState
from kernelcast.service.dependencies import Admin, Call, Form, Reader, Route, SentForm
from kernelcast.service.errors import ApiError, as_api_error, refuse_unknown
from kernelcast.service.pages.rendering import fill, render, run_in_thread
from kernelcast.service.routes.jobs import (
    OPTIONS,
    add_job,
    check_stream,
    find_job,
    follow_job,
)
from kernelcast.service.routes.jobs import cancel_job as cancel
from kernelcast.service.service import Service

router = APIRouter(route_class=Route)


@router.get("/jobs")
async def show_jobs(page: Reader, new: str = "") -> Response:
    return await _render_list(page, new, Form({}))


@router.get("/jobs/rows")
async def show_rows(page: Reader) -> Response:
    return render(page.request, "jobs/rows.html", await _list_jobs(page.service))


@router.post("/jobs")
async def start_job(page: Admin, form: SentForm) -> Response:
    """Start a job; the same form sent twice starts one."""
    try:
        kind = form.first("kind")
        if kind not in OPTIONS:
            kinds = ", ".join(OPTIONS)
            raise InputError(f"kind: {kind[:40]!r} is no kind of job; choose of {kinds}")
        options = _read_options(OPTIONS[kind], form)
        # Somebody who goes back and changes a field wants another job.
        digest = hashlib.sha256(json.dumps([kind, options], sort_keys=True).encode()).hexdigest()
        key = f"page-{form.first('key')[:64]}-{digest[:16]}" if form.first("key") else None
        job = await add_job(JobKind(kind), options, page, key)
    except (KernelcastError, ApiError) as error:
        told = as_api_error(error)
        if told.status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return await _render_list(page, form.first("kind"), form, told)
    return RedirectResponse(f"/jobs/{job.id}", HTTPStatus.SEE_OTHER)


@router.get("/jobs/{job_id}")
async def show_job(job_id: str, page: Reader) -> Response:
    job = await find_job(job_id, page.service)
    return render(page.request, "jobs/job.html", {"job": job, "result": job.result})


@router.post("/jobs/{job_id}/cancel")
async def cancel_job(job_id: str, page: Admin) -> Response:
    await cancel(job_id, page)
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.post("/jobs/{job_id}/rerun")
async def rerun_job(job_id: str, page: Admin) -> Response:
    before = await find_job(job_id, page.service)
    job = await add_job(before.kind, dict(before.options), page)
    return RedirectResponse(f"/jobs/{job.id}", HTTPStatus.SEE_OTHER)


router.add_api_route(
    "/jobs/{job_id}/events", follow_job, dependencies=[Depends(check_stream)],
    response_class=EventSourceResponse,
)  # fmt: skip


@router.get("/jobs/{job_id}/result.json")
async def download_result(job_id: str, page: Reader) -> Response:
    job = await find_job(job_id, page.service)
    if job.result is None:
        refuse_unknown("result of the job", job_id)
    name = f"{job.kind.value}-{job.id}.json"
    return JSONResponse(
        job.result, headers={"content-disposition": f'attachment; filename="{name}"'}
    )


async def _list_jobs(service: Service) -> dict[str, Any]:
    jobs = await asyncio.to_thread(service.state.jobs.list)
    outcomes = {
        one.id: await asyncio.to_thread(_read_outcome, service, one.id, one.state) for one in jobs
    }
    return {"jobs": jobs, "outcomes": outcomes}


@cached(LRUCache(1000), key=lambda _, *job: job, lock=Lock())
def _read_outcome(service: Service, job_id: str, state: JobState) -> str:
    """Say what an ended job did; results may be large, so what is said of each is kept."""
    found = service.state.jobs.find(job_id) if state.is_final else None
    return "" if found is None else fill("jobs/macros.html", "outcome", found)


async def _render_list(
    page: Call, opened: str, form: Form, error: ApiError | None = None
) -> Response:
    from kernelcast.reports.accuracy import RIVALS, list_models

    service = page.service
    devices, _ = await service.devices.find()  # what needs none can be started all the same
    values = {
        **await _list_jobs(service),
        "devices": [one.id for one in devices],
        "opened": opened,
        "form": form,
        "error": "" if error is None else error.message,
        "key": secrets.token_hex(8),
        "models": await run_in_thread(list_models),
        "rivals": RIVALS,
    }
    status = HTTPStatus.OK if error is None else error.status
    return render(page.request, "jobs/list.html", values, status=int(status))


def _read_options(kind: type[BaseModel], form: Form) -> dict[str, Any]:
    """Read what somebody wants to be done: fields of a form are options of the kind of job."""
    options: dict[str, Any] = {}
    for field, described in kind.model_fields.items():
        name = described.alias or field
        value: object = form.first(name)
        if described.annotation is bool:  # a form that has the box says so, ticked or not
            value = name in form if f"{name}_is_there" in form else None
        elif get_origin(described.annotation) is list:  # boxes, or words with commas or blanks
            value = " ".join(form.list(name)).replace(",", " ").split()
        if value not in (None, "", []):
            options[name] = value
    if minutes := form.first("time_budget_minutes"):
        options["time_budget_seconds"] = minutes  # what is no number is told by whoever checks
        with contextlib.suppress(ValueError):
            options["time_budget_seconds"] = float(minutes) * 60.0
    try:
        asked = kind.model_validate(options, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = " ".join(map(str, first["loc"])).replace("_", " ")
        raise InputError(f"{where or 'kind'}: {first['msg']}") from error
    return asked.model_dump(mode="json", exclude_unset=True, by_alias=True)
