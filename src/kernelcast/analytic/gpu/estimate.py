"""The GPU model's answer: seconds of a launch, the time of each limiter, and what bounds it."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kernelcast.analytic.gpu.machine import (
    ELEMENT_BYTES,
    FITTED,
    GpuRates,
    LimiterConstants,
    read_rates,
)
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.analytic.gpu.volumes.listed import divide_warps, evaluate_groups
from kernelcast.analytic.gpu.volumes.warps import count_conflicts
from kernelcast.expressions import TRUE, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess, ModelledLaunch
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts
from kernelcast.records.operations import OperationKind as Kind


def estimate_gpu(
    launch: ModelledLaunch,
    machine: MachineDescription,
    volumes: GpuVolumes | None = None,
    *,
    constants: LimiterConstants = FITTED,
) -> AnalyticEstimate:
    """Estimate the time of a launch on a GPU, from its volumes where they are known already."""
    given = read_rates(machine, constants)
    volumes = volumes or compute_volumes(launch, given.machine)
    found = LimiterModel(launch, volumes, given).assess()
    l1, wave, groups, misses = volumes.l1, volumes.wave, volumes.work_groups, {}
    seconds, resident = found.seconds, volumes.occupancy.work_groups
    issued = sum(launch.executed.operations.values()) + sum(launch.executed.memory.values())
    if issued:
        # Over issued instructions, as the sampling paper's Table 1 counts them.
        every = issued * groups * volumes.occupancy.warps_per_work_group
        misses = {
            "l1_miss_ratio": volumes.l2_load_bytes / given.machine.l1_sector_bytes / every,
            "l2_miss_ratio": volumes.dram_load_bytes / given.machine.dram_fetch_bytes / every,
        }
    return AnalyticEstimate(
        model="gpu",
        machine=machine.id,
        seconds=seconds,
        limiter=found.limiter,
        limiters=dict(found.times),
        volumes=volumes.crossing_bytes,
        quantities={
            "l1_cycles_per_warp": l1.warp_cycles,
            "l1_lines_per_warp": l1.load_lines,
            "l1_load_requests_per_warp": l1.load_requests,
            "l1_store_requests_per_warp": l1.store_requests,
            "l1_allocated_bytes_per_work_group": l1.allocated_bytes,
            "l1_oversubscription_ratio": l1.oversubscription,
            "l2_load_bytes_per_work_group": l1.loaded_bytes,
            "l2_store_bytes_per_work_group": l1.stored_bytes,
            "l2_oversubscription_ratio": wave.oversubscription,
            "dram_load_bytes_per_work_group": volumes.dram_load_bytes / groups,
            "dram_store_bytes_per_work_group": volumes.dram_store_bytes / groups,
            "reused_bytes_per_work_group": wave.reused_bytes / wave.work_groups,
            "pages_of_wave_count": wave.tlb_pages,
            "pages_per_work_group": volumes.pages,
            "work_groups_per_compute_unit": float(resident),
            "waves_count": wave.waves,
            "updates_per_s": volumes.updates / seconds,
            "exposed_l1_s": found.exposed_l1_s,
            "resident_work_items_per_compute_unit": float(resident * volumes.work_group_size),
            "updates_per_work_item": float(launch.updates_per_work_item),
            **misses,
            **{f"without_{name.lower()}_s": seconds for name, seconds in found.without.items()},
        },
        notes=tuple(dict.fromkeys((*launch.notes, *volumes.notes, *found.notes))),
    )


ADDED = ("translation", "tail", "launch")
"""Limiters during which nothing else goes on."""
ARITHMETIC = ("fp32", "fp64", "int", "special", "issue")
"""Limiters that overlap with those of memory as far as a power says."""
_PAPER = ("fp32", "fp64", "L1", "L2", "DRAM")
_NEGLIGIBLE = 0.05
_FETCH_BYTES = 64
_BANKS, _BANK_BYTES = 32, 4
_ATOMIC_BYTES = 32
_BARRIER_CYCLES = 30
"""About the latency of an L1 hit on V100 and A100, 28 and 36 cycles in gpu-benches."""
_LANES = 64
"""fp32 lanes of a compute unit where nobody says: V100 to H100 and CDNA have 64 to 128."""
_UNROLLED = 4
"""Iterations of a loop that share one step of its counter, one comparison and one branch, and whose
loads compilers keep in flight together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    times: Mapping[str, float]
    """Of each limiter alone, in seconds."""
    exposed_l1_s: float
    power: float = math.inf
    """How arithmetic, other instructions and memory overlap: the time of all three is the root of
    their powers' sum. With infinity the longest one counts."""
    beside_s: float = 0.0
    """Time of issuing the instructions that the longest kind of arithmetic does not execute."""
    notes: tuple[str, ...] = ()

    @property
    def without(self) -> dict[str, float]:
        """The time if one limiter each took none: what would help most is smallest."""
        return {
            name: replace(
                self,
                times={**self.times, name: 0.0},
                exposed_l1_s=0.0 if name == "L1" else self.exposed_l1_s,
                beside_s=0.0 if name == "issue" else self.beside_s,
            ).seconds
            for name in self.times
        }

    @property
    def seconds(self) -> float:
        # The DRAM waits for a part of L1's cycles, so the two add: on a V100 the time of a stencil
        # exceeds that of the DRAM by the same amount from 4 to 16 ms. All else overlaps, except
        # the limiters in `ADDED`, and arithmetic with memory in part: where both take equally long,
        # launches of gpu-benches' roofline last 8 % longer on an A40 and 17 % on an A100. A unit
        # of arithmetic waits in the same way while a scheduler issues other instructions.
        dram_s = self.times.get("DRAM", 0.0)
        path_s = dram_s + self.exposed_l1_s if dram_s else 0.0
        arithmetic_s = max((self.times.get(name, 0.0) for name in ARITHMETIC), default=0.0)
        memory_s = max(
            (s for name, s in self.times.items() if name not in (*ARITHMETIC, *ADDED)), default=0.0
        )
        beside = arithmetic_s, self.beside_s, max(memory_s, path_s)
        alone_s = max(beside)
        if alone_s > 0 and not math.isinf(self.power):
            alone_s *= float(
                sum((one / alone_s) ** self.power for one in beside) ** (1 / self.power)
            )
        return alone_s + sum(self.times.get(name, 0.0) for name in ADDED)

    @property
    def limiter(self) -> str:
        """The limiter whose removal saves most time; of equal savings, the longest."""
        whole = self.seconds
        saved = {name: whole - seconds for name, seconds in self.without.items()}
        if max(saved.values()) < _NEGLIGIBLE * whole:
            return max(self.times, key=self.times.__getitem__)
        return max(self.times, key=lambda name: (saved[name], self.times[name]))


