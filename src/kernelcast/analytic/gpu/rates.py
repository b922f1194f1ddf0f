"""What a GPU does per second, by its description, and the few constants of the limiters."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernelcast.analytic.gpu.machine import GpuMachine, read_machine, read_value
from kernelcast.records.errors import InputError
from kernelcast.records.machine import InstructionFacts, MachineDescription, refuse_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterConstants:
    """How limiters overlap, and numbers of machines that no machine description holds."""

    name: str
    exposed_wavefronts: float
    """Part of the L1 cache's wavefront cycles during which a compute unit does not take part in
    DRAM transfers: loads return in order, so hits wait behind misses. Counts for the part of the
    loads that hits, half of it where no place for work-items stays empty."""
    exposed_lines: float
    """Cycles of the same kind for each line that a warp's load looks up."""
    overlap_power: float
    """How arithmetic, issue and memory overlap, see `Limits`, where the machine description has no
    ``overlap_power`` of its own."""
    is_paper: bool = False
    """Whether only the paper's limiters count: the largest of FP, L1, L2 and DRAM, without the
    sectors that fill L1 (one a cycle), with bank conflicts by half-warps (section 4.2), and no
    saturation, latency, translation, tail, launch and the rest."""
    bandwidths: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Bytes per second of L2 and DRAM by machine id, in place of the description's."""
    translation: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """See `GpuRates`, by machine id."""


# Fitted to the run times of 20 local sizes of a 25-point stencil on a V100; overlap_power is the
# median of five GPUs' rooflines (benchmarks/results/gpu_families).
FITTED = LimiterConstants(
    name="kernelcast",
    exposed_wavefronts=0.965,
    exposed_lines=0.447,
    overlap_power=2.4,
    translation={"v100": (73.0, 46e-9)},
)
# Ernst et al., JPDC 2022, with the bandwidths of its implementation.
PAPER_2022 = LimiterConstants(
    name="paper-2022",
    exposed_wavefronts=0.0,
    exposed_lines=0.0,
    overlap_power=math.inf,
    is_paper=True,
    bandwidths={"v100": (2500e9, 790e9), "a100": (4500e9, 1400e9)},
)


def match_constants(hit_rates: str) -> LimiterConstants:
    """Choose the constants that belong to hit rates of that name."""
    return PAPER_2022 if hit_rates == PAPER_2022.name else FITTED


ELEMENT_BYTES = 8
"""Bytes that a work-item of the published saturation curves has in flight."""
_MIXED = 0.05
"""Part of stores from which a stream is as slow as a copy: the bus turns around anyway."""


Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Work-items of 8 bytes each per compute unit, ascending, and the bytes per second that they reach:
proportional below the first point, flat above the last one."""


_NO_ITEMS = 1e-9
"""So few work-items that no launch falls below them."""
_BYTES_PER_CYCLE = 128
_LAUNCH_S = 2.4e-6
"""The published machine descriptions that know it say 1.6 to 3.3 us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRates:
    machine: GpuMachine
    constants: LimiterConstants
    clock_hz: float
    """Cycles of an L1 cache per second, also where the description lacks the clock."""
    l2_bytes_per_s: float | None
    dram_load: Curve
    dram_copy: Curve
    """Bandwidth of the DRAM, of loads alone, and of as many loads as stores."""
    l3_bytes_per_s: float | None
    """Of the cache behind L2, by which all goes between L2 and DRAM."""
    l1_latency_s: float
    l2_latency_s: float
    l3_latency_s: float
    dram_latency_s: float
    """Of a dependent load that hits each level, 0 where it is not known."""
    instructions: Mapping[str, InstructionFacts]
    costs: Mapping[str, float]
    launch_s: float
    translation: tuple[float, float]
    """Pages of 2 MiB that a work-group may use at once before a compute unit loses translations of
    addresses, and seconds of each that it misses then."""
    notes: tuple[str, ...]
    overlap_power: float

    def dram_bytes_per_s(self, items: float, store_share: float) -> float:
        """Look up the DRAM's bandwidth with so many work-items of 8 bytes on a compute unit."""
        mixed = min(store_share / _MIXED, 1.0)
        load, copy = (
            float(np.interp(items, (0.0, *reached), (0.0, *rates)))
            for reached, rates in (self.dram_load, self.dram_copy)
        )
        return (1 - mixed) * load + mixed * copy

    def peak(self, instruction: str) -> float:
        """Look up what all compute units reach of an instruction, 0 where it is not known."""
        facts = self.instructions.get(instruction)
        return (read_value(facts.peak_per_s) if facts else None) or 0.0

    def ridge_work_items(self, instruction: str) -> float:
        """Find the work-items per unit that reach the peak: measured, else by Little's law."""
        facts = self.instructions.get(instruction)
        if facts is None:
            return 0.0
        if facts.ridge_work_items is not None:
            return facts.ridge_work_items.value
        latency_s = read_value(facts.completion_latency_s.get(1)) or 0.0
        return self.peak(instruction) / self.machine.compute_units * latency_s


