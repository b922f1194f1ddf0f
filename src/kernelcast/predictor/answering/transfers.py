"""What a launch's buffers cost to move, by the calibrated description of the device."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.records.arguments import Access, BufferArgument
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """Time of moving buffers, each in a copy of its own."""

    to_device_s: float
    from_device_s: float
    """Buffers that the kernel may read, to the device, and those it may write, from it, in
    seconds."""


def estimate_transfers(
    problem: Problem, accesses: Sequence[Access | None], machine: MachineDescription | None
) -> Transfers | None:
    """Estimate how long a launch's buffers take to the device and back."""
    known = accesses or [getattr(one, "access", None) for one in problem.arguments]
    pairs = [
        (one.bytes, access or Access.READ_WRITE)
        for one, access in zip(problem.arguments, known, strict=True)
        if isinstance(one, BufferArgument)
    ]
    read = [size for size, access in pairs if access is not Access.WRITE]
    written = [size for size, access in pairs if access is not Access.READ]
    to_device_s = _sum(machine, "transfer_to_device", read)
    from_device_s = _sum(machine, "transfer_from_device", written)
    if to_device_s is None or from_device_s is None:
        return None
    return Transfers(to_device_s=to_device_s, from_device_s=from_device_s)


def _sum(machine: MachineDescription | None, way: str, sizes: Sequence[int]) -> float | None:
    if not sizes:
        return 0.0
    if machine is None:
        return None
    start = machine.costs.get(f"{way}_s")
    rate = machine.costs.get(f"{way}_bytes_per_s")
    if start is None or rate is None:
        return None
    return sum(start.value + size / rate.value for size in sizes)
