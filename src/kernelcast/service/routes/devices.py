"""Devices and machine descriptions."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from pydantic import Field

from kernelcast.launches.machine_file import machine_to_plain, read_machine
from kernelcast.launches.machines import list_machines
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.service.dependencies import ConditionalRoute, Reader
from kernelcast.service.errors import message_of, refuse_unknown
from kernelcast.service.schemas.common import Open, of_record

router = APIRouter(tags=["devices"], route_class=ConditionalRoute)


@of_record(DeviceDescription, without=frozenset({"dialect"}))
class DeviceOut(Open):
    """A device of this host."""

    kind: str
    is_calibrated: bool


class DevicesOut(Open):
    """Devices of this host."""

    devices: list[DeviceOut]


class MachineName(Open):
    """A machine description that there is."""

    name: str
    is_shipped: bool = Field(description="Came with kernelcast; else it was calibrated here.")


class MachinesOut(Open):
    """Machine descriptions that there are."""

    machines: list[MachineName]


class MachineOut(Open):
    """A machine description."""

    name: str
    machine: dict[str, Any] = Field(description="As the YAML file has it.")


@router.get("/devices")
async def list_devices(call: Reader) -> DevicesOut:
    """List the devices of this host."""
    return DevicesOut(devices=await _describe(await call.service.devices.list()))


@router.get("/devices/{device_id}")
async def show_device(device_id: str, call: Reader) -> DeviceOut:
    """Show one device, by its id or the beginning of it."""
    return (await _describe(await call.service.devices.choose([device_id])))[0]


@router.get("/machines")
async def list_descriptions(_: Reader) -> MachinesOut:
    """List the machine descriptions: of devices that were calibrated, and those shipped."""
    return MachinesOut.model_validate({"machines": await asyncio.to_thread(list_machines)})


@router.get("/machines/{name}")
async def show_description(name: str, _: Reader) -> MachineOut:
    """Show a machine description."""
    machine = await asyncio.to_thread(read_named, name)
    return MachineOut(name=name, machine=machine_to_plain(machine))


async def _describe(devices: Sequence[DeviceDescription]) -> list[DeviceOut]:
    known = await asyncio.to_thread(list_calibrated)
    return [DeviceOut(**{**asdict(one), "is_calibrated": one.id in known}) for one in devices]


def read_calibration(device_id: str) -> tuple[MachineDescription | None, str]:
    """Read the description that a calibration of this device has left; else say what is wrong."""
    known = (one for one in list_machines() if one.name == device_id and not one.is_shipped)
    found = next(known, None)
    if found is None:
        return None, ""
    try:
        return read_machine(found.path), ""
    except KernelcastError as error:
        return None, message_of(error)


def read_named(name: str) -> MachineDescription:
    """Read a description by its name, which is looked up in a list and never becomes a path."""
    path: Path | None = next((one.path for one in list_machines() if one.name == name), None)
    if path is None:
        refuse_unknown("machine", name)
    return read_machine(path)


def list_calibrated() -> set[str]:
    """Name the devices that were calibrated here."""
    return {one.name for one in list_machines() if not one.is_shipped}
