"""Devices, machine descriptions, and learned models: which are used, how good they are."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from pydantic import Field

from kernelcast.launches.machines import list_machines, machine_to_plain, read_machine
from kernelcast.records.device import DeviceDescription
from kernelcast.records.machine import MachineDescription
from kernelcast.service.dependencies import Admin, Call, ConditionalRoute, Reader
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.schemas import Open, Strict, Text, of_record
from kernelcast.training.registry import ModelVersions, is_evidence, load_model

router = APIRouter(route_class=ConditionalRoute)


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


@router.get("/devices", tags=["devices"])
async def list_devices(call: Reader) -> DevicesOut:
    """List the devices of this host."""
    return DevicesOut(devices=await _describe(await call.service.devices.list()))


@router.get("/devices/{device_id}", tags=["devices"])
async def show_device(device_id: str, call: Reader) -> DeviceOut:
    """Show one device, by its id or the beginning of it."""
    return (await _describe(await call.service.devices.choose([device_id])))[0]


@router.get("/machines", tags=["devices"])
async def list_descriptions(_: Reader) -> MachinesOut:
    """List the machine descriptions: of devices that were calibrated, and those shipped."""
    return MachinesOut.model_validate({"machines": await asyncio.to_thread(list_machines)})


@router.get("/machines/{name}", tags=["devices"])
async def show_description(name: str, _: Reader) -> MachineOut:
    """Show a machine description."""
    machine = await asyncio.to_thread(read_named, name)
    return MachineOut(name=name, machine=machine_to_plain(machine))


async def _describe(devices: Sequence[DeviceDescription]) -> list[DeviceOut]:
    known = await asyncio.to_thread(list_calibrated)
    return [DeviceOut(**{**asdict(one), "is_calibrated": one.id in known}) for one in devices]


def read_named(name: str) -> MachineDescription:
    """Read a description by its name, which is looked up in a list and never becomes a path."""
    path: Path | None = next((one.path for one in list_machines() if one.name == name), None)
    if path is None:
        refuse_unknown("machine", name)
    return read_machine(path)


def list_calibrated() -> set[str]:
    return {one.name for one in list_machines() if not one.is_shipped}


@of_record(ModelVersions)
class ModelOut(Open):
    """Versions of a model."""

    used: str | None = Field(description="The version that estimates use.")


class UsedModelOut(Open):
    """A model that estimates use."""

    name: str
    version: str
    is_shipped: bool = Field(description="Came with kernelcast; else it was trained here.")


class ModelsOut(Open):
    """Models of the registry, and those in use."""

    models: list[ModelOut]
    in_use: list[UsedModelOut] = Field(
        default=[], description="What estimates use: of the registry, or shipped with kernelcast."
    )


class ModelReport(ModelOut):
    """What is known of one version."""

    version: str | None
    schema_id: str
    features: list[str]
    learned: dict[str, Any]
    trained_with: dict[str, Any]
    validation: Any = Field(description="null where it was not validated.")


class ActivateRequest(Strict):
    """Which version estimates shall use."""

    version: Text | None = Field(
        description="A version or its beginning; null uses the latest again."
    )


@router.get("/models", tags=["models"])
async def list_models(call: Reader) -> ModelsOut:
    """List the models of the registry, and those in use."""
    from kernelcast.reports.accuracy import list_used_models

    found = await asyncio.to_thread(call.service.registry.list_models)
    used = await asyncio.to_thread(list_used_models, call.service.settings.registry)
    return ModelsOut.model_validate({"models": found, "in_use": used})


@router.get("/models/{name:path}/report", tags=["models"])
async def show_report(name: str, call: Reader, version: str | None = None) -> ModelReport:
    """Show what a version has learned from and how good it was found to be."""
    versions = await _find(name, call)
    if is_evidence(name):
        refuse_unknown("report", name)  # it is calibrated, and answers nothing alone
    wanted = versions.choose(version)
    stored = await asyncio.to_thread(load_model, call.service.registry, name, wanted)
    told = stored.describe()
    schema_id = told.pop("schema")
    return ModelReport(
        **ModelOut.model_validate(versions).model_dump(), version=wanted, schema_id=schema_id,
        **told,
    )  # fmt: skip


@router.post("/models/{name:path}/activate", tags=["models"])
async def activate(name: str, asked: ActivateRequest, call: Admin) -> ModelOut:
    """Use a version, whatever is trained later."""
    await _find(name, call)
    await call.audit("activate_model", name, {"version": asked.version})
    changed = await asyncio.to_thread(call.service.registry.pin, name, asked.version)
    return ModelOut.model_validate(changed)


@router.post("/models/{name:path}/rollback", tags=["models"])
async def roll_back(name: str, call: Admin) -> ModelOut:
    """Make the version before the latest the latest; nothing is deleted."""
    await _find(name, call)
    await call.audit("roll_back_model", name)
    changed = await asyncio.to_thread(call.service.registry.roll_back, name)
    return ModelOut.model_validate(changed)


@router.get("/models/{name:path}", tags=["models"])
async def show_model(name: str, call: Reader) -> ModelOut:
    """Show the versions of a model."""
    return ModelOut.model_validate(await _find(name, call))


async def _find(name: str, call: Call) -> ModelVersions:
    """Find a model in the list: a name never becomes a path before it is known."""
    known = await asyncio.to_thread(call.service.registry.list_models)
    found = next((one for one in known if one.name == name), None)
    if found is None:
        refuse_unknown("model", name)
    return found
