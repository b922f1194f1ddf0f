"""Devices and machine descriptions."""

import asyncio
from dataclasses import asdict

from fastapi import APIRouter

from kernelcast.launches.machine_file import machine_to_plain
from kernelcast.launches.machines import list_machines
from kernelcast.records.device import DeviceDescription
from kernelcast.service.conditional import ConditionalRoute
from kernelcast.service.dependencies import OurService, Reader
from kernelcast.service.known_machines import list_calibrated, read_named
from kernelcast.service.schemas.admin import (
    DeviceOut,
    DevicesOut,
    MachineName,
    MachineOut,
    MachinesOut,
)

router = APIRouter(tags=["devices"], route_class=ConditionalRoute)


@router.get("/devices")
async def list_devices(service: OurService, _: Reader) -> DevicesOut:
    """List the devices of this host."""
    calibrated = await asyncio.to_thread(list_calibrated)
    return DevicesOut(devices=[_describe(one, calibrated) for one in await service.devices.list()])


@router.get("/devices/{device_id}")
async def show_device(device_id: str, service: OurService, _: Reader) -> DeviceOut:
    """Show one device, by its id or the beginning of it."""
    calibrated = await asyncio.to_thread(list_calibrated)
    return _describe((await service.devices.choose([device_id]))[0], calibrated)


@router.get("/machines")
async def list_descriptions(_: Reader) -> MachinesOut:
    """List the machine descriptions: of devices that were calibrated, and those shipped."""
    found = await asyncio.to_thread(list_machines)
    return MachinesOut(
        machines=[MachineName(name=one.name, is_shipped=one.is_shipped) for one in found]
    )


@router.get("/machines/{name}")
async def show_description(name: str, _: Reader) -> MachineOut:
    """Show a machine description."""
    machine = await asyncio.to_thread(read_named, name)
    return MachineOut(name=name, machine=machine_to_plain(machine))


def _describe(one: DeviceDescription, calibrated: set[str]) -> DeviceOut:
    return DeviceOut(**{**asdict(one), "is_calibrated": one.id in calibrated})
