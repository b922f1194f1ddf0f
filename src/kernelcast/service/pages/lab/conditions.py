"""The layer-condition calculator."""

import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final, Self

from fastapi import APIRouter, Request
from starlette.responses import Response

from kernelcast.lab.conditions import (
    FIND_CONDITIONS,
    ConditionsReport,
    ConditionsTask,
    FieldComplaint,
)
from kernelcast.lab.written_nest import FieldError, WrittenNestTask
from kernelcast.launches.machines import list_machines
from kernelcast.records.errors import InputError
from kernelcast.reports.charts import Axis, Chart, Point, Series
from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import message_of
from kernelcast.service.pages.dependencies import Form, PageReader, SentForm
from kernelcast.service.pages.filters import write_digits
from kernelcast.service.pages.lab.showing import choose_machine
from kernelcast.service.pages.pictures import Picture, embed
from kernelcast.service.pages.rendering import PageRoute, is_fragment, render
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.service import Service

router = APIRouter(route_class=PageRoute)
_SIZE = re.compile(r"(?:L\d\s*[=:]?\s+)?(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>B|[KMG]i?B?)?", re.I)
_UNITS: Final = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST_CACHES: Final = 5
ELEMENTS: Final = ("double", "float", "int")
"""Types of arrays that are not declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionFields:
    """What stands in the calculator's fields; at first a 7-point stencil."""

    constants: str = "nx = 400, ny = 400, nz = 400"
    loops: str = "z in range(1, nz - 1)\ny in range(1, ny - 1)\nx in range(1, nx - 1)"
    arrays: str = "double a[nz][ny][nx]\ndouble b[nz][ny][nx]"
    loads: str = (
        "a[(z*ny + y)*nx + x]\na[(z*ny + y)*nx + x - 1]\na[(z*ny + y)*nx + x + 1]\n"
        "a[(z*ny + y - 1)*nx + x]\na[(z*ny + y + 1)*nx + x]\n"
        "a[((z - 1)*ny + y)*nx + x]\na[((z + 1)*ny + y)*nx + x]"
    )
    stores: str = "b[(z*ny + y)*nx + x]"
    element: str = ELEMENTS[0]
    machine: str = ""
    caches: str = "32 KiB, 1 MiB, 16 MiB"
    line_bytes: str = "64"
    size: str = "nx"
    local_size: str = "64, 4, 1"

    @classmethod
    def read(cls, form: Form) -> Self:
        """Take the fields of a form that was sent."""
        long = {name: form.raw(name) for name in ("loops", "arrays", "loads", "stores")}
        short = {
            name: form.get(name)
            for name in ("constants", "element", "machine", "caches", "line_bytes", "size",
                         "local_size")
        }  # fmt: skip
        return cls(**long, **short)

    def to_task(self, machine: str) -> ConditionsTask:
        """Make the question."""
        task = ConditionsTask(
            nest=WrittenNestTask(
                constants=self.constants, loops=self.loops, arrays=self.arrays,
                loads=self.loads, stores=self.stores,
                element=self.element if self.element in ELEMENTS else ELEMENTS[0],
            ),
            machine=machine,
            size=self.size,
            local_size=_read_whole("local_size", self.local_size),
        )  # fmt: skip
        if machine:
            return task
        [line_bytes] = _read_whole("line_bytes", self.line_bytes)[:1] or (64,)
        if line_bytes & (line_bytes - 1):
            raise FieldError(name="line_bytes", message="give a power of two, such as 64")
        return replace(task, cache_bytes=_read_caches(self.caches), line_bytes=line_bytes)


@router.get("/lab/conditions")
async def show_calculator(request: Request, _: PageReader) -> Response:
    """Show the calculator with an example in its fields."""
    return await _show(request, ConditionFields(), {}, {})


@router.post("/lab/conditions")
async def calculate(
    request: Request, form: SentForm, service: OurService, _: PageReader
) -> Response:
    """Find the layer conditions of what was typed."""
    fields = ConditionFields.read(form)
    try:
        report = await _ask(fields, service)
    except FieldError as error:
        return await _show(request, fields, {}, {error.name: error.message})
    picture = await embed(make_picture(report)) if report.points else None
    boundaries = list(report.volumes)
    values = {"report": report, "picture": picture, "boundaries": boundaries}
    return await _show(request, fields, values, {})


