"""The rates of a GPU, taken from its machine description."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.analytic.gpu.architectures import Architecture, find_architecture
from kernelcast.analytic.gpu.limiters.constants import LimiterConstants, Translation
from kernelcast.analytic.gpu.limiters.demands import SECTOR_BYTES
from kernelcast.analytic.gpu.limiters.saturation import DramRate, read_dram_rate
from kernelcast.analytic.gpu.machine import need, read_value
from kernelcast.records.errors import InputError
from kernelcast.records.machine import InstructionFacts, MachineDescription

_BYTES_PER_CYCLE = 128
_LAUNCH_S = 2.4e-6
"""The published machine descriptions that know it say 1.6 to 3.3 us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Seconds of a dependent load that hits each level."""

    l1_s: float
    l2_s: float
    dram_s: float
    """0 where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRates:
    """What a GPU does per second."""

    compute_units: int
    warp_width: int
    """Of the chip."""
    clock_hz: float
    """Cycles of an L1 cache per second."""
    sector_bytes: int
    """Bytes of a line that arrive in L1 together."""
    l2_bytes_per_s: float | None
    """Between all L1 caches and L2; None if it is not known."""
    dram: DramRate
    """By concurrency and by the part that stores have."""
    latencies: Latencies
    """Of loads."""
    instructions: Mapping[str, InstructionFacts]
    """By kind."""
    costs: Mapping[str, float]
    """As in the machine description."""
    launch_s: float
    """Of one launch."""
    translation: Translation | None
    """None if it is not known."""
    notes: tuple[str, ...]
    """What was assumed or is left out."""
    overlap_power: float
    """How arithmetic, issue and memory overlap, see `Limits`."""
    architecture: Architecture
    """Its family."""
    max_work_items: int | None = None
    """Work-items that a compute unit holds at once; None if it is not known."""


def read_rates(machine: MachineDescription, constants: LimiterConstants) -> GpuRates:
    """Take what the limiters need from a machine description.

    Parameters
    ----------
    constants : LimiterConstants
        Bandwidths in it replace those of the description.

    Raises
    ------
    InputError
        If a number is missing that nothing can stand in for; names the command that measures it.
    """
    notes: list[str] = []
    l1, l2 = machine.cache("L1"), machine.cache("L2")
    l2_rate, dram_rate = constants.bandwidths.get(machine.id, (None, None))
    if l2_rate is None:
        l2_rate = read_value(l2.load_bytes_per_s if l2 else None) or None
    if l2_rate is None:
        notes.append(
            "bandwidth of L2: not in the machine description, its limiter is left out; "
            "`kernelcast calibrate --only caches` measures it"
        )
    memory = machine.memory("global")
    return GpuRates(
        compute_units=need(machine.compute_units, "compute_units", machine),
        warp_width=need(machine.warp_width, "warp_width", machine),
        clock_hz=_find_clock(machine, notes),
        sector_bytes=read_value(l1.sector_bytes if l1 else None) or SECTOR_BYTES,
        l2_bytes_per_s=l2_rate,
        dram=DramRate.flat(dram_rate) if dram_rate else read_dram_rate(machine, notes),
        latencies=Latencies(
            l1_s=read_value(l1.latency_s if l1 else None) or 0.0,
            l2_s=read_value(l2.latency_s if l2 else None) or 0.0,
            dram_s=read_value(memory.latency_s if memory else None) or 0.0,
        ),
        instructions={one.name: one for one in machine.instructions},
        costs={name: one.value for name, one in machine.costs.items()},
        launch_s=_find_launch(machine, notes),
        translation=_find_translation(machine, constants, notes),
        notes=tuple(notes),
        overlap_power=_find_power(machine, constants),
        architecture=find_architecture(machine),
        max_work_items=read_value(machine.max_work_items_per_unit),
    )


def _find_clock(machine: MachineDescription, notes: list[str]) -> float:
    if machine.clock_hz is not None:
        return machine.clock_hz.value
    l1 = machine.cache("L1")
    if l1 is not None and l1.load_bytes_per_s is not None and machine.compute_units is not None:
        notes.append(
            f"clock: not in the machine description, taken from the bandwidth of L1 at "
            f"{_BYTES_PER_CYCLE} bytes a cycle"
        )
        return l1.load_bytes_per_s.value / machine.compute_units.value / _BYTES_PER_CYCLE
    msg = (
        f"machine {machine.id}: neither clock_hz nor the bandwidth of L1 is known; `kernelcast "
        "calibrate --only clock` or `--only caches` measures it, or write it into the machine file"
    )
    raise InputError(msg)


def _find_launch(machine: MachineDescription, notes: list[str]) -> float:
    known = [
        machine.costs[name].value
        for name in ("launch_in_batch_s", "launch_s")
        if name in machine.costs
    ]
    if known:
        return min(known)
    notes.append(f"launch_s: not in the machine description, {_LAUNCH_S:g} s assumed")
    return _LAUNCH_S


def _find_power(machine: MachineDescription, constants: LimiterConstants) -> float:
    """Give the device's own power; the paper's constants stay the paper's."""
    own = machine.costs.get("overlap_power")
    if own is None or not constants.counts_beyond_paper:
        return constants.overlap_power
    return own.value


def _find_translation(
    machine: MachineDescription, constants: LimiterConstants, notes: list[str]
) -> Translation | None:
    pages, miss = (machine.costs.get(f"translation_{name}") for name in ("pages_count", "miss_s"))
    if pages is not None and miss is not None:
        return Translation(pages=pages.value, miss_s=miss.value)
    found = constants.translation.get(machine.id)
    if found is None:
        notes.append("address translation: not known of this machine, left out")
    return found