class Schedule(NamedTuple):
    private_factor: float
    """Time of the busiest compute unit over the mean."""
    waves: float
    """Work-groups that run one after the other in each place."""
    phases: Sequence[tuple[float, float]]
    """Part of all work-groups, and how many of them a compute unit holds meanwhile."""


class LimiterModel:
    """What a launch asks of each part of a GPU, and how long that takes; times are in seconds."""

    def __init__(self, launch: ModelledLaunch, volumes: GpuVolumes, rates: GpuRates) -> None:
        self.launch, self.volumes, self.rates = launch, volumes, rates
        self.notes = [*rates.notes]
        self.atomics = count_atomics(launch.accesses, launch.executed)
        # Times that a work-item waits for loads, one after the other; slots of each kind of
        # arithmetic, and cycles of local memory as if no banks were in conflict.
        if work := launch.work:
            self.rounds, local_cycles = max(work["rounds"], 1.0), work["wavefronts"]
            self.slots = {name: work[name] for name in ("fp32", "fp64", "int", "special")}
        else:
            self.rounds = count_rounds(launch.accesses, volumes.l1.load_requests)
            self.slots = count_slots(launch.executed)
            local_cycles = sum(
                times * max(one.bytes * rates.machine.warp_width / (_BANKS * _BANK_BYTES), 1.0)
                for one, times in launch.executed.memory.items()
                if one.space is MemorySpace.LOCAL
            )
        self.local_cycles = local_cycles * count_local_ways(launch, rates.machine.warp_width)

    def assess(self) -> Limits:
        """Compute the time of each limiter, and of what the last wave and the launch itself add."""
        units, work_groups = self.rates.machine.compute_units, self.volumes.work_groups
        resident = self.volumes.occupancy.work_groups
        places = units * resident
        # Without beginning and end: all units are always full.
        held = min(float(resident), work_groups / units)
        limits = self._measure(Schedule(1.0, max(work_groups / places, 1.0), [(1.0, held)]))
        if self.rates.constants.is_paper:
            times = {name: s for name, s in limits.times.items() if name in _PAPER}
            return replace(limits, times=times, beside_s=0.0)
        # As whole work-groups allow.
        full, rest = divmod(work_groups, places)
        phases = [(full * places / work_groups, float(resident))] if full else []
        if rest:
            phases.append((rest / work_groups, rest / units))
        factor = math.ceil(work_groups / units) * units / work_groups
        whole = self._measure(Schedule(factor, full + (rest > 0), phases))
        overheads = {
            "tail": max(whole.seconds - limits.seconds, 0.0), "launch": self.rates.launch_s
        }  # fmt: skip
        return replace(limits, times={**limits.times, **overheads})

    def _measure(self, plan: Schedule) -> Limits:
        volumes, rates, machine = self.volumes, self.rates, self.rates.machine
        l1_s, exposed_s = self.time_l1(plan)
        arithmetic = self.time_instructions(plan)
        issue_s, beside_s = self.time_issue(plan, arithmetic)
        moved = volumes.l2_load_bytes + volumes.l2_store_bytes
        # Local memory delivers once a cycle.
        local_per_s = machine.compute_units * rates.clock_hz / plan.private_factor
        atomics_s = self.time_atomics()
        # A barrier stops a work-group, not its neighbours.
        barriers = self.launch.executed.count(Kind.BARRIER)
        if barriers and "barrier_s" not in rates.costs:
            self.notes.append(
                f"barrier_s: not in the machine description, {_BARRIER_CYCLES} cycles assumed; "
                "`kernelcast calibrate --only barrier` measures it"
            )
        barrier_s = rates.costs.get("barrier_s", _BARRIER_CYCLES / rates.clock_hz)
        # Each die starts its work-groups one after another.
        dies = machine.compute_units / machine.l2_units
        assumed_s = machine.architecture.dispatch_cycles / (rates.clock_hz * dies)
        dispatch_s = rates.costs.get("work_group_dispatch_s", assumed_s)
        # The next work-group finds the translations of the last one, but for those that did not
        # fit.
        pages, miss_s = rates.translation
        groups_per_unit = volumes.work_groups / machine.compute_units * plan.private_factor
        times = {
            **arithmetic,
            "issue": issue_s,
            "L1": l1_s,
            "L2": moved / rates.l2_bytes_per_s if rates.l2_bytes_per_s else 0.0,
            "DRAM": self.time_dram(plan),
            "latency": self.time_latency(plan),
            "local": self.local_cycles * volumes.warps / local_per_s,
            "atomics": atomics_s,
            "barriers": barriers * barrier_s * plan.waves,
            "dispatch": volumes.work_groups * dispatch_s,
            "translation": groups_per_unit * max(volumes.pages - pages, 0.0) * miss_s,
        }
        return Limits(
            times=times, exposed_l1_s=exposed_s, power=rates.overlap_power, beside_s=beside_s,
            notes=tuple(dict.fromkeys(self.notes)),
        )  # fmt: skip

    def time_l1(self, plan: Schedule) -> tuple[float, float]:
        """Compute how long the L1 caches are busy, and transfers with the DRAM wait."""
        # An access occupies its cache for its wavefronts; a sector from L2 occupies it for one
        # cycle, since the cache has one port (as between L1 and L2 of a CPU in the ECM model).
        volumes, constants, machine = self.volumes, self.rates.constants, self.rates.machine
        l1, is_paper = volumes.l1, constants.is_paper
        per_warp = l1.half_warp_cycles if is_paper else l1.warp_cycles
        cycles_per_s = machine.compute_units * self.rates.clock_hz / plan.private_factor
        sectors = 0.0 if is_paper else volumes.l2_load_bytes / machine.l1_sector_bytes
        waiting = constants.exposed_wavefronts * per_warp + constants.exposed_lines * l1.load_lines
        # Only what L1 has can wait behind what it has not; half of that where all places are taken.
        # Where all are taken, some work-group always waits for the DRAM while others use the cache:
        # box stencils with 2048 work-items a unit reach the bandwidth of a copy, those with 1024 do
        # not.
        idleness = 0.5
        if machine.unit.max_warps:
            resident = volumes.occupancy.work_groups * volumes.work_group_size
            idleness = max(0.0, 1 - resident / (machine.unit.max_warps * machine.warp_width))
        waiting *= l1.hit_share * (0.25 + 0.5 * idleness)
        busy_s = (per_warp * volumes.warps + sectors) / cycles_per_s
        return busy_s, waiting * volumes.warps / cycles_per_s

    def time_dram(self, plan: Schedule) -> float:
        volumes, rates = self.volumes, self.rates
        loaded, stored = volumes.dram_load_bytes, volumes.dram_store_bytes
        every = loaded + stored
        if every < 1:
            return 0.0
        # The bandwidth follows from what is in flight (Little's law, by the measured curve): the
        # work-items of a unit times the bytes that each of them waits for at once. A round of loads
        # has its share of all bytes, but a warp that misses at all waits for a whole fetch. Nothing
        # waits for stores.
        own_loaded, own_stored = loaded / volumes.work_items, stored / volumes.work_items
        in_flight = max(
            own_loaded / self.rounds,
            min(own_loaded, _FETCH_BYTES / rates.machine.warp_width),
            own_stored,
        )
        elements = volumes.work_group_size * in_flight / ELEMENT_BYTES
        from_dram_s = sum(
            part * every / rates.dram_bytes_per_s(groups * elements, stored / every)
            for part, groups in plan.phases
        )
        # Until the first loads are back nothing arrives; the launch's own time holds the way to L2.
        from_dram_s += max(rates.latency_s["DRAM"] - rates.latency_s["L2"], 0.0)
        # What L2 has kept since the launch before does not move, what a cache behind L2 has comes
        # from there.
        behind_s = every / rates.l3_bytes_per_s if rates.l3_bytes_per_s else 0.0
        return (1 - volumes.kept_share) * max((1 - volumes.behind_share) * from_dram_s, behind_s)

    def time_latency(self, plan: Schedule) -> float:
        """Compute the time of a launch whose loads meet no traffic."""
        # Work-groups of one place run one after the other; each waits its rounds of loads, and
        # every round waits for the farthest level that one of its loads reaches.
        volumes, rates, work = self.volumes, self.rates, self.launch.work
        rounds = self.rounds * volumes.warps
        to_l2 = min(volumes.l2_load_bytes / (rates.machine.l1_sector_bytes * rounds), 1.0)
        missed_bytes = (1 - volumes.kept_share) * volumes.dram_load_bytes
        to_dram = min(missed_bytes / (_FETCH_BYTES * rounds), to_l2)
        behind = volumes.behind_share
        latency_s = rates.latency_s
        beyond_s = behind * latency_s["L3"] + (1 - behind) * latency_s["DRAM"]
        wait_s = (
            latency_s["L1"]
            + to_l2 * max(latency_s["L2"] - latency_s["L1"], 0.0)
            + to_dram * max(beyond_s - latency_s["L2"], 0.0)
        )
        chain_s = work["latency"] / rates.clock_hz if work else 0.0
        return plan.waves * (self.rounds * wait_s + chain_s)

    def time_atomics(self) -> float:
        """Time atomics; those on one address follow each other."""
        rates = self.rates
        by_l2 = rates.l2_bytes_per_s or rates.dram_bytes_per_s(math.inf, 0.5)
        # A cycle and compute unit: 32 banks, four work-items of a warp in the same one.
        by_local = rates.machine.compute_units * rates.clock_hz * 8
        assumed = {
            "global_same": rates.clock_hz, "global_distinct": by_l2 / _ATOMIC_BYTES,
            "local_distinct": by_local,
        }  # fmt: skip
        seconds = 0.0
        for place, assumed_per_s in assumed.items():
            name, amount = f"atomic_{place}_per_s", self.atomics.get(place, 0.0)
            if amount and name not in rates.costs:
                self.notes.append(
                    f"{name}: not in the machine description, {assumed_per_s:.3g} assumed; "
                    "`kernelcast calibrate --only atomics` measures it"
                )
            seconds += amount * self.volumes.work_items / rates.costs.get(name, assumed_per_s)
        return seconds

    def time_instructions(self, plan: Schedule) -> dict[str, float]:
        slots, rates, volumes, machine = self.slots, self.rates, self.volumes, self.rates.machine
        fp32 = rates.peak("fp32")
        if not fp32:
            fp32 = machine.compute_units * rates.clock_hz * _LANES
            if slots["fp32"] or slots["int"] or slots["special"]:
                self.notes.append(
                    f"fp32 peak: not in the machine description, {_LANES} lanes a compute unit "
                    "assumed; `kernelcast calibrate --only instructions-fp32` measures it"
                )
        # By limiter: name of the instruction, its peak, and what stands in for that: lanes of
        # special functions by the CUDA programming guide's table of throughputs.
        kinds = {
            "fp32": ("fp32", fp32, fp32),
            "fp64": ("fp64", rates.peak("fp64"), fp32 / 2),
            # Measured by multiply-adds, which count twice.
            "int": ("int32", rates.peak("int32") / 2, fp32),
            "special": ("native_special", rates.peak("native_special"), fp32 / 4),
        }
        lanes = volumes.warps * machine.warp_width * plan.private_factor
        times: dict[str, float] = {}
        for name, (instruction, known, stand_in) in kinds.items():
            if slots[name]:
                if not known:
                    note = f"peak of {name}: not in the machine description, taken from fp32"
                    self.notes.append(note)
                # Fewer resident work-items than reach the peak are slower, mean of the phases.
                ridge = rates.ridge_work_items(instruction)
                slowness = sum(
                    part * max(ridge / (max(groups, 1.0) * volumes.work_group_size), 1.0)
                    for part, groups in plan.phases
                )
                times[name] = slots[name] * lanes / (known or stand_in) * slowness
        return times

    def time_issue(self, plan: Schedule, arithmetic: Mapping[str, float]) -> tuple[float, float]:
        """Compute the time in which schedulers issue instructions, and the part of it that they
        spend on others than the longest kind of arithmetic."""
        slots, machine, executed = self.slots, self.rates.machine, self.launch.executed
        work, family = self.launch.work, machine.architecture
        every = sum(slots.values())
        # On NVIDIA's GPUs every instruction takes a slot, also a load, its address and a branch;
        # AMD's issue those beside arithmetic.
        if family.name == "nvidia" and work is not None:
            every = work["issued"]
        elif family.name == "nvidia":
            every += executed.count(Kind.ADDRESS)
            every += executed.count(Kind.BRANCH) / _UNROLLED
            every += sum(
                times * max(one.bytes / 16, 1.0)  # the most that one instruction moves
                for one, times in executed.memory.items()
                if one.space is not MemorySpace.PRIVATE
            )
        longest = slots[max(arithmetic, key=arithmetic.__getitem__)] if arithmetic else 0.0
        lanes_per_s = (
            family.issued_lanes * machine.compute_units * self.rates.clock_hz / plan.private_factor
        )
        each_s = self.volumes.warps * machine.warp_width / lanes_per_s
        if work is not None:
            return every * each_s, min(every * each_s, max(arithmetic.values(), default=0.0))
        return every * each_s, (every - longest) * each_s


