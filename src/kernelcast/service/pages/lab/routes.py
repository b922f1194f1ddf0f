"""The Lab: a kernel that is typed in, and what can be said of it."""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from kernelcast.lab.tasks import (
    MODEL_LOCAL_SIZES,
    READ_SOURCE,
    SourceReport,
    Timed,
    list_local_sizes,
)
from kernelcast.launches.machines import list_machines
from kernelcast.records.arguments import LocalArgument
from kernelcast.records.errors import CompileError, InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem
from kernelcast.records.service_state import Scope
from kernelcast.reports.charts import Axis, Chart, Figure, Point, Series, chart_roofs
from kernelcast.service.backend import Ask
from kernelcast.service.dependencies import Call, Name, Reader, Route, SentForm
from kernelcast.service.errors import message_of, refuse_unknown
from kernelcast.service.pages.lab.fields import (
    FieldError,
    LabFields,
    fields_of_content,
    list_examples,
    propose_arguments,
    read_parameters,
)
from kernelcast.service.pages.rendering import (
    embed,
    group_points,
    is_fragment,
    render,
    run_in_thread,
    write_digits,
    write_seconds,
)
from kernelcast.service.routes.devices import read_named
from kernelcast.service.routes.estimates import EstimateRequest, list_asks
from kernelcast.service.service import Service

router = APIRouter(route_class=Route)
_USES_LOCAL = re.compile(r"\b(?:__)?local\b|\breqd_work_group_size\b")
# The field that an error of a device is about.
_FIELDS: Final = {
    "compile_error": "code",
    "kernel_not_found": "kernel",
    "arguments_do_not_fit": "args",
    "invalid_sizes": "local_size",
    "device_limit": "local_size",
}
_FACTORS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)
_COMPUTING = ("fp32", "fp64", "fp16", "int32")
_MEMORIES = ("DRAM", "MEM", "L2")  # the outermost that the launch meets


