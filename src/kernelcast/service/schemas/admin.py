"""Devices, machine descriptions, models and the audit log as callers see them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from kernelcast.service.schemas.common import Open, Strict, Text


class DeviceOut(Open):
    """A device of this host."""

    id: str
    name: str
    platform: str
    vendor: str
    driver: str
    opencl_version: str
    kind: str
    compute_units: int
    local_memory_bytes: int
    global_memory_bytes: int
    max_allocation_bytes: int
    max_work_group_size: int
    max_work_item_sizes: list[int]
    extensions: list[str]
    has_non_uniform_work_groups: bool
    has_fp64: bool
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


class ModelOut(Open):
    """Versions of a model."""

    name: str
    versions: list[str]
    used: str | None = Field(description="The version that estimates use.")
    latest: str | None
    pinned: str | None


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


class AuditEntry(Open):
    """Something that an administrator did."""

    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    remote: str
    request_id: str


class AuditOut(Open):
    """The audit log, newest first."""

    entries: list[AuditEntry]