# Cycles of a warp's fp64 instruction and compute unit on a V100, by gpu-benches' README.
_FLOAT_SLOTS = {Kind.DIVIDE.value: 7.5, "sqrt": 9.6, "rsqrt": 9.6}
_SPECIAL_SLOTS = 20.0
"""Instructions of a precise special function: range reduction and a polynomial."""
_INTEGER_DIVIDE_SLOTS = 5.0
"""By a constant, as most divisors are: a multiplication by the inverse, and shifts."""
_WIDE = 64
_FLOATS = (Kind.FUSED, Kind.DIVIDE, Kind.SPECIAL, Kind.COMPARE, Kind.SELECT)
_INTEGER = (Kind.ADD, Kind.MULTIPLY, Kind.LOGIC, Kind.COMPARE, Kind.SELECT, Kind.FUSED)


def count_slots(counts: OperationCounts) -> dict[str, float]:
    """Count the instructions of a work-item that operations become, by limiter."""
    # Products and sums are contracted into multiply-adds as far as both are there, which OpenCL
    # allows by default. Address arithmetic is left out, since compilers remove most of it, and so
    # are most steps and comparisons of loop counters, since loops are unrolled: no loop has more
    # iterations than there are branches, comparisons or additions.
    floats: dict[tuple[Kind, bool], float] = {}
    integers = dict.fromkeys((*_INTEGER, Kind.DIVIDE, Kind.CONVERT), 0.0)
    steps = {Kind.ADD: 0.0, Kind.COMPARE: 0.0}
    for one, times in counts.operations.items():
        amount, is_wide = times * one.lanes, one.bits == _WIDE
        if one.number is NumberClass.INTEGER and one.kind in steps:
            steps[one.kind] += amount
        # Widening an index is part of the address.
        if one.kind in integers and (one.number is NumberClass.INTEGER) != (
            one.kind is Kind.CONVERT
        ):
            weight = _INTEGER_DIVIDE_SLOTS if one.kind is Kind.DIVIDE else 1.0
            integers[one.kind] += amount * weight * (2 if is_wide else 1)
        if one.number is NumberClass.FLOAT:
            weight = _FLOAT_SLOTS.get(one.name if one.kind is Kind.SPECIAL else one.kind.value, 1.0)
            if one.kind is Kind.SPECIAL and one.name not in _FLOAT_SLOTS:
                weight = _SPECIAL_SLOTS
            key = one.kind, is_wide
            floats[key] = floats.get(key, 0.0) + amount * weight
    iterations = min(counts.count(Kind.BRANCH), *steps.values())
    found = {
        name: max(floats.get((Kind.ADD, is_wide), 0.0), floats.get((Kind.MULTIPLY, is_wide), 0.0))
        + sum(floats.get((kind, is_wide), 0.0) for kind in _FLOATS)
        for name, is_wide in (("fp32", False), ("fp64", True))
    }
    found["int"] = sum(integers.values()) - 2 * iterations * (1 - 1 / _UNROLLED)
    found["special"] = float(counts.count(Kind.SPECIAL_NATIVE, per_lane=True))
    return found