async def _ask(fields: ConditionFields, service: Service) -> ConditionsReport:
    machine = fields.machine
    if machine:
        machine = choose_machine(machine, await run_in_thread(list_machines))
    task = fields.to_task(machine)
    try:
        found = await service.ask(FIND_CONDITIONS, task, "layer conditions")
    except InputError as error:
        raise FieldError(name="machine", message=message_of(error)) from error
    if isinstance(found, FieldComplaint):
        raise FieldError(name=found.name, message=found.message)
    return found


async def _show(
    request: Request, fields: ConditionFields, values: dict[str, Any], errors: dict[str, str]
) -> Response:
    status = HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK
    shared = {"errors": errors, **values}
    template = "lab/conditions_report.html" if values else "lab/nothing.html"
    if is_fragment(request):
        return render(request, template, shared, status=status)
    shared |= {
        "fields": fields,
        "elements": ELEMENTS,
        "machines": await run_in_thread(list_machines),
        "result": template if values or errors else "",
    }
    return render(request, "lab/conditions.html", shared, status=status)


def make_picture(report: ConditionsReport) -> Picture:
    """Draw the bytes over each boundary and the varied constant."""
    names = list(report.points[0].bytes_by_boundary)
    first, last = report.points[0], report.points[-1]
    told = "; ".join(
        f"{name}: {write_digits(first.bytes_by_boundary[name])} at {first.value}, "
        f"{write_digits(last.bytes_by_boundary[name])} at {last.value}"
        for name in names
    )
    return Picture(
        name=f"layer-conditions-{report.size}",
        alternative=f"Bytes per iteration over {report.size} on {report.machine}. {told}.",
        caption=f"Data that cross each boundary per iteration, over {report.size}."
        + (" Upright: the largest value that meets a condition." if report.transitions else ""),
        columns=(report.size, *(f"{name} [bytes per iteration]" for name in names)),
        rows=[
            (one.value, *(one.bytes_by_boundary.get(name) for name in names))
            for one in report.points
        ],
        chart=_make_chart(report, names),
    )


def _make_chart(report: ConditionsReport, names: list[str]) -> Chart:
    first, last = report.points[0].value, report.points[-1].value
    highest = max(max(one.bytes_by_boundary.values()) for one in report.points)
    held = [
        Series(
            name=f"{one.level} held", kind="guide",
            points=[Point(x=one.largest, y=0.0), Point(x=one.largest, y=highest)],
        )
        for one in report.transitions
        if one.largest is not None and first <= one.largest <= last
    ]  # fmt: skip
    volumes = [
        Series(
            name=name, kind="line",
            points=[
                Point(x=one.value, y=one.bytes_by_boundary[name])
                for one in report.points
                if name in one.bytes_by_boundary
            ],
        )
        for name in names
    ]  # fmt: skip
    return Chart(
        x=Axis(title=report.size, is_log=True),
        y=Axis(title="bytes per iteration"),
        series=(*volumes, *held),
    )


def _read_whole(name: str, text: str) -> tuple[int, ...]:
    parts = [one.strip() for one in text.split(",") if one.strip()]
    if not all(one.isdecimal() and int(one) > 0 for one in parts) or len(parts) > 3:
        raise FieldError(
            name=name, message=f"{text!r}: give whole numbers of at least 1 with commas"
        )
    return tuple(map(int, parts))


def _read_caches(text: str) -> tuple[int, ...]:
    """Read sizes of caches, nearest first.

    Examples
    --------
    >>> _read_caches("L1 32 KiB, 1M")
    (32768, 1048576)
    """
    found = []
    for part in text.split(","):
        match = _SIZE.fullmatch(part.strip())
        if match is None:
            raise FieldError(
                name="caches", message=f"{part.strip()!r}: expected a size such as 32 KiB"
            )
        unit = (match["unit"] or "")[:1].upper()
        found.append(round(float(match["number"]) * _UNITS[unit]))
    if len(found) > _MOST_CACHES:
        raise FieldError(name="caches", message=f"give at most {_MOST_CACHES} caches")
    return tuple(found)
