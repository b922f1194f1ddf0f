"""Shows the Lab's page, or the part of it that was asked for."""

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import Request
from starlette.responses import Response

from kernelcast.lab.written_nest import FieldError
from kernelcast.launches.machines import KnownMachine, list_machines
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceError
from kernelcast.records.service_state import Scope
from kernelcast.service.authentication import Caller
from kernelcast.service.errors import message_of
from kernelcast.service.pages.lab.examples import list_examples
from kernelcast.service.pages.lab.fields import LabFields
from kernelcast.service.pages.rendering import is_fragment, render
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.service import Service


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
    devices, failure = await list_devices(service)
    values = {
        **shared,
        "fields": fields,
        "examples": list(list_examples().values()),
        "devices": devices,
        "device_failure": failure,
        "machines": await run_in_thread(list_machines),
        "may_run": Scope.RUN in caller.scopes,
        "allows_run": service.settings.allow_run,
        "result": answer.template,
    }
    return render(request, "lab/kernel.html", values, status=answer.status)


async def list_devices(service: Service) -> tuple[list[DeviceDescription], str]:
    """Give the devices of this host, or why there are none."""
    try:
        return list(await service.devices.list()), ""
    except DeviceError as error:
        return [], message_of(error)


def choose_machine(wanted: str, known: list[KnownMachine]) -> str:
    """Give the machine that is meant; its name is looked up and never becomes a path."""
    names = [one.name for one in known]
    if not names:
        raise FieldError(name="machine", message="there is no machine description")
    if wanted and wanted not in names:
        raise FieldError(name="machine", message=f"there is no machine description {wanted!r}")
    return wanted or names[0]
