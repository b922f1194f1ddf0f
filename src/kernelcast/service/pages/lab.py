"""The Lab: a kernel that is typed in, and what can be said of it."""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import numpy as np
import yaml
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
from kernelcast.launches.problem_file import read_inline_problem
from kernelcast.records.arguments import ElementType, LocalArgument
from kernelcast.records.errors import CompileError, InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import MemorySpace
from kernelcast.records.problem import Problem
from kernelcast.reports.charts import Axis, Chart, Figure, Point, Series, chart_roofs
from kernelcast.service.backend import Ask
from kernelcast.service.dependencies import Call, Form, Name, Reader, Route, SentForm
from kernelcast.service.errors import message_of, refuse_unknown
from kernelcast.service.guard import check_source
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
_MOST_ARGUMENTS: Final = 256
_KERNEL = re.compile(r"\b(?:__)?kernel\b[^;{}()]*?(?:__attribute__\s*\(\(.*?\)\)\s*)*void\s+(\w+)")
_PARAMETER = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>\S.*?)\s*")
_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|restrict|__restrict|__?(?:global|local|constant|private|generic)|global"
    r"|local|constant|private|generic)\b|\*"
)
_USES_LOCAL = re.compile(r"\b(?:__)?local\b|\breqd_work_group_size\b")
_SIZES: Final = ("global_size", "local_size", "global_offset")
_FRESH: Final = {"sampling": ["auto"]}  # of a page before a form was sent
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


class FieldError(Exception):
    """Is raised for what cannot be read: the field's name, and what is said there, whose further
    lines point at the place."""


def check_code(fields: Form, service: Service) -> None:
    """Refuse a source and options that could reach files, or are too long."""
    code = fields.text("code")
    if not code.strip():
        raise FieldError("code", "paste OpenCL C here, or load an example")
    for field, options in (("code", []), ("build_options", fields.first("build_options").split())):
        try:
            check_source(code, service.settings.limits, options)
        except InputError as error:
            raise FieldError(field, message_of(error)) from error


def make_content(fields: Form) -> dict[str, Any]:
    """Make the problem as the API takes it of what stands in the fields."""
    code, kernel = fields.text("code"), fields.first("kernel")
    # The kernel that is named, else the only one of the source.
    found = [kernel] if kernel else list(dict.fromkeys(_KERNEL.findall(code)))
    if not found:
        raise FieldError("code", "the source has no kernel: kernel void NAME(...)")
    if len(found) > 1:
        names = ", ".join(found)
        raise FieldError("kernel", f"the source has several kernels; give one of {names}")
    content: dict[str, Any] = {
        "code": code,
        "kernel": found[0],
        "global_size": _cut(fields.first("global_size")),
        "args": list(_read_arguments(fields.text("args"))),
    }
    if options := fields.first("build_options").split():
        content["build_options"] = options
    if parameters := _read_parameters(fields.first("parameters")):
        content["parameters"] = parameters
    for name in _SIZES[1:]:
        if text := fields.first(name):
            content[name] = _cut(text)
    return content


async def make_problem(
    fields: Form, service: Service, changes: Mapping[str, Any] | None = None
) -> tuple[str, Problem]:
    """Make the problem and keep it, as if it had been sent to the API."""
    check_code(fields, service)
    try:
        return await service.problems.take({**make_content(fields), **(changes or {})})
    except InputError as error:
        field = "args" if error.key is None else re.split(r"[.[]", error.key)[0] or "code"
        raise FieldError(field, message_of(error).removeprefix("problem: ")) from error


def _cut(text: str) -> list[str]:
    """Cut sizes apart, which whoever reads the problem checks."""
    return [one.strip() for one in text.strip("[] ").split(",")]


def _read_parameters(text: str) -> dict[str, str]:
    """Read names for numbers, with what they stand for."""
    found = {}
    for part in filter(str.strip, re.split(r"[,;\n]", text)):
        match = _PARAMETER.fullmatch(part)
        if match is None:
            raise FieldError("parameters", f"{part.strip()!r}: expected NAME = VALUE")
        found[match["name"]] = match["value"]
    return found


