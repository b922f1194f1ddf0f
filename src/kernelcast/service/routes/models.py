"""Learned models: which there are, which are used, how good they are."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field

from kernelcast.service.dependencies import Admin, ConditionalRoute, OurService, Reader, audit
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.schemas.common import Open, Strict, Text, of_record
from kernelcast.service.service import Service
from kernelcast.training.registry import ModelVersions, is_evidence, open_registry

router = APIRouter(tags=["models"], route_class=ConditionalRoute)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,200})?")


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
async def list_models(service: OurService, _: Reader) -> ModelsOut:
    """List the models of the registry, and those in use."""
    from kernelcast.reports.accuracy import list_used_models

    registry = service.settings.registry
    found = await asyncio.to_thread(open_registry(registry).list_models)
    used = await asyncio.to_thread(list_used_models, registry)
    return ModelsOut.model_validate({"models": found, "in_use": used})


@router.get("/models/{name:path}/report")
async def show_report(
    name: str, service: OurService, _: Reader, version: str | None = None
) -> ModelReport:
    """Show what a version has learned from and how good it was found to be."""
    await _find(name, service)
    if is_evidence(name):
        refuse_unknown("report", name)  # it is calibrated, and answers nothing alone
    registry = open_registry(service.settings.registry)
    versions = await asyncio.to_thread(registry.find_model, name)
    wanted = versions.choose(version)
    stored = await asyncio.to_thread(registry.load, name, wanted)
    told = stored.describe()
    schema_id = told.pop("schema")
    return ModelReport(
        **ModelOut.model_validate(versions).model_dump(), version=wanted, schema_id=schema_id,
        **told,
    )  # fmt: skip


@router.post("/models/{name:path}/activate")
async def activate(
    name: str, asked: ActivateRequest, request: Request, service: OurService, caller: Admin
) -> ModelOut:
    """Use a version, whatever is trained later."""
    await _find(name, service)
    await audit(request, service, caller, "activate_model", name, {"version": asked.version})
    registry = open_registry(service.settings.registry)
    return ModelOut.model_validate(await asyncio.to_thread(registry.pin, name, asked.version))


@router.post("/models/{name:path}/rollback")
async def roll_back(name: str, request: Request, service: OurService, caller: Admin) -> ModelOut:
    """Make the version before the latest the latest; nothing is deleted."""
    await _find(name, service)
    await audit(request, service, caller, "roll_back_model", name)
    registry = open_registry(service.settings.registry)
    return ModelOut.model_validate(await asyncio.to_thread(registry.roll_back, name))


@router.get("/models/{name:path}")
async def show_model(name: str, service: OurService, _: Reader) -> ModelOut:
    """Show the versions of a model."""
    return ModelOut.model_validate(await _find(name, service))


async def _find(name: str, service: Service) -> ModelVersions:
    """Find a model in the list: a name never becomes a path before it is known."""
    known: Sequence[ModelVersions] = ()
    if _NAME.fullmatch(name):
        known = await asyncio.to_thread(open_registry(service.settings.registry).list_models)
    found = next((one for one in known if one.name == name), None)
    if found is None:
        refuse_unknown("model", name)
    return found
