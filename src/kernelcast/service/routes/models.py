"""Learned models: which there are, which are used, how good they are."""

import asyncio
from typing import Any

from fastapi import APIRouter
from pydantic import Field

from kernelcast.service.dependencies import Admin, Call, ConditionalRoute, Reader
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.schemas.common import Open, Strict, Text, of_record
from kernelcast.training.registry import ModelVersions, is_evidence, open_registry

router = APIRouter(tags=["models"], route_class=ConditionalRoute)


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


@router.get("/models")
async def list_models(call: Reader) -> ModelsOut:
    """List the models of the registry, and those in use."""
    from kernelcast.reports.accuracy import list_used_models

    registry = call.service.settings.registry
    found = await asyncio.to_thread(open_registry(registry).list_models)
    used = await asyncio.to_thread(list_used_models, registry)
    return ModelsOut.model_validate({"models": found, "in_use": used})


@router.get("/models/{name:path}/report")
async def show_report(name: str, call: Reader, version: str | None = None) -> ModelReport:
    """Show what a version has learned from and how good it was found to be."""
    versions = await _find(name, call)
    if is_evidence(name):
        refuse_unknown("report", name)  # it is calibrated, and answers nothing alone
    wanted = versions.choose(version)
    registry = open_registry(call.service.settings.registry)
    stored = await asyncio.to_thread(registry.load, name, wanted)
    told = stored.describe()
    schema_id = told.pop("schema")
    return ModelReport(
        **ModelOut.model_validate(versions).model_dump(), version=wanted, schema_id=schema_id,
        **told,
    )  # fmt: skip


@router.post("/models/{name:path}/activate")
async def activate(name: str, asked: ActivateRequest, call: Admin) -> ModelOut:
    """Use a version, whatever is trained later."""
    await _find(name, call)
    await call.audit("activate_model", name, {"version": asked.version})
    registry = open_registry(call.service.settings.registry)
    return ModelOut.model_validate(await asyncio.to_thread(registry.pin, name, asked.version))


@router.post("/models/{name:path}/rollback")
async def roll_back(name: str, call: Admin) -> ModelOut:
    """Make the version before the latest the latest; nothing is deleted."""
    await _find(name, call)
    await call.audit("roll_back_model", name)
    registry = open_registry(call.service.settings.registry)
    return ModelOut.model_validate(await asyncio.to_thread(registry.roll_back, name))


@router.get("/models/{name:path}")
async def show_model(name: str, call: Reader) -> ModelOut:
    """Show the versions of a model."""
    return ModelOut.model_validate(await _find(name, call))


async def _find(name: str, call: Call) -> ModelVersions:
    """Find a model in the list: a name never becomes a path before it is known."""
    known = await asyncio.to_thread(open_registry(call.service.settings.registry).list_models)
    found = next((one for one in known if one.name == name), None)
    if found is None:
        refuse_unknown("model", name)
    return found