def _read_arguments(text: str) -> Iterator[dict[str, Any]]:
    lines = [one.strip() for one in text.splitlines() if one.strip()]
    if not lines:
        raise FieldError("args", "give a line per argument, or have them filled in from the source")
    if len(lines) > _MOST_ARGUMENTS:
        raise FieldError("args", f"{len(lines)} arguments; give at most {_MOST_ARGUMENTS}")
    plain = int | float | str
    for number, line in enumerate(lines, start=1):
        bare = line.removeprefix("-").strip()
        whole = bare if bare.startswith("{") else f"{{{bare}}}"
        held = None
        if len(whole) <= 1000:
            with suppress(yaml.YAMLError, ValueError, RecursionError):  # no date; many brackets
                held = yaml.safe_load(whole)
        # Numbers, texts and lists of them, and nothing else of YAML.
        if not isinstance(held, dict) or not all(
            isinstance(key, str)
            and (
                all(isinstance(one, plain) for one in value)
                if isinstance(value, list)
                else value is None or isinstance(value, plain)
            )
            for key, value in held.items()
        ):
            expected = "buffer: TYPE, count: N, or scalar: TYPE, value: V, or local: BYTES"
            raise FieldError("args", f"argument {number}: {line[:80]!r}: expected {expected}")
        yield held


@cache
def list_examples() -> dict[str, Form]:
    found = {}
    for path in sorted((Path(__file__).parent / "examples").glob("*.yaml")):
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        texts = {name: [one.rstrip("\n")] for name, one in held.items()}
        found[path.stem.partition("-")[2]] = Form(_FRESH | texts)
    return found


def fields_of_content(content: Mapping[str, Any], devices: Sequence[str] = ()) -> Form:
    """Write a problem, as the API takes it, into the Lab's fields."""

    def write_sizes(sizes: object) -> str:
        listed = sizes if isinstance(sizes, list | tuple) else [] if sizes is None else [sizes]
        return ", ".join(map(str, listed))

    def write_argument(held: Mapping[str, Any]) -> str:
        text: str = yaml.safe_dump(
            dict(held), default_flow_style=True, sort_keys=False, allow_unicode=True, width=100_000
        )
        return text.strip()[1:-1]

    parameters = content.get("parameters") or {}
    texts = {
        **{name: str(content.get(name, "")) for name in ("code", "kernel")},
        **{name: write_sizes(content.get(name)) for name in _SIZES},
        "build_options": " ".join(map(str, content.get("build_options") or ())),
        "parameters": ", ".join(f"{name} = {one}" for name, one in parameters.items()),
        "args": "\n".join(map(write_argument, content.get("args") or ())),
    }
    return Form(_FRESH | {name: [one] for name, one in texts.items()} | {"device": [*devices]})