def count_atomics(accesses: Sequence[MemoryAccess], executed: OperationCounts) -> dict[str, float]:
    """Count the atomics of a work-item by where they go: ``global_same``, all work-items to one
    address, ``global_distinct`` and ``local_distinct``."""
    # Places that call the same function count as executed equally often; an atomic whose place is
    # not known counts as a global one on distinct addresses.
    sites = [one for one in accesses if one.kind is AccessKind.ATOMIC]
    found: dict[str, float] = defaultdict(float)
    for operation, times in executed.operations.items():
        if operation.kind is not Kind.ATOMIC:
            continue
        called = [one for one in sites if one.text.startswith(f"{operation.name}(")]
        own = called if operation.name and called else sites
        for site in own:
            is_same = site.offset_bytes is not None and site.offset_bytes.is_parameter
            place = "global_same" if is_same else "global_distinct"
            place = "local_distinct" if site.space is MemorySpace.LOCAL else place
            found[place] += times / len(own)
        if not own:
            found["global_distinct"] += times
    return found


_THROUGH_L1 = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})


def count_rounds(accesses: Sequence[MemoryAccess], load_requests: float) -> float:
    """Count how often a work-item waits for loads, one wait after the other."""
    # Loads of straight-line code are in flight together, as are those of a few iterations of a
    # loop; a load whose address was loaded waits for that one first. In a loop where a load gives
    # the address of the next one, as along a linked list, every iteration waits for the one before.
    loads = [one for one in accesses if one.kind is AccessKind.LOAD and one.space in _THROUGH_L1]
    looped = [one for one in loads if one.loops]
    straight = [one for one in loads if not one.loops]
    iterations = max(load_requests - len(straight), 0.0) / len(looped) if looped else 0.0
    depth, is_endless = _measure_depth(looped)
    batches = max(iterations / (1 if is_endless else _UNROLLED), 1.0)
    return max(_measure_depth(straight)[0] + batches * depth, 1.0)


