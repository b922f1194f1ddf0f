"""Turns what a driver says and what microbenchmarks found into machine descriptions."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from kernelcast.records.device import DeviceDescription
from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks.bench import BenchmarkResult

Value = TypeVar("Value")

_SHARED = (
    "instructions", "caches", "memories", "warp_width", "clock_hz", "costs", "curves",
    "not_obtained",
)  # fmt: skip


def describe_reported(device: DeviceDescription) -> MachineDescription:
    return MachineDescription(
        **_identity(device),
        compute_units=_reported(device.compute_units),
        max_work_group_size=_reported(device.max_work_group_size),
        local_memory_bytes=_reported(device.local_memory_bytes),
    )


def describe_result(device: DeviceDescription, result: BenchmarkResult) -> MachineDescription:
    """Describe a machine by the outcome of one microbenchmark alone, in readable numbers."""
    found = {name: _rounded(getattr(result, name)) for name in _SHARED}
    return MachineDescription(**_identity(device), **found)


def describe_failure(device: DeviceDescription, name: str, reason: str) -> MachineDescription:
    return MachineDescription(**_identity(device), not_obtained={name: reason})


def _identity(device: DeviceDescription) -> dict[str, Any]:
    return {name: getattr(device, name) for name in ("id", "name", "kind", "platform", "driver")}


def _reported(value: int) -> Trait[int] | None:
    origin = "the OpenCL driver"
    return Trait(value=value, source=TraitSource.REPORTED, origin=origin) if value > 0 else None


def _rounded(value: Value) -> Value:
    rounded: Any = value
    if isinstance(value, float):
        rounded = float(f"{value:.6g}")  # no measurement is more exact
    elif isinstance(value, Mapping):
        rounded = {key: _rounded(one) for key, one in value.items()}
    elif isinstance(value, tuple):
        rounded = tuple(map(_rounded, value))
    elif is_dataclass(value) and not isinstance(value, type):
        changes = {one.name: _rounded(getattr(value, one.name)) for one in fields(value)}
        rounded = replace(value, **changes)
    return rounded  # type: ignore[no-any-return]  # rounding keeps the type
