"""Devices, what was measured of them, and the button that measures."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.datastructures import URL
from starlette.responses import Response

from kernelcast.launches.machines import list_machines
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.reports.charts import Figure, Series, chart_roofs, make_series
from kernelcast.reports.machine import describe_machine, list_headlines, plan_figures
from kernelcast.reports.presenter import make_html
from kernelcast.service.dependencies import Reader, Route
from kernelcast.service.errors import message_of
from kernelcast.service.pages.rendering import (
    link_all,
    render,
    run_in_thread,
    show,
    with_pictures,
    write_digits,
    write_rate,
)
from kernelcast.service.routes.devices import list_calibrated, read_named
from kernelcast.service.service import Service

router = APIRouter(route_class=Route)
Machines = Annotated[list[str] | None, Query(max_length=8)]


@router.get("/devices")
async def show_devices(page: Reader) -> Response:
    found, failure = await page.service.devices.find()
    devices = [await _describe(one) for one in found]
    values = {
        "devices": devices,
        "compared": urlencode([("machine", one["device"].id) for one in devices if one["machine"]]),
        "failure": failure,
        "shipped": [one.name for one in await run_in_thread(list_machines) if one.is_shipped],
        "jobs": await _list_jobs(page.service),
    }
    return render(page.request, "devices/list.html", values)


@with_pictures(router, "/devices/compared")
async def compare_machines(page: Reader, machine: Machines = None) -> Response:
    machines = [await run_in_thread(read_named, one) for one in dict.fromkeys(machine or ())]
    values = {
        "known": await run_in_thread(list_machines),
        "chosen": machine or (),
        "machines": machines,
        "headings": list(
            dict.fromkeys(name for one in machines for name, _ in list_headlines(one))
        ),
    }
    return await show(page, "devices/compared.html", values, picture_rooflines(machines))


@with_pictures(router, "/devices/machines/{name}")
async def show_machine(name: str, page: Reader) -> Response:
    machine = await run_in_thread(read_named, name)
    values = {"machine": machine, "machine_name": name, "numbers": _write_numbers(machine)}
    return await show(page, "devices/machine.html", values, _picture_machine(machine))


@router.get("/devices/{device_id}")
async def show_device(device_id: str, page: Reader) -> Response:
    device = (await page.service.devices.choose([device_id]))[0]
    values = {**await _describe(device), "jobs": await _list_jobs(page.service)}
    if machine := values["machine"]:
        address = URL(f"/devices/machines/{device.id}")
        values["pictures"] = link_all(_picture_machine(machine), address)
        values["numbers"] = _write_numbers(machine)
    return render(page.request, "devices/device.html", values)


async def _describe(device: DeviceDescription) -> dict[str, Any]:
    """Read what a calibration here has left of a device, or what is wrong with that."""
    machine, error = None, ""
    if device.id in await run_in_thread(list_calibrated):
        try:
            machine = await run_in_thread(read_named, device.id)
        except KernelcastError as caught:
            error = message_of(caught)
    return {"device": device, "machine": machine, "calibration_error": error}


def _write_numbers(machine: MachineDescription) -> str:
    return make_html(*describe_machine(machine, has_figures=False), level=2)


def _picture_machine(machine: MachineDescription) -> dict[str, Figure]:
    """Picture the roofline of a machine and its curves, named after it."""
    curves = {
        "measured-roofline" if one.name == "roofline" else one.name: replace(
            one, name=f"{machine.id}-{one.name}", title=f"{one.title} of {machine.name}"
        )
        for one in plan_figures(machine)
    }
    return picture_rooflines([machine]) | curves


async def _list_jobs(service: Service) -> dict[str, JobRecord]:
    """Give the calibrations that wait or run, by device."""
    found = await asyncio.to_thread(
        service.state.jobs.list,
        kinds=(JobKind.CALIBRATE,),
        states=tuple(one for one in JobState if not one.is_final),
    )
    return {device: job for job in reversed(found) for device in job.devices}


def picture_rooflines(machines: Sequence[MachineDescription]) -> dict[str, Figure]:
    """Draw peak operations and bandwidths; none where no machine has both."""
    series: list[Series] = []
    told = []
    least, most = 1 / 64, 1024.0
    for machine in machines:
        memory = machine.memory("global")
        if memory is None:
            continue
        loads = memory.load_bytes_per_s
        best = loads.get(4) or max(
            loads.values(), key=lambda one: one.value, default=memory.copy_bytes_per_s
        )
        roofs = [("fp32", "memory", best)]
        if len(machines) == 1:  # caches whose bandwidth was measured have roofs below the peak
            caches = [("fp32", one.name, one.load_bytes_per_s) for one in machine.caches]
            roofs += [("fp64", "memory", best), *caches]
        for kind, place, bandwidth in roofs:
            instruction = machine.instruction(kind)
            if bandwidth is None or instruction is None or instruction.peak_per_s is None:
                continue
            peak, slope = instruction.peak_per_s.value, bandwidth.value
            ridge = min(max(peak / slope, least), most)
            name = machine.name if len(roofs) == 1 else f"{kind} from {place}"
            ends = (least * slope, peak, peak)
            series.append(make_series(name, (least, ridge, most), ends, "line"))
            if place == "memory":
                told.append(
                    f"{machine.name}: {write_digits(peak / 1e9)} Gop/s {kind}, {write_rate(slope)}"
                )
    if not told:
        return {}
    roofline = Figure(
        name="roofline",
        title=f"Rooflines. {'; '.join(told)}",
        caption="Operations per second that are possible, by operations per byte.",
        charts=(chart_roofs(series),),
    )
    return {"roofline": roofline}
