"""Time that work-items wait: for loads one after the other, and for address translation."""

from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import GpuRates
from kernelcast.analytic.gpu.limiters.schedule import Schedule

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
    return plan.waves * demands.rounds * wait_s


def time_translation(demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Compute the time of translations that the compute units cannot keep, in seconds.

    The next work-group finds the translations of the last one, but for those that did not fit.
    """
    if rates.translation is None:
        return 0.0
    missing = max(demands.patterns.pages - rates.translation.pages, 0.0)
    groups = demands.work_groups / rates.compute_units * plan.private_factor
    return groups * missing * rates.translation.miss_s