async def show_lab(
    page: Call,
    fields: Form,
    template: str = "",
    values: Mapping[str, Any] | None = None,
    *,
    errors: Mapping[str, str] | None = None,
    status: int | None = None,
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
    if problem:
        fields = fields_of_content(await page.service.problems.read(problem), device or ())
    else:
        examples = list_examples()
        fields = examples.get(example) or next(iter(examples.values()))
    return await show_lab(page, fields)


async def _fill_in(fields: Form, page: Call) -> Response:
    """Write lines of arguments to begin with, made of what the kernel takes."""
    check_code(fields, page.service)
    report = await _read_source(fields, None, page.service)
    wanted = fields.first("kernel") or next(iter(report.kernels), "")
    if wanted not in report.kernels:
        told = ", ".join(report.kernels) or "none"
        raise FieldError("kernel", f"{wanted!r} is not in the source; its kernels are: {told}")
    try:
        launch: dict[str, Any] = {
            "code": fields.text("code"), "kernel": "any", "args": [],
            "global_size": _cut(fields.first("global_size")),
            "parameters": _read_parameters(fields.first("parameters")),
        }  # fmt: skip
        items = read_inline_problem(launch).ndrange.work_item_count
    except (FieldError, InputError, ValueError, OverflowError, RecursionError):
        items = 1 << 20  # a usual number where sizes cannot be read yet
    lines = []
    for one in report.kernels[wanted]:
        bare = " ".join(_QUALIFIERS.sub(" ", one.type_name).split())
        # Of a structure, for instance, a person knows better.
        element = str(ElementType.from_opencl(bare) or "float32")
        if one.is_pointer and one.space is MemorySpace.LOCAL:
            lines.append("local: 4096")
        elif one.is_pointer:
            init = "uniform" if one.is_read else "zeros"
            lines.append(f"buffer: {element}, count: {items}, init: {init}")
        else:
            value = "1.0" if element.startswith("float") else str(items)
            lines.append(f"scalar: {element}, value: {value}")
    changes = {"kernel": wanted, "args": "\n".join(lines)}
    if not fields.first("global_size"):
        changes["global_size"] = str(items)
    if is_fragment(page.request):
        return JSONResponse(changes)
    return await show_lab(page, Form(fields | {name: [one] for name, one in changes.items()}))


async def _estimate(fields: Form, page: Call) -> Response:
    service = page.service
    digest, problem = await make_problem(fields, service)
    asks = await list_asked(fields, digest, page)
    outcomes = await asyncio.gather(*map(service.estimating.answer, asks))
    answers = [answer for answer, _ in outcomes]
    is_good = any(error is None for _, error in outcomes)
    # What all devices agree on stands beside the field that it is about.
    codes = {error and error.code for _, error in outcomes}
    about = _FIELDS.get(codes.pop() or "") if len(codes) == 1 else None
    errors = {} if about is None else {about: answers[0]["error"]["message"]}
    if "code" in errors:  # reading it may find the lines, too
        try:
            await _read_source(fields, problem, service)
        except FieldError as error:
            if error.args[0] == "code":
                raise
    ends = [one.get("high") for each in answers for one in (each, each.get("now") or {})]
    devices = _list_devices(fields)
    query = urlencode({"problem": digest, "device": devices}, doseq=True)
    return await show_lab(
        page,
        fields,
        # What stands at a field does not stand here again.
        "lab/nothing.html" if errors else "lab/estimate.html",
        {
            "answers": answers,
            "longest_s": max((one for one in ends if one is not None), default=0.0),
            "share": {
                "address": f"/lab?{query}",
                "base": str(page.request.base_url).rstrip("/"),
                "problem": make_content(fields),
                "devices": devices,
            },
        },
        errors=errors,
        status=None if is_good else HTTPStatus.UNPROCESSABLE_ENTITY,
    )


async def _annotate(fields: Form, page: Call) -> Response:
    problem = (await make_problem(fields, page.service))[1]
    report = await _read_source(fields, problem, page.service)
    return await show_lab(page, fields, "lab/source.html", {"report": report})


async def _model(fields: Form, page: Call) -> Response:
    machine = await choose_machine(fields.first("machine"))
    problem = (await make_problem(fields, page.service))[1]
    [found] = await ask_model(problem, machine, (), page.service)
    values: dict[str, Any] = {"machine_name": machine, "found": found, "kernel": problem.name}
    if found.estimate is not None:
        described = await run_in_thread(read_named, machine)
        roofline = picture_roofline(problem.name, found.estimate, described)
        values["roofline"] = None if roofline is None else await embed(roofline)
    return await show_lab(page, fields, "lab/model.html", values)


async def _show_times(
    page: Call,
    fields: Form,
    kernel: str,
    times: Sequence[Timed],
    parameter: str = "",
) -> Response:
    """Show times over a parameter or, without one, over local sizes."""
    known = [one for one in times if one.seconds is not None]
    where = times[0].where if times else ""
    picture: dict[str, str] | None = None
    if len(known) >= (1 if parameter else 2):
        points = []
        for one in sorted(known, key=lambda each: each.value):
            rest = one.where if parameter else " x ".join(map(str, ("", *one.value[1:]))).strip()
            points.append((rest or "time", Point(
                x=one.value[0], y=one.seconds or 0.0, low=one.low, high=one.high,
                label="" if parameter else f"{one.text}: {one.detail}",
            )))  # fmt: skip
        lines = group_points(points, "line")
        if parameter:
            name, title = f"over-{parameter}", f"over {parameter}"
            caption = f"Predicted time over {parameter}, both axes by factors."
        else:
            name, title = "local-sizes", f"on {where} over local sizes"
            caption = "Work-items of a work-group."
            if len(lines) > 1:
                caption = "A line for each size of the other dimensions."
        chart = Chart(
            x=Axis(title=parameter or "work-items along dimension 0", is_log=True),
            y=Axis(title="predicted time", unit="s", is_log=True),
            series=tuple(lines),
        )
        picture = await embed(Figure(
            name=f"{kernel}-{name}", title=f"Time of {kernel} {title}", caption=caption,
            charts=(chart,),
        ))  # fmt: skip
    values = {
        "kernel": kernel,
        "parameter": parameter,
        "where": where,
        "is_modelled": _is_modelled(fields),
        "ranked": sorted(known, key=lambda one: one.seconds or 0.0),
        "refused": [one for one in times if one.seconds is None],
        "picture": picture,
    }
    return await show_lab(page, fields, "lab/times.html", values)


async def _read_source(fields: Form, problem: Problem | None, service: Service) -> SourceReport:
    """Read the source in a process of its own; errors of it go beside the field."""
    asked = (fields.text("code"), tuple(fields.first("build_options").split()), problem)
    try:
        report = await service.ask(READ_SOURCE, asked, "the source")
    except InputError as error:
        raise FieldError("code", message_of(error)) from error
    if report.errors:
        raise FieldError("code", "\n".join(report.errors))
    if report.failure:
        raise FieldError("args", report.failure)
    own = None if problem is None else report.kernels.get(problem.kernel.name)
    if problem is not None and own is not None and len(own) != len(problem.arguments):
        names = ", ".join(one.name for one in own) or "none"
        counts = f"{len(problem.arguments)} arguments given, {len(own)} expected"
        raise FieldError("args", f"{counts}: {names}")
    return report


async def compare_local_sizes(fields: Form, page: Call) -> Response:
    """Compare local sizes: by the analytic model, or by estimates of one device."""
    _, problem = await make_problem(fields, page.service)
    if _is_modelled(fields):
        machine = await choose_machine(fields.first("machine"))
        times = await ask_model(problem, machine, None, page.service)
        return await _show_times(page, fields, problem.kernel.name, times)
    # Choose as many local sizes as may be sampled, evenly over the sizes of work-groups.
    devices = _list_devices(fields)
    if len(devices) != 1:
        raise FieldError("device", "local sizes are estimated on one device; choose one")
    has_local = any(isinstance(one, LocalArgument) for one in problem.arguments)
    if has_local or _USES_LOCAL.search(problem.kernel.source):
        raise FieldError(
            "local_size",
            "the kernel shares local memory or requires its local size: it is written for one; "
            "change its parameters instead",
        )
    device = (await page.service.devices.choose(devices))[0]
    sizes = list_local_sizes(problem.ndrange, min(1024, device.max_work_group_size))
    ordered = sorted(sizes, key=lambda one: (math.prod(one), one))
    # Each that is estimated may take samples.
    places = np.linspace(0, len(ordered) - 1, min(len(ordered), 16))
    wanted = {size: {"local_size": list(size)} for size in (ordered[round(at)] for at in places)}
    return await _show_times(
        page, fields, problem.kernel.name, await _time(page, fields, wanted, "")
    )


async def vary_size(fields: Form, page: Call) -> Response:
    """Ask for the launch at several values of the number that was chosen."""
    _, problem = await make_problem(fields, page.service)
    # Halves and doubles that keep the even parts of the parameter.
    parameters = _read_parameters(fields.first("parameters"))
    numbers = {name: int(value) for name, value in parameters.items() if value.isdecimal()}
    if not numbers:
        raise FieldError(
            "parameters", "name the number that is to vary, such as N = 4096, and write {N} for it"
        )
    varied = fields.first("varied")
    name = varied if varied in numbers else next(iter(numbers))
    number = numbers[name]
    # A power of two that divides the number divides all of its values: local sizes still fit.
    step = min(number & -number, 256)
    values = sorted({max(round(number * factor / step), 1) * step for factor in _FACTORS})
    wanted: dict[tuple[int, ...], Any] = {
        (value,): {"parameters": {**parameters, name: str(value)}} for value in values
    }
    machine = await choose_machine(fields.first("machine")) if _is_modelled(fields) else ""
    times = await _time(page, fields, wanted, machine)
    return await _show_times(page, fields, problem.kernel.name, times, parameter=name)


async def _time(
    page: Call, fields: Form, wanted: Mapping[tuple[int, ...], Mapping[str, Any]], machine: str
) -> list[Timed]:
    """Ask a machine's model, or the chosen devices where it is empty, about the launch of the
    fields with each of some changes."""
    times = []
    # One after the other: they wait for the device's turn in any case.
    for value, changes in wanted.items():
        digest, problem = await make_problem(fields, page.service, changes)
        if machine:
            [one] = await ask_model(problem, machine, (), page.service)
            times.append(replace(one, value=value))
            continue
        for ask in await list_asked(fields, digest, page):
            held, error = await page.service.estimating.answer(ask)
            times.append(Timed(
                value=value, where=ask.device.id, seconds=held.get("seconds"),
                low=held.get("low"), high=held.get("high"), detail=held.get("tier", ""),
                reason="" if error is None else held["error"]["message"],
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


def _is_modelled(fields: Form) -> bool:
    """Tell whether times over sizes are a model's; else they are estimates of devices."""
    return fields.first("method") != "estimate"


def _list_devices(fields: Form) -> list[str]:
    return [one for one in fields.list("device") if 0 < len(one) <= 200]


async def list_asked(fields: Form, digest: str, page: Call) -> Sequence[Ask]:
    devices = _list_devices(fields)
    if not devices:
        raise FieldError("device", "choose at least one device")
    request = EstimateRequest(
        problem_digest=digest,
        devices=devices,
        sampling="auto" if fields.first("sampling") == "auto" else "never",
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


_QUESTIONS: Final[Mapping[str, Callable[[Form, Call], Awaitable[Response]]]] = {
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
    try:
        return await _QUESTIONS[question](form, page)
    except FieldError as error:
        name, message = error.args
        return await show_lab(page, form, "lab/nothing.html", errors={name: message})


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