def _measure_depth(loads: Sequence[MemoryAccess]) -> tuple[int, bool]:
    """Count the loads of the longest chain in which each gives the next one's address.

    And tell whether it has no end, since a load's address depends on what it loads.
    """
    names = {one.buffer for one in loads}
    depth, most = 0, len(names)
    while names and depth <= most:
        depth += 1
        names = {
            one.buffer
            for one in loads
            if one.pattern is AddressPattern.INDIRECT and names.intersection(one.sources)
        }
    return min(depth, most), depth > most


def count_local_ways(launch: ModelledLaunch, warp_width: int) -> float:
    """Count how often banks of local memory are read per access, mean over the accesses."""
    known = []
    local = [one for one in launch.accesses if one.space is MemorySpace.LOCAL and one.offset_bytes]
    for one in local[:16]:  # more hardly change a kernel's mean
        first = {Symbol(SymbolKind.LOOP, loop.name): 0 for loop in one.loops}
        offset = one.offset_bytes.substitute(first) if one.offset_bytes else None
        bare = replace(one, offset_bytes=offset, loops=(), guard=TRUE)
        with suppress(InputError):
            group = next(iter(evaluate_groups(bare, launch).values()))
            rows = divide_warps(group.table, warp_width)[:1]
            word = max(one.bytes, _BANK_BYTES)
            banks = max(_BANKS * _BANK_BYTES // word, 1)
            parts = max(np.unique(rows // word).size / banks, 1.0)
            known.append(max(float(count_conflicts(rows, word, banks)[0]) / parts, 1.0))
    return sum(known) / len(known) if known else 1.0
