"""Time that work-items wait, and time of what they share: local memory, atomics, barriers."""

import math

from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import GpuRates
from kernelcast.analytic.gpu.limiters.schedule import Schedule
from kernelcast.records.operations import MemorySpace
from kernelcast.records.operations import OperationKind as Kind

_FETCH_BYTES = 64


def time_latency(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of a launch whose loads meet no traffic, in seconds.

    Work-groups of one place run one after the other; each waits its rounds of loads, and every
    round waits for the farthest level that one of its loads reaches.

    Parameters
    ----------
    rates : GpuRates
        Its latencies; 0 where they are not known.
    plan : Schedule
        How many waves there are.
    """
    rounds = demands.rounds * demands.warps
    to_l2 = min(demands.l2_load_bytes / (rates.sector_bytes * rounds), 1.0)
    to_dram = min(demands.dram_load_bytes / (_FETCH_BYTES * rounds), to_l2)
    known = rates.latencies
    wait_s = (
        known.l1_s
        + to_l2 * max(known.l2_s - known.l1_s, 0.0)
        + to_dram * max(known.dram_s - known.l2_s, 0.0)
    )
    chain_s = demands.work.latency_cycles / rates.clock_hz if demands.work else 0.0
    return plan.waves * (demands.rounds * wait_s + chain_s)


def time_translation(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of translations that the compute units cannot keep, in seconds.

    The next work-group finds the translations of the last one, but for those that did not fit.
    """
    if rates.translation is None:
        return 0.0
    missing = max(demands.patterns.pages - rates.translation.pages, 0.0)
    groups = demands.work_groups / rates.compute_units * plan.private_factor
    return groups * missing * rates.translation.miss_s


_BANKS_BYTES = 128
_ATOMIC_BYTES = 32
_LOCAL_ATOMICS = 8
"""A cycle and compute unit: 32 banks, four work-items of a warp in the same one."""
_BARRIER_CYCLES = 30
"""About the latency of an L1 hit on V100 and A100, 28 and 36 cycles in gpu-benches."""


def time_local(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of local memory, in seconds: 32 banks of 4 bytes deliver once a cycle."""
    cycles = (
        demands.work.local_wavefronts
        if demands.work
        else sum(
            times * max(one.bytes * rates.warp_width / _BANKS_BYTES, 1.0)
            for one, times in demands.executed.memory.items()
            if one.space is MemorySpace.LOCAL
        )
    )
    per_s = rates.compute_units * rates.clock_hz / plan.private_factor
    return cycles * demands.patterns.local_ways * demands.warps / per_s


def time_atomics(demands: Demands, rates: GpuRates, notes: list[str]) -> float:
    """Compute the time of atomics, in seconds; those on one address follow each other.

    Parameters
    ----------
    rates : GpuRates
        Measured rates, else a sector of L2 for each, one a cycle on the same address, and local
        memory at a quarter of its words.
    """
    by_l2 = rates.l2_bytes_per_s or rates.dram.at(math.inf, 0.5)
    amounts = {
        "global_same": (demands.atomics.same, rates.clock_hz),
        "global_distinct": (demands.atomics.distinct, by_l2 / _ATOMIC_BYTES),
        "local_distinct": (
            demands.atomics.local, rates.compute_units * rates.clock_hz * _LOCAL_ATOMICS
        ),
    }  # fmt: skip
    seconds = 0.0
    for place, (amount, assumed) in amounts.items():
        name = f"atomic_{place}_per_s"
        if amount and name not in rates.costs:
            notes.append(
                f"{name}: not in the machine description, {assumed:.3g} assumed; "
                "`kernelcast calibrate --only atomics` measures it"
            )
        seconds += amount * demands.work_items / rates.costs.get(name, assumed)
    return seconds


def time_barriers(demands: Demands, rates: GpuRates, plan: Schedule, notes: list[str]) -> float:
    """Compute the time of barriers, in seconds: each stops a work-group, not its neighbours.

    Parameters
    ----------
    rates : GpuRates
        The measured time of a barrier, else a guess.
    plan : Schedule
        How many work-groups follow each other.
    """
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


def time_dispatch(demands: Demands, rates: GpuRates) -> float:
    """Compute the time of starting work-groups, in seconds; 0 where nobody measured it."""
    return demands.work_groups * rates.costs.get("work_group_dispatch_s", 0.0)