async def show_lab(
    page: Call,
    fields: LabFields,
    template: str = "",
    values: Mapping[str, Any] | None = None,
    *,
    errors: Mapping[str, str] | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    """Show an answer below the fields, or for scripts the answer with its errors alone."""
    shared = {"errors": errors or {}, **(values or {})}
    if is_fragment(page.request) and template:
        return render(page.request, template, shared, status=status)
    devices, failure = await page.service.devices.find()
    shown = {
        **shared,
        "fields": fields,
        "examples": list_examples(),
        "devices": devices,
        "device_failure": failure,
        "machines": await run_in_thread(list_machines),
        "may_run": Scope.RUN in page.caller.scopes,
        "allows_run": page.service.settings.allow_run,
        "result": template,
    }
    return render(page.request, "lab/kernel.html", shown, status=status)


@router.get("/lab")
async def show_page(
    page: Reader,
    example: Name = "",
    problem: Name = "",
    device: Annotated[list[str] | None, Query(max_length=50)] = None,
) -> Response:
    """Show the Lab with an example, or a problem that was sent before, in its fields."""
    if problem:
        fields = fields_of_content(await page.service.problems.read(problem), device or ())
    else:
        examples = list_examples()
        fields = examples.get(example) or next(iter(examples.values()))
    return await show_lab(page, fields)


async def _fill_in(fields: LabFields, page: Call) -> Response:
    """Write lines of arguments to begin with, made of what the kernel takes."""
    fields.check_code(page.service)
    report = await _read_source(fields, None, page.service)
    wanted = fields.kernel or next(iter(report.kernels), "")
    if wanted not in report.kernels:
        told = ", ".join(report.kernels) or "none"
        raise FieldError("kernel", f"{wanted!r} is not in the source; its kernels are: {told}")
    items = fields.count_work_items()
    arguments = propose_arguments(report.kernels[wanted], items)
    changes: dict[str, Any] = {"kernel": wanted, "args": arguments}
    if not fields.global_size:
        changes["global_size"] = str(items)
    if is_fragment(page.request):
        return JSONResponse(changes)
    return await show_lab(page, replace(fields, **changes))


async def _estimate(fields: LabFields, page: Call) -> Response:
    service = page.service
    digest, problem = await fields.make_problem(service)
    asks = await list_asked(fields, digest, page)
    outcomes = await asyncio.gather(*map(service.estimating.answer, asks))
    answers = [one.content for one in outcomes]
    is_good = any(one.error is None for one in outcomes)
    # What all devices agree on stands beside the field that it is about.
    codes = {one.error and one.error.code for one in outcomes}
    about = _FIELDS.get(codes.pop() or "") if len(codes) == 1 else None
    errors = {} if about is None else {about: answers[0]["error"]["message"]}
    if "code" in errors:  # reading it may find the lines, too
        try:
            await _read_source(fields, problem, service)
        except FieldError as error:
            if error.name == "code":
                raise
    ends = [one.get("high") for each in answers for one in (each, each.get("now") or {})]
    query = urlencode({"problem": digest, "device": fields.devices}, doseq=True)
    return await show_lab(
        page,
        fields,
        # What stands at a field does not stand here again.
        "lab/nothing.html" if errors else "lab/estimate.html",
        {
            "answers": answers,
            "longest_s": max((one for one in ends if one is not None), default=0.0),
            "allows_run": service.settings.allow_run,
            "share": {
                "address": f"/lab?{query}",
                "base": str(page.request.base_url).rstrip("/"),
                "problem": fields.to_content(),
                "devices": list(fields.devices),
            },
        },
        errors=errors,
        status=HTTPStatus.OK if is_good else HTTPStatus.UNPROCESSABLE_ENTITY,
    )


async def _annotate(fields: LabFields, page: Call) -> Response:
    problem = (await fields.make_problem(page.service))[1]
    report = await _read_source(fields, problem, page.service)
    return await show_lab(page, fields, "lab/source.html", {"report": report})


async def _model(fields: LabFields, page: Call) -> Response:
    machine = await choose_machine(fields.machine)
    problem = (await fields.make_problem(page.service))[1]
    [found] = await ask_model(problem, machine, (), page.service)
    values: dict[str, Any] = {"machine_name": machine, "found": found, "kernel": problem.name}
    if found.estimate is not None:
        described = await run_in_thread(read_named, machine)
        roofline = picture_roofline(problem.name, found.estimate, described)
        values["roofline"] = None if roofline is None else await embed(roofline)
    return await show_lab(page, fields, "lab/model.html", values)


async def _show_times(
    page: Call,
    fields: LabFields,
    kernel: str,
    times: Sequence[Timed],
    parameter: str = "",
) -> Response:
    """Show times over a parameter or, without one, over local sizes."""
    known = [one for one in times if one.seconds is not None]
    where = times[0].where if times else ""
    picture: dict[str, str] | None = None
    if len(known) >= (1 if parameter else 2):
        picture = await embed(picture_times(kernel, known, parameter, where))
    values = {
        "kernel": kernel,
        "parameter": parameter,
        "where": where,
        "is_modelled": fields.method != "estimate",
        "ranked": sorted(known, key=lambda one: one.seconds or 0.0),
        "refused": [one for one in times if one.seconds is None],
        "picture": picture,
    }
    return await show_lab(page, fields, "lab/times.html", values)


def picture_times(kernel: str, times: Sequence[Timed], parameter: str, where: str) -> Figure:
    """Picture times over a parameter, or over the first dimension of local sizes."""
    points = []
    for one in sorted(times, key=lambda each: each.value):
        rest = one.where if parameter else " x ".join(map(str, ("", *one.value[1:]))).strip()
        label = "" if parameter else f"{one.text}: {one.detail}"
        point = Point(x=one.value[0], y=one.seconds or 0.0, low=one.low, high=one.high, label=label)
        points.append((rest or "time", point))
    lines = group_points(points, "line")
    if parameter:
        name, title = f"over-{parameter}", f"over {parameter}"
        caption = f"Predicted time over {parameter}, both axes by factors."
    else:
        name, title = "local-sizes", f"on {where} over local sizes"
        caption = "Work-items of a work-group."
        if len(lines) > 1:
            caption = "A line for each size of the other dimensions."
    x = parameter or "work-items along dimension 0"
    chart = Chart(
        x=Axis(title=x, is_log=True), y=Axis(title="predicted time", unit="s", is_log=True),
        series=tuple(lines),
    )  # fmt: skip
    return Figure(
        name=f"{kernel}-{name}", title=f"Time of {kernel} {title}", caption=caption,
        charts=(chart,),
    )  # fmt: skip


async def _read_source(
    fields: LabFields, problem: Problem | None, service: Service
) -> SourceReport:
    """Read the source in a process of its own; errors of it go beside the field."""
    asked = (fields.code, tuple(fields.options), problem)
    try:
        report = await service.ask(READ_SOURCE, asked, "the source")
    except InputError as error:
        raise FieldError("code", message_of(error)) from error
    if report.errors:
        # Write the errors of a source, each with its line and a mark below the place.
        lines = fields.code.split("\n")
        told = []
        for line, column, message in report.errors:
            if not 1 <= line <= len(lines):
                told.append(message)
                continue
            text = lines[line - 1].replace("\t", " ")
            mark = " " * (column - 1) + "^"
            told.append(f"line {line}: {message}\n  {text}\n  {mark}")
        raise FieldError("code", "\n".join(told))
    if report.failure:
        raise FieldError("args", report.failure)
    own = None if problem is None else report.kernels.get(problem.kernel.name)
    if problem is not None and own is not None and len(own) != len(problem.arguments):
        names = ", ".join(one.name for one in own) or "none"
        counts = f"{len(problem.arguments)} arguments given, {len(own)} expected"
        raise FieldError("args", f"{counts}: {names}")
    return report


async def compare_local_sizes(fields: LabFields, page: Call) -> Response:
    """Compare local sizes: by the analytic model, or by estimates of one device."""
    _, problem = await fields.make_problem(page.service)
    if fields.method != "estimate":
        machine = await choose_machine(fields.machine)
        times = await ask_model(problem, machine, None, page.service)
        return await _show_times(page, fields, problem.kernel.name, times)
    # Choose as many local sizes as may be sampled, evenly over the sizes of work-groups.
    if len(fields.devices) != 1:
        raise FieldError("device", "local sizes are estimated on one device; choose one")
    has_local = any(isinstance(one, LocalArgument) for one in problem.arguments)
    if has_local or _USES_LOCAL.search(problem.kernel.source):
        raise FieldError(
            "local_size",
            "the kernel shares local memory or requires its local size: it is written for one; "
            "change its parameters instead",
        )
    device = (await page.service.devices.choose(fields.devices))[0]
    sizes = list_local_sizes(problem.ndrange, min(1024, device.max_work_group_size))
    ordered = sorted(sizes, key=lambda one: (math.prod(one), one))
    # Each that is estimated may take samples.
    places = np.linspace(0, len(ordered) - 1, min(len(ordered), 16))
    wanted = {size: {"local_size": list(size)} for size in (ordered[round(at)] for at in places)}
    return await _show_times(
        page, fields, problem.kernel.name, await _time(page, fields, wanted, "")
    )


async def vary_size(fields: LabFields, page: Call) -> Response:
    """Ask for the launch at several values of the number that was chosen."""
    _, problem = await fields.make_problem(page.service)
    # Halves and doubles that keep the even parts of the parameter.
    parameters = dict(read_parameters(fields.parameters))
    numbers = {name: int(value) for name, value in parameters.items() if value.isdecimal()}
    if not numbers:
        raise FieldError(
            "parameters", "name the number that is to vary, such as N = 4096, and write {N} for it"
        )
    name = fields.varied if fields.varied in numbers else next(iter(numbers))
    number = numbers[name]
    # A power of two that divides the number divides all of its values: local sizes still fit.
    step = min(number & -number, 256)
    values = sorted({max(round(number * factor / step), 1) * step for factor in _FACTORS})
    wanted: dict[tuple[int, ...], Any] = {
        (value,): {"parameters": {**parameters, name: str(value)}} for value in values
    }
    machine = "" if fields.method == "estimate" else await choose_machine(fields.machine)
    times = await _time(page, fields, wanted, machine)
    return await _show_times(page, fields, problem.kernel.name, times, parameter=name)


async def _time(
    page: Call, fields: LabFields, wanted: Mapping[tuple[int, ...], Mapping[str, Any]], machine: str
) -> list[Timed]:
    """Ask a machine's model, or the chosen devices where it is empty, about the launch of the
    fields with each of some changes."""
    times = []
    # One after the other: they wait for the device's turn in any case.
    for value, changes in wanted.items():
        digest, problem = await fields.make_problem(page.service, changes)
        if machine:
            [one] = await ask_model(problem, machine, (), page.service)
            times.append(replace(one, value=value))
            continue
        for ask in await list_asked(fields, digest, page):
            outcome = await page.service.estimating.answer(ask)
            held = outcome.content
            times.append(Timed(
                value=value, where=ask.device.id, seconds=held.get("seconds"),
                low=held.get("low"), high=held.get("high"), detail=held.get("tier", ""),
                reason="" if outcome.error is None else held["error"]["message"],
            ))  # fmt: skip
    return times


async def ask_model(
    problem: Problem, machine: str, sizes: tuple[tuple[int, ...], ...] | None, service: Service
) -> tuple[Timed, ...]:
    """Ask the analytic model about local sizes: all that are worth it, or where none is given the
    launch's own; what is wrong is told beside the field that it is about."""
    try:
        return await service.ask(MODEL_LOCAL_SIZES, (problem, machine, sizes), "the model")
    except CompileError as error:
        raise FieldError("code", message_of(error)) from error
    except InputError as error:
        raise FieldError("machine", message_of(error)) from error


async def list_asked(fields: LabFields, digest: str, page: Call) -> Sequence[Ask]:
    """Give the answers that the fields ask devices for."""
    if not fields.devices:
        raise FieldError("device", "choose at least one device")
    request = EstimateRequest(
        problem_digest=digest,
        devices=list(fields.devices),
        sampling="auto" if fields.may_sample else "never",
    )
    return await list_asks(request, page)


async def choose_machine(wanted: str) -> str:
    """Give the machine that is meant; its name is looked up and never becomes a path."""
    names = [one.name for one in await run_in_thread(list_machines)]
    if not names:
        raise FieldError("machine", "there is no machine description")
    if wanted and wanted not in names:
        raise FieldError("machine", f"there is no machine description {wanted!r}")
    return wanted or names[0]


_QUESTIONS: Final[Mapping[str, Callable[[LabFields, Call], Awaitable[Response]]]] = {
    "arguments": _fill_in,
    "estimate": _estimate,
    "source": _annotate,
    "model": _model,
    "local-sizes": compare_local_sizes,
    "sizes": vary_size,
}


@router.post("/lab/{question}")
async def answer_question(question: str, page: Reader, form: SentForm) -> Response:
    """Answer what the fields ask: an estimate, counts, the model's limiters, times over sizes.

    What is wrong with a field is told at it.
    """
    if question not in _QUESTIONS:
        refuse_unknown("question", question)
    fields = LabFields.read(form)
    try:
        return await _QUESTIONS[question](fields, page)
    except FieldError as error:
        return await show_lab(
            page, fields, "lab/nothing.html", errors={error.name: error.message},
            status=HTTPStatus.UNPROCESSABLE_ENTITY,
        )  # fmt: skip


def picture_roofline(
    kernel: str, estimate: AnalyticEstimate, machine: MachineDescription
) -> Figure | None:
    """Draw the roofs of a machine and the launch below them; None where a roof is not known."""
    kind = max(_COMPUTING, key=lambda one: estimate.limiters.get(one, 0.0))
    peak = next((one.peak_per_s for one in machine.instructions if one.name == kind), None)
    memory = next((one for one in _MEMORIES if estimate.limiters.get(one)), None)
    moved = sum(one for name, one in estimate.volumes.items() if memory and memory in name)
    busy_s = estimate.limiters.get(kind, 0.0)
    if peak is None or memory is None or not moved or not busy_s:
        return None
    bandwidth = moved / estimate.limiters[memory]
    operations = busy_s * peak.value
    intensity, rate = operations / moved, operations / estimate.seconds
    ridge = peak.value / bandwidth
    left, right = min(intensity, ridge) / 64, max(intensity, ridge) * 64
    roof = [(left, left * bandwidth), (ridge, peak.value), (right, peak.value)]
    return Figure(
        name=f"{kernel}-{machine.id}-roofline",
        title=(
            f"Roofline of {machine.name}: {kernel} does {write_digits(intensity)} {kind} "
            f"operations per byte of {memory} in {write_seconds(estimate.seconds)}; the roofs "
            f"meet at {write_digits(ridge)}"
        ),
        caption=f"The launch below the roofs of {memory} bandwidth and of {kind}.",
        charts=(
            chart_roofs(
                (
                    Series(name=kernel, points=[Point(x=intensity, y=rate, label=kernel)]),
                    Series(name="roof", kind="line", points=[Point(x=x, y=y) for x, y in roof]),
                ),
                f"{kind} operations per byte of {memory}",
            ),
        ),
    )
