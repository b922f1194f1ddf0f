"""The time of each limiter, how they overlap, and what would help most."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import ELEMENT_BYTES, GpuRates, LimiterConstants
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts
from kernelcast.records.operations import OperationKind as Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Work-groups on compute units."""

    private_factor: float
    """Time of the busiest compute unit over the mean."""
    waves: float
    """Work-groups that run one after the other in each place."""
    phases: tuple[tuple[float, float], ...]
    """Part of all work-groups, and how many of them a compute unit holds meanwhile."""


def schedule(work_groups: int, units: int, resident: int) -> Schedule:
    """Make the schedule that whole work-groups allow."""
    places = units * resident
    full, rest = divmod(work_groups, places)
    phases = [(full * places / work_groups, float(resident))] if full else []
    if rest:
        phases.append((rest / work_groups, rest / units))
    busiest = math.ceil(work_groups / units)
    return Schedule(
        private_factor=busiest * units / work_groups,
        waves=full + (rest > 0),
        phases=tuple(phases),
    )


ADDED = ("translation", "tail", "launch")
"""Limiters during which nothing else goes on."""
ARITHMETIC = ("fp32", "fp64", "int", "special", "issue")
"""Limiters that overlap with those of memory as far as a power says."""
_NEGLIGIBLE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time of a launch, by its limiters."""

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
        """The time of all together."""
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


_FETCH_BYTES = 64


def time_l1(
    demands: Demands, rates: GpuRates, constants: LimiterConstants, plan: Schedule
) -> tuple[float, float]:
    """Compute how long the L1 caches are busy, and transfers with the DRAM wait, in seconds."""
    # An access occupies its cache for its wavefronts; a sector from L2 occupies it for one cycle,
    # since the cache has one port (as between L1 and L2 of a CPU in the ECM model).
    per_warp = demands.half_warp_cycles if constants.is_paper else demands.l1_cycles
    cycles_per_s = rates.machine.compute_units * rates.clock_hz / plan.private_factor
    sectors = 0.0 if constants.is_paper else demands.l2_load_bytes / rates.machine.l1_sector_bytes
    waiting = constants.exposed_wavefronts * per_warp
    waiting += constants.exposed_lines * demands.lines
    # Only what L1 has can wait behind what it has not; half of that where all places are taken.
    # Where all are taken, some work-group always waits for the DRAM while others use the cache: box
    # stencils with 2048 work-items a unit reach the bandwidth of a copy, those with 1024 do not.
    idleness = 0.5
    if rates.machine.unit.max_warps:
        resident = demands.resident * demands.work_group_size
        idleness = max(
            0.0, 1 - resident / (rates.machine.unit.max_warps * rates.machine.warp_width)
        )
    waiting *= demands.hit_share * (0.25 + 0.5 * idleness)
    busy_s = (per_warp * demands.warps + sectors) / cycles_per_s
    return busy_s, waiting * demands.warps / cycles_per_s


def time_dram(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of transfers between L2 and DRAM, in seconds."""
    loaded, stored = demands.dram_load_bytes, demands.dram_store_bytes
    every = loaded + stored
    if every < 1:
        return 0.0
    # The bandwidth follows from what is in flight (Little's law, by the measured curve): the
    # work-items of a unit times the bytes that each of them waits for at once. A round of loads has
    # its share of all bytes, but a warp that misses at all waits for a whole fetch. Nothing waits
    # for stores.
    own_loaded, own_stored = loaded / demands.work_items, stored / demands.work_items
    in_flight = max(
        own_loaded / demands.rounds,
        min(own_loaded, _FETCH_BYTES / rates.machine.warp_width),
        own_stored,
    )
    elements = in_flight / ELEMENT_BYTES
    from_dram_s = sum(
        part * every / rates.dram.at(groups * demands.work_group_size * elements, stored / every)
        for part, groups in plan.phases
    )
    # Until the first loads are back nothing arrives; the launch's own time holds the way to L2.
    from_dram_s += max(rates.dram_latency_s - rates.l2_latency_s, 0.0)
    # What L2 has kept since the launch before does not move, what a cache behind L2 has comes from
    # there.
    behind_s = every / rates.l3_bytes_per_s if rates.l3_bytes_per_s else 0.0
    return (1 - demands.kept_share) * max((1 - demands.behind_share) * from_dram_s, behind_s)


