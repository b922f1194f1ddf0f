"""The Lab: a kernel that is typed in, and what can be said of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import JSONResponse, Response

from kernelcast.lab.source import READ_SOURCE, SourceReport, SourceTask
from kernelcast.launches.machines import list_machines
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem
from kernelcast.records.service_state import Scope
from kernelcast.service.authentication import Caller
from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import message_of, refuse_unknown
from kernelcast.service.pages.dependencies import Name, PageReader, SentForm
from kernelcast.service.pages.evidence import (
    find_end,
    find_field_errors,
    list_limiters,
    list_volumes,
    read_answer,
)
from kernelcast.service.pages.lab.asking import (
    Times,
    ask_launch,
    choose_machine,
    compare_local_sizes,
    list_asked,
    picture_roofline,
    vary_size,
)
from kernelcast.service.pages.lab.fields import (
    FieldError,
    LabFields,
    fields_of_content,
    list_examples,
    propose_arguments,
    write_curl,
    write_python,
)
from kernelcast.service.pages.pictures import embed
from kernelcast.service.pages.rendering import PageRoute, is_fragment, render, run_in_thread
from kernelcast.service.routes.devices import read_named
from kernelcast.service.service import Service

router = APIRouter(route_class=PageRoute)
Find = Callable[[LabFields, Service, Caller], Awaitable[Times]]


@dataclass(slots=True, kw_only=True)
class LabAnswer:
    """What is shown below the fields."""

    template: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    status: int = HTTPStatus.OK


def refuse_field(error: FieldError) -> LabAnswer:
    """Give the answer that says what is wrong with a field."""
    return LabAnswer(
        template="lab/nothing.html",
        errors={error.name: error.message},
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
    )


async def show_lab(
    request: Request, service: Service, caller: Caller, fields: LabFields, answer: LabAnswer
) -> Response:
    """Show the whole page, or for scripts the answer with its errors alone."""
    shared = {"errors": answer.errors, **answer.values}
    if is_fragment(request) and answer.template:
        return render(request, answer.template, shared, status=answer.status)
    devices, failure = await service.devices.find()
    values = {
        **shared,
        "fields": fields,
        "examples": list_examples(),
        "devices": devices,
        "device_failure": failure,
        "machines": await run_in_thread(list_machines),
        "may_run": Scope.RUN in caller.scopes,
        "allows_run": service.settings.allow_run,
        "result": answer.template,
    }
    return render(request, "lab/kernel.html", values, status=answer.status)


@router.get("/lab")
async def show_page(
    request: Request,
    service: OurService,
    caller: PageReader,
    example: Name = "",
    problem: Name = "",
    device: Annotated[list[str] | None, Query(max_length=50)] = None,
) -> Response:
    """Show the Lab with an example, or a problem that was sent before, in its fields."""
    if problem:
        fields = fields_of_content(await service.problems.read(problem), device or ())
    else:
        examples = list_examples()
        fields = examples.get(example) or next(iter(examples.values()))
    return await show_lab(request, service, caller, fields, LabAnswer())


class Question:
    """What the fields ask, and of whom."""

    def __init__(
        self, request: Request, form: SentForm, service: OurService, caller: PageReader
    ) -> None:
        self.request = request
        self.fields = LabFields.read(form)
        self.service = service
        self.caller = caller

    async def show(self, answer: LabAnswer, fields: LabFields | None = None) -> Response:
        """Show an answer, below other fields where they are given."""
        shown = fields or self.fields
        return await show_lab(self.request, self.service, self.caller, shown, answer)


Asked = Annotated[Question, Depends()]


@router.post("/lab/arguments")
async def fill_in(asked: Asked) -> Response:
    """Write lines of arguments to begin with, made of what the kernel takes."""
    try:
        fields = asked.fields
        fields.check_code(asked.service)
        report = await _read_source(fields, None, asked.service)
        names = [one.name for one in report.kernels]
        wanted = fields.kernel or (names[0] if names else "")
        kernel = next((one for one in report.kernels if one.name == wanted), None)
        if kernel is None:
            told = ", ".join(names) or "none"
            raise FieldError("kernel", f"{wanted!r} is not in the source; its kernels are: {told}")
        items = fields.count_work_items()
        changes: dict[str, Any] = {"kernel": kernel.name, "args": propose_arguments(kernel, items)}
        if not fields.global_size:
            changes["global_size"] = str(items)
    except FieldError as error:
        return await asked.show(refuse_field(error))
    if is_fragment(asked.request):
        return JSONResponse(changes)
    return await asked.show(LabAnswer(), replace(asked.fields, **changes))


async def _estimate(asked: Question) -> LabAnswer:
    fields, service = asked.fields, asked.service
    digest, problem = await fields.make_problem(service)
    wanted = await list_asked(fields, digest, service, asked.caller)
    outcomes = await asyncio.gather(*(service.estimating.answer(one) for one in wanted))
    answers = [read_answer(one) for one in outcomes]
    is_good = any(one["error"] is None for one in answers)
    errors = {} if is_good else find_field_errors(answers)
    if "code" in errors:  # reading it may find the lines, too
        try:
            await _read_source(fields, problem, service)
        except FieldError as error:
            if error.name == "code":
                raise
    return LabAnswer(
        # What stands at a field does not stand here again.
        template="lab/nothing.html" if errors else "lab/estimate.html",
        values={
            "answers": answers,
            "longest_s": max(map(find_end, answers), default=0.0),
            "allows_run": service.settings.allow_run,
            "share": _share(asked, digest),
        },
        errors=errors,
        status=HTTPStatus.OK if is_good else HTTPStatus.UNPROCESSABLE_ENTITY,
    )


def _share(asked: Question, digest: str) -> dict[str, str]:
    """Give the address of the question, and programs that ask it."""
    fields = asked.fields
    base = str(asked.request.base_url).rstrip("/")
    options = {"devices": list(fields.devices)}
    problem = fields.to_content()
    query = urlencode({"problem": digest, "device": fields.devices}, doseq=True)
    return {
        "address": f"/lab?{query}",
        "curl": write_curl(base, {"problem": problem, **options}),
        "python": write_python(base, problem, options),
    }


async def _annotate(asked: Question) -> LabAnswer:
    fields, service = asked.fields, asked.service
    problem = (await fields.make_problem(service))[1]
    report = await _read_source(fields, problem, service)
    return LabAnswer(template="lab/source.html", values={"report": report})


async def _time(asked: Question, find: Find) -> LabAnswer:
    found = await find(asked.fields, asked.service, asked.caller)
    known = [one for one in found.times if one.seconds is not None]
    needed = 1 if found.parameter else 2
    picture = await embed(found.picture()) if len(known) >= needed else None
    values = {
        "found": found,
        "ranked": sorted(known, key=lambda one: one.seconds or 0.0),
        "refused": [one for one in found.times if one.seconds is None],
        "picture": picture,
    }
    return LabAnswer(template="lab/times.html", values=values)


async def _model(asked: Question) -> LabAnswer:
    fields, service = asked.fields, asked.service
    machine = choose_machine(fields.machine, await run_in_thread(list_machines))
    problem = (await fields.make_problem(service))[1]
    found = await ask_launch(problem, machine, service)
    values: dict[str, Any] = {"machine_name": machine, "found": found, "kernel": problem.name}
    if found.estimate is not None:
        values["limiters"] = list_limiters(found.estimate.limiters)
        values["volumes"] = list_volumes(found.estimate)
        described = await run_in_thread(read_named, machine)
        roofline = picture_roofline(problem.name, found.estimate, described)
        values["roofline"] = None if roofline is None else await embed(roofline)
    return LabAnswer(template="lab/model.html", values=values)


_QUESTIONS: Final[Mapping[str, Callable[[Question], Awaitable[LabAnswer]]]] = {
    "estimate": _estimate,
    "source": _annotate,
    "model": _model,
    "local-sizes": partial(_time, find=compare_local_sizes),
    "sizes": partial(_time, find=vary_size),
}


@router.post("/lab/{question}")
async def answer_question(question: str, asked: Asked) -> Response:
    """Answer what the fields ask: an estimate, counts, the model's limiters, times over sizes."""
    if question not in _QUESTIONS:
        refuse_unknown("question", question)
    try:
        return await asked.show(await _QUESTIONS[question](asked))
    except FieldError as error:
        return await asked.show(refuse_field(error))


