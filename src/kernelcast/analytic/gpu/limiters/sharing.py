"""Time of what work-items share: local memory, atomics, barriers, the dispatcher."""

import math

from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import GpuRates
from kernelcast.analytic.gpu.limiters.schedule import Schedule
from kernelcast.records.operations import MemorySpace
from kernelcast.records.operations import OperationKind as Kind

_BANKS_BYTES = 128
_ATOMIC_BYTES = 32
_LOCAL_ATOMICS = 8
"""A cycle and compute unit: 32 banks, four work-items of a warp in the same one."""
_BARRIER_CYCLES = 30
"""About the latency of an L1 hit on V100 and A100, 28 and 36 cycles in gpu-benches."""


def time_local(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of local memory, in seconds: 32 banks of 4 bytes deliver once a cycle."""
    cycles = sum(
        times * max(one.bytes * rates.warp_width / _BANKS_BYTES, 1.0)
        for one, times in demands.executed.memory.items()
        if one.space is MemorySpace.LOCAL
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