def time_latency(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of a launch whose loads meet no traffic, in seconds."""
    # Work-groups of one place run one after the other; each waits its rounds of loads, and every
    # round waits for the farthest level that one of its loads reaches.
    rounds = demands.rounds * demands.warps
    to_l2 = min(demands.l2_load_bytes / (rates.machine.l1_sector_bytes * rounds), 1.0)
    missed_bytes = (1 - demands.kept_share) * demands.dram_load_bytes
    to_dram = min(missed_bytes / (_FETCH_BYTES * rounds), to_l2)
    behind = demands.behind_share
    beyond_s = behind * rates.l3_latency_s + (1 - behind) * rates.dram_latency_s
    wait_s = (
        rates.l1_latency_s
        + to_l2 * max(rates.l2_latency_s - rates.l1_latency_s, 0.0)
        + to_dram * max(beyond_s - rates.l2_latency_s, 0.0)
    )
    chain_s = demands.work.latency_cycles / rates.clock_hz if demands.work else 0.0
    return plan.waves * (demands.rounds * wait_s + chain_s)


_BANKS_BYTES = 128
_ATOMIC_BYTES = 32
_BARRIER_CYCLES = 30
"""About the latency of an L1 hit on V100 and A100, 28 and 36 cycles in gpu-benches."""


def time_local(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of local memory, in seconds: 32 banks of 4 bytes deliver once a cycle."""
    cycles = (
        demands.work.local_wavefronts
        if demands.work
        else sum(
            times * max(one.bytes * rates.machine.warp_width / _BANKS_BYTES, 1.0)
            for one, times in demands.executed.memory.items()
            if one.space is MemorySpace.LOCAL
        )
    )
    per_s = rates.machine.compute_units * rates.clock_hz / plan.private_factor
    return cycles * demands.local_ways * demands.warps / per_s


def time_atomics(demands: Demands, rates: GpuRates, notes: list[str]) -> float:
    """Compute the time of atomics, in seconds; those on one address follow each other."""
    by_l2 = rates.l2_bytes_per_s or rates.dram.at(math.inf, 0.5)
    # A cycle and compute unit: 32 banks, four work-items of a warp in the same one.
    by_local = rates.machine.compute_units * rates.clock_hz * 8
    assumed = {
        "global_same": rates.clock_hz, "global_distinct": by_l2 / _ATOMIC_BYTES,
        "local_distinct": by_local,
    }  # fmt: skip
    seconds = 0.0
    for place, assumed_per_s in assumed.items():
        name, amount = f"atomic_{place}_per_s", demands.atomics.get(place, 0.0)
        if amount and name not in rates.costs:
            notes.append(
                f"{name}: not in the machine description, {assumed_per_s:.3g} assumed; "
                "`kernelcast calibrate --only atomics` measures it"
            )
        seconds += amount * demands.work_items / rates.costs.get(name, assumed_per_s)
    return seconds


def time_barriers(demands: Demands, rates: GpuRates, plan: Schedule, notes: list[str]) -> float:
    """Compute the time of barriers, in seconds: each stops a work-group, not its neighbours."""
    amount = demands.executed.count(Kind.BARRIER)
    if not amount:
        return 0.0
    if "barrier_s" not in rates.costs:
        notes.append(
            f"barrier_s: not in the machine description, {_BARRIER_CYCLES} cycles assumed; "
            "`kernelcast calibrate --only barrier` measures it"
        )
    each_s = rates.costs.get("barrier_s", _BARRIER_CYCLES / rates.clock_hz)
    return amount * each_s * plan.waves


_LANES = 64
"""fp32 lanes of a compute unit where nobody says: V100 to H100 and CDNA have 64 to 128."""
# Cycles of a warp's fp64 instruction and compute unit on a V100, by gpu-benches' README.
_FLOAT_SLOTS = {Kind.DIVIDE.value: 7.5, "sqrt": 9.6, "rsqrt": 9.6}
_SPECIAL_SLOTS = 20.0
"""Instructions of a precise special function: range reduction and a polynomial."""
_INTEGER_DIVIDE_SLOTS = 5.0
"""By a constant, as most divisors are: a multiplication by the inverse, and shifts."""
_WIDE = 64
_FLOATS = (Kind.FUSED, Kind.DIVIDE, Kind.SPECIAL, Kind.COMPARE, Kind.SELECT)
_INTEGER = (Kind.ADD, Kind.MULTIPLY, Kind.LOGIC, Kind.COMPARE, Kind.SELECT, Kind.FUSED)
_UNROLLED = 4
"""Iterations of a loop that share one step of its counter, one comparison and one branch."""


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


def _find_slots(demands: Demands) -> dict[str, float]:
    work = demands.work
    if work is None:
        return count_slots(demands.executed)
    return {"fp32": work.fp32, "fp64": work.fp64, "int": work.integer, "special": work.special}


def time_instructions(
    demands: Demands, rates: GpuRates, plan: Schedule, notes: list[str]
) -> dict[str, float]:
    """Compute the time of each kind of arithmetic, in seconds."""
    slots = _find_slots(demands)
    fp32 = _peak(rates, "fp32")
    if not fp32:
        fp32 = rates.machine.compute_units * rates.clock_hz * _LANES
        if slots["fp32"] or slots["int"] or slots["special"]:
            notes.append(
                f"fp32 peak: not in the machine description, {_LANES} lanes a compute unit "
                "assumed; `kernelcast calibrate --only instructions-fp32` measures it"
            )
    peaks = {
        "fp32": fp32,
        "fp64": _peak(rates, "fp64"),
        "int": _peak(rates, "int32") / 2,  # measured by multiply-adds, which count twice
        "special": _peak(rates, "native_special"),
    }
    # Lanes of special functions by the CUDA programming guide's table of throughputs.
    stand_ins = {"fp64": fp32 / 2, "int": fp32, "special": fp32 / 4}
    lanes = demands.warps * rates.machine.warp_width * plan.private_factor
    times: dict[str, float] = {}
    for name, known in peaks.items():
        if slots[name]:
            if not known:
                notes.append(f"peak of {name}: not in the machine description, taken from fp32")
            # Fewer resident work-items than reach the peak are slower, mean of the phases.
            ridge = _find_ridge(
                rates, {"int": "int32", "special": "native_special"}.get(name, name)
            )
            slowness = sum(
                part * max(ridge / (max(groups, 1.0) * demands.work_group_size), 1.0)
                for part, groups in plan.phases
            )
            times[name] = slots[name] * lanes / (known or stand_ins[name]) * slowness
    return times


def time_issue(
    demands: Demands, rates: GpuRates, plan: Schedule, arithmetic: Mapping[str, float]
) -> tuple[float, float]:
    """Compute the time in which schedulers issue instructions, in seconds."""
    slots, family = _find_slots(demands), rates.machine.architecture
    every = sum(slots.values())
    # On NVIDIA's GPUs every instruction takes a slot, also a load, its address and a branch; AMD's
    # issue those beside arithmetic.
    if demands.work is not None and family.issues_all_in_turn:
        every = demands.work.issued
    elif family.issues_all_in_turn:
        every += demands.executed.count(Kind.ADDRESS)
        every += demands.executed.count(Kind.BRANCH) / _UNROLLED
        every += sum(
            times * max(one.bytes / 16, 1.0)  # the most that one instruction moves
            for one, times in demands.executed.memory.items()
            if one.space is not MemorySpace.PRIVATE
        )
    longest = slots[max(arithmetic, key=arithmetic.__getitem__)] if arithmetic else 0.0
    lanes_per_s = (
        family.issued_lanes * rates.machine.compute_units * rates.clock_hz / plan.private_factor
    )
    each_s = demands.warps * rates.machine.warp_width / lanes_per_s
    if demands.work is not None:
        return every * each_s, min(every * each_s, max(arithmetic.values(), default=0.0))
    return every * each_s, (every - longest) * each_s


def _find_ridge(rates: GpuRates, name: str) -> float:
    """Give the work-items per unit that reach the peak: measured, else by Little's law."""
    facts = rates.instructions.get(name)
    if facts is None:
        return 0.0
    if facts.ridge_work_items is not None:
        return facts.ridge_work_items.value
    latency = facts.completion_latency_s.get(1)
    if latency is None or facts.peak_per_s is None:
        return 0.0
    return facts.peak_per_s.value / rates.machine.compute_units * latency.value


def _peak(rates: GpuRates, name: str) -> float:
    facts = rates.instructions.get(name)
    return facts.peak_per_s.value if facts is not None and facts.peak_per_s is not None else 0.0


_PAPER = ("fp32", "fp64", "L1", "L2", "DRAM")


def assess(demands: Demands, rates: GpuRates, constants: LimiterConstants) -> Limits:
    """Compute the time of each limiter, and of what the last wave and the launch itself add."""
    units, resident = rates.machine.compute_units, demands.resident
    # Without beginning and end: all units are always full.
    even = Schedule(
        private_factor=1.0,
        waves=max(demands.work_groups / (units * resident), 1.0),
        phases=((1.0, min(float(resident), demands.work_groups / units)),),
    )
    limits = _measure(demands, rates, constants, even)
    if constants.is_paper:
        times = {name: s for name, s in limits.times.items() if name in _PAPER}
        return replace(limits, times=times, beside_s=0.0)
    whole = _measure(demands, rates, constants, schedule(demands.work_groups, units, resident))
    overheads = {"tail": max(whole.seconds - limits.seconds, 0.0), "launch": rates.launch_s}
    return replace(limits, times={**limits.times, **overheads})


def _measure(
    demands: Demands, rates: GpuRates, constants: LimiterConstants, plan: Schedule
) -> Limits:
    notes = [*rates.notes]
    l1_s, exposed_s = time_l1(demands, rates, constants, plan)
    arithmetic = time_instructions(demands, rates, plan, notes)
    issue_s, beside_s = time_issue(demands, rates, plan, arithmetic)
    moved = demands.l2_load_bytes + demands.l2_store_bytes
    # Each die starts its work-groups one after another.
    dies = rates.machine.compute_units / rates.machine.l2_units
    assumed_s = rates.machine.architecture.dispatch_cycles / (rates.clock_hz * dies)
    dispatch_s = rates.costs.get("work_group_dispatch_s", assumed_s)
    # The next work-group finds the translations of the last one, but for those that did not fit.
    pages, miss_s = rates.translation
    groups_per_unit = demands.work_groups / rates.machine.compute_units * plan.private_factor
    times = {
        **arithmetic,
        "issue": issue_s,
        "L1": l1_s,
        "L2": moved / rates.l2_bytes_per_s if rates.l2_bytes_per_s else 0.0,
        "DRAM": time_dram(demands, rates, plan),
        "latency": time_latency(demands, rates, plan),
        "local": time_local(demands, rates, plan),
        "atomics": time_atomics(demands, rates, notes),
        "barriers": time_barriers(demands, rates, plan, notes),
        "dispatch": demands.work_groups * dispatch_s,
        "translation": groups_per_unit * max(demands.pages - pages, 0.0) * miss_s,
    }
    return Limits(
        times=times, exposed_l1_s=exposed_s, power=rates.overlap_power, beside_s=beside_s,
        notes=tuple(notes),
    )  # fmt: skip