async def _read_source(
    fields: LabFields, problem: Problem | None, service: Service
) -> SourceReport:
    """Read the source in a process of its own; errors of it go beside the field."""
    task = SourceTask(source=fields.code, build_options=tuple(fields.options), problem=problem)
    try:
        report = await service.ask(READ_SOURCE, task, "the source")
    except InputError as error:
        raise FieldError("code", message_of(error)) from error
    if report.errors:
        # Write the errors of a source, each with its line and a mark below the place.
        lines = fields.code.split("\n")
        told = []
        for one in report.errors:
            if not 1 <= one.line <= len(lines):
                told.append(one.message)
                continue
            text = lines[one.line - 1].replace("\t", " ")
            mark = " " * (one.column - 1) + "^"
            told.append(f"line {one.line}: {one.message}\n  {text}\n  {mark}")
        raise FieldError("code", "\n".join(told))
    if report.failure:
        raise FieldError("args", report.failure)
    own = [one for one in report.kernels if problem and one.name == problem.kernel.name]
    if problem is not None and own and len(own[0].parameters) != len(problem.arguments):
        names = ", ".join(one.name for one in own[0].parameters) or "none"
        counts = f"{len(problem.arguments)} arguments given, {len(own[0].parameters)} expected"
        raise FieldError("args", f"{counts}: {names}")
    return report
