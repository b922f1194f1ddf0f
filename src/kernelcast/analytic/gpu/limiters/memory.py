"""Time of the caches and of the DRAM."""

from dataclasses import dataclass

from kernelcast.analytic.gpu.limiters.constants import LimiterConstants
from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import GpuRates
from kernelcast.analytic.gpu.limiters.saturation import ELEMENT_BYTES
from kernelcast.analytic.gpu.limiters.schedule import Schedule

_FETCH_BYTES = 64
_USUAL_IDLENESS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Time:
    """Time of the L1 caches."""

    wavefronts_s: float
    fill_s: float
    """Of accesses, and of sectors that arrive from L2."""
    exposed_s: float
    """During which transfers with the DRAM wait."""


def time_l1(
    demands: Demands, rates: GpuRates, constants: LimiterConstants, plan: Schedule
) -> L1Time:
    """Compute how long the L1 caches are busy.

    An access occupies its cache for its wavefronts; a sector from L2 occupies it for one cycle,
    since the cache has one port (as between L1 and L2 of a CPU in the ECM model).
    """
    per_warp = demands.half_warp_cycles if constants.counts_half_warps else demands.l1_cycles
    cycles_per_s = rates.compute_units * rates.clock_hz / plan.private_factor
    sectors = demands.l2_load_bytes / rates.sector_bytes if constants.counts_fill else 0.0
    waiting = constants.exposed_wavefronts * per_warp
    waiting += constants.exposed_lines * demands.patterns.lines
    waiting *= _measure_idleness(demands, rates)
    return L1Time(
        wavefronts_s=per_warp * demands.warps / cycles_per_s,
        fill_s=sectors / cycles_per_s,
        exposed_s=waiting * demands.warps / cycles_per_s,
    )


def _measure_idleness(demands: Demands, rates: GpuRates) -> float:
    """Give the share of a compute unit's places for work-items that stay empty.

    Where all are taken, some work-group always waits for the DRAM while others use the cache: box
    stencils with 2048 work-items a unit reach the bandwidth of a copy, those with 1024 do not.
    """
    if rates.max_work_items is None:
        return _USUAL_IDLENESS
    resident = demands.resident * demands.work_group_size
    return max(0.0, 1 - resident / rates.max_work_items)


def time_l2(demands: Demands, rates: GpuRates) -> float:
    """Compute the time of transfers between L1 and L2, in seconds; loads and stores share it."""
    if rates.l2_bytes_per_s is None:
        return 0.0
    return (demands.l2_load_bytes + demands.l2_store_bytes) / rates.l2_bytes_per_s


def time_dram(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of transfers between L2 and DRAM, in seconds.

    The bandwidth follows from what is in flight (Little's law, by the measured curve): the
    work-items of a unit times the bytes that each of them waits for at once.
    """
    loaded, stored = demands.dram_load_bytes, demands.dram_store_bytes
    every = loaded + stored
    if every < 1:
        return 0.0
    elements = count_in_flight(demands, rates) / ELEMENT_BYTES
    return sum(
        part * every / rates.dram.at(groups * demands.work_group_size * elements, stored / every)
        for part, groups in plan.phases
    )


def count_in_flight(demands: Demands, rates: GpuRates) -> float:
    """Count the bytes of DRAM that a work-item has in flight at once, mean.

    A round of loads has its share of all bytes, but a warp that misses at all waits for a whole
    fetch. Nobody waits for stores.
    """
    loaded, stored = (
        each / demands.work_items for each in (demands.dram_load_bytes, demands.dram_store_bytes)
    )
    return max(loaded / demands.rounds, min(loaded, _FETCH_BYTES / rates.warp_width), stored)