def read_rates(machine: MachineDescription, constants: LimiterConstants) -> GpuRates:
    notes: list[str] = []
    gpu = read_machine(machine)
    l1, l2, l3 = (machine.cache(name) for name in ("L1", "L2", "L3"))
    l2_rate, dram_rate = constants.bandwidths.get(machine.id, (None, None))
    if l2_rate is None:
        l2_rate = read_value(l2.load_bytes_per_s if l2 else None) or None
    if l2_rate is None:
        notes.append(
            "bandwidth of L2: not in the machine description, its limiter is left out; "
            "`kernelcast calibrate --only caches` measures it"
        )
    memory = machine.memory("global")
    launches = (machine.costs.get(name) for name in ("launch_in_batch_s", "launch_s"))
    known = [one.value for one in launches if one is not None]
    if not known:
        notes.append(f"launch_s: not in the machine description, {_LAUNCH_S:g} s assumed")
    load = dram_rate or gpu.dram_load_bytes_per_s or gpu.dram_copy_bytes_per_s
    copy = dram_rate or gpu.dram_copy_bytes_per_s or load
    if not load or not copy:
        refuse_missing(gpu.id, "the bandwidth of global memory", "bandwidth")

    def read_curve(name: str, peak: float) -> Curve:
        curve, enough = machine.curve(f"saturation/global/{name}"), _NO_ITEMS
        if dram_rate:
            pass
        elif curve is not None:
            return curve.x, curve.y
        elif memory is not None and memory.latency_s is not None:
            enough = peak * memory.latency_s.value / ELEMENT_BYTES / gpu.compute_units
            notes.append(f"saturation of {name}: not measured, from latency by Little's law")
        else:
            about = "not measured and no latency known, taken as saturated"
            notes.append(f"saturation of {name}: {about}")
        return (enough,), (peak,)

    dram_load, dram_copy = read_curve("load", load), read_curve("copy", copy)
    clock_hz = gpu.clock_hz
    if clock_hz is None:
        if gpu.l1_bytes_per_s is None:
            raise InputError(
                f"machine {gpu.id}: neither clock_hz nor the bandwidth of L1 is known; `kernelcast "
                "calibrate --only clock` or `--only caches` measures it, or write it into the "
                "machine file"
            )
        notes.append(
            "clock: not in the machine description, taken from the bandwidth of L1 at "
            f"{_BYTES_PER_CYCLE} bytes a cycle"
        )
        clock_hz = gpu.l1_bytes_per_s / gpu.compute_units / _BYTES_PER_CYCLE
    pages, miss = (machine.costs.get(f"translation_{name}") for name in ("pages_count", "miss_s"))
    translation = constants.translation.get(machine.id, (math.inf, 0.0))
    if pages is not None and miss is not None:
        translation = pages.value, miss.value
    elif machine.id not in constants.translation:
        notes.append("address translation: not known of this machine, left out")
    # The paper's constants stay the paper's.
    own = None if constants.is_paper else machine.costs.get("overlap_power")
    return GpuRates(
        machine=gpu,
        constants=constants,
        clock_hz=clock_hz,
        l2_bytes_per_s=l2_rate,
        dram_load=dram_load,
        dram_copy=dram_copy,
        l3_bytes_per_s=read_value(l3.load_bytes_per_s if l3 else None),
        l1_latency_s=read_value(l1.latency_s if l1 else None) or 0.0,
        l2_latency_s=read_value(l2.latency_s if l2 else None) or 0.0,
        l3_latency_s=read_value(l3.latency_s if l3 else None) or 0.0,
        dram_latency_s=read_value(memory.latency_s if memory and not constants.is_paper else None)
        or 0.0,
        instructions={one.name: one for one in machine.instructions},
        costs={name: one.value for name, one in machine.costs.items()},
        launch_s=min(known, default=_LAUNCH_S),
        translation=translation,
        overlap_power=constants.overlap_power if own is None else own.value,
        notes=tuple(notes),
    )
