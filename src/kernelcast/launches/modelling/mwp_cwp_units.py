"""What stands for a streaming multiprocessor and a warp on a GPU and on a CPU."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import NoReturn

from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.analytic.cpu.opencl.execution import find_execution
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.occupancy import compute_occupancy
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription

_SECTOR_BYTES = 32
_NANOSECONDS = 1e9
_WIDE_BITS = 64
_USUAL_BITS = 32
_SLOWER: Mapping[str, float] = {"fp64": 2.0, "native_special": 4.0, "special": 4.0}
"""Times of an fp32 instruction, where the machine description does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The compute units of a device, as one launch finds them."""

    count: int
    """Compute units."""
    warp_width: int
    """Work-items that issue together: a warp, or those in the lanes of a CPU's vector."""
    warps_per_group: int
    """Of a work-group, the last perhaps partial."""
    resident_groups: int
    """Work-groups that a unit holds at once."""
    clock_hz: float
    """Turns seconds into the model's cycles and back; its value does not change the answer."""
    bandwidth_bytes_per_s: float
    """Of memory, all units together."""
    latency_s: float
    """Of memory."""
    path_bytes_per_s: float
    """What one unit takes from the cache that all its requests pass."""
    transaction_bytes: int
    """What one transaction of an uncoalesced request moves."""
    instruction_s: Mapping[str, float]
    """Seconds for which one instruction of a warp occupies a unit: ``fp32``, ``fp64``, ``special``,
    ``native_special``."""
    notes: tuple[str, ...] = field(default=())
    """What was assumed."""


def read_units(launch: ModelledLaunch, machine: MachineDescription) -> Units:
    """Describe the compute units of a machine for a launch."""
    if machine.kind is DeviceKind.CPU:
        return _read_cpu(launch, machine)
    if machine.kind is DeviceKind.GPU:
        return _read_gpu(launch, machine)
    msg = f"{machine.id} is of kind {machine.kind}; MWP-CWP is for GPUs and CPUs"
    raise InputError(msg)


def _read_gpu(launch: ModelledLaunch, machine: MachineDescription) -> Units:
    gpu = read_machine(machine)
    occupancy = compute_occupancy(launch, gpu)
    width, count = gpu.warp_width, gpu.compute_units
    notes = list(occupancy.notes)
    bandwidth = gpu.dram_load_bytes_per_s or gpu.dram_copy_bytes_per_s
    if not bandwidth:
        _refuse(machine, "the bandwidth of global memory", "bandwidth")
    lanes = dict.fromkeys(("fp32", *_SLOWER), 1)
    return Units(
        count=count,
        warp_width=width,
        warps_per_group=occupancy.warps_per_work_group,
        resident_groups=occupancy.work_groups,
        clock_hz=gpu.clock_hz or _NANOSECONDS,
        bandwidth_bytes_per_s=bandwidth,
        latency_s=_find_latency(machine),
        path_bytes_per_s=_find_path(machine, bandwidth, notes) / count,
        transaction_bytes=_SECTOR_BYTES,
        instruction_s=_time_instructions(machine, (count, width), lanes, notes),
        notes=tuple(notes),
    )


def _read_cpu(launch: ModelledLaunch, machine: MachineDescription) -> Units:
    """Take a core for a multiprocessor, and the work-items in the lanes of a vector for a warp.

    A core runs one work-group after the other. Its vectors are independent: out-of-order execution
    and prefetching overlap their requests, and go on into the next work-group. So all work-groups
    of a core count as resident, unless barriers hold each together; then one does.
    """
    device = read_device(machine)
    execution = find_execution(launch, device)
    notes = list(device.notes)
    memory = device.levels[-1]
    bandwidth = 1 / memory.load_s_per_byte
    return Units(
        count=device.cores,
        warp_width=execution.width,
        warps_per_group=ceil(launch.ndrange.work_group_size / execution.width),
        resident_groups=1 if execution.barriers else launch.ndrange.work_group_count,
        clock_hz=machine.clock_hz.value if machine.clock_hz else _NANOSECONDS,
        bandwidth_bytes_per_s=bandwidth,
        latency_s=_find_latency(machine),
        path_bytes_per_s=_find_path(machine, bandwidth, notes) / device.cores,
        transaction_bytes=device.line_bytes,
        instruction_s=_time_instructions(
            machine, (device.cores, execution.width), _list_lanes(device), notes
        ),
        notes=tuple(notes),
    )


def _list_lanes(device: CpuDevice) -> dict[str, int]:
    """Give the lanes that an instruction fills at least: a scalar one takes a whole slot."""
    return {
        "fp32": device.lanes_of(_USUAL_BITS),
        "fp64": device.lanes_of(_WIDE_BITS),
        "native_special": 1,
        "special": 1,
    }


def _find_latency(machine: MachineDescription) -> float:
    memory = machine.memory("global")
    if memory is None or memory.latency_s is None:
        _refuse(machine, "the latency of global memory", "caches")
    return memory.latency_s.value


def _find_path(machine: MachineDescription, bandwidth: float, notes: list[str]) -> float:
    """Give the bandwidth of the farthest cache that it is known of, all units together.

    It paces requests as they leave a unit; MWP_peak_BW limits by memory itself.
    """
    for cache in reversed(machine.caches):
        if cache.load_bytes_per_s is not None and cache.name != "L1":
            return max(cache.load_bytes_per_s.value, bandwidth)
    notes.append("departure delay: no cache's bandwidth is known, that of memory is taken")
    return bandwidth


def _time_instructions(
    machine: MachineDescription,
    shape: tuple[int, int],
    lanes: Mapping[str, int],
    notes: list[str],
) -> dict[str, float]:
    """Give the seconds that an instruction of a warp occupies a unit."""
    count, width = shape
    times: dict[str, float] = {}
    for kind in ("fp32", *_SLOWER):
        facts = machine.instruction(kind)
        if facts is not None and facts.peak_per_s is not None:
            times[kind] = count * max(width, lanes[kind]) / facts.peak_per_s.value
    if "fp32" not in times:
        _refuse(machine, "the throughput of fp32", "instructions-fp32")
    for kind, factor in _SLOWER.items():
        if kind not in times:
            times[kind] = factor * times["fp32"]
            notes.append(f"throughput of {kind}: not known, {factor:g} times slower than fp32")
    return times


def _refuse(machine: MachineDescription, what: str, only: str) -> NoReturn:
    msg = (
        f"machine {machine.id}: {what} is missing, and MWP-CWP cannot do without it; measure it "
        f"with `kernelcast calibrate --only {only}`, or write it into the machine file"
    )
    raise InputError(msg)
