"""Composes the limiters of a launch and says what would help most."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelcast.analytic.gpu.limiters.constants import LimiterConstants
from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.instructions import time_instructions, time_issue
from kernelcast.analytic.gpu.limiters.memory import time_dram, time_l1, time_l2
from kernelcast.analytic.gpu.limiters.overlap import Limits
from kernelcast.analytic.gpu.limiters.rates import GpuRates
from kernelcast.analytic.gpu.limiters.schedule import Schedule, balance, schedule
from kernelcast.analytic.gpu.limiters.waiting import (
    time_atomics,
    time_barriers,
    time_dispatch,
    time_latency,
    time_local,
    time_translation,
)

_PAPER = ("fp32", "fp64", "L1", "L2", "DRAM")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Time of a launch, by its limiters."""

    seconds: float
    limiter: str
    """The one whose removal saves most of it, see `Limits.choose_largest`: a key of `times`."""
    times: Mapping[str, float]
    """Seconds that each limiter alone would take."""
    without: Mapping[str, float]
    """Seconds of the launch if a limiter took no time: what would help most is smallest."""
    exposed_l1_s: float
    """Part of L1's time that DRAM transfers wait for."""
    notes: tuple[str, ...]
    """What was assumed or left out."""


def assess(demands: Demands, rates: GpuRates, constants: LimiterConstants) -> Assessment:
    """Compute the time of a launch.

    Parameters
    ----------
    rates : GpuRates
        What the machine gives, read with the same constants.

    Returns
    -------
    Assessment
        The tail is what whole work-groups cost more than a machine whose units are always full.
    """
    notes: list[str] = []
    even = balance(demands.work_groups, rates.compute_units, demands.resident)
    limits = _measure(demands, rates, constants, even, notes)
    if not constants.counts_beyond_paper:
        limits = Limits(
            times={name: s for name, s in limits.times.items() if name in _PAPER},
            exposed_s=limits.exposed_s,
            power=limits.power,
        )
    else:
        whole = schedule(demands.work_groups, rates.compute_units, demands.resident)
        tail_s = _measure(demands, rates, constants, whole, []).combine() - limits.combine()
        overheads = {"tail": max(tail_s, 0.0), "launch": rates.launch_s}
        limits = replace(limits, times={**limits.times, **overheads})
    without = limits.list_without()
    return Assessment(
        seconds=limits.combine(),
        limiter=limits.choose_largest(without),
        times=limits.times,
        without=without,
        exposed_l1_s=limits.exposed_s,
        notes=(*rates.notes, *notes),
    )


def _measure(
    demands: Demands,
    rates: GpuRates,
    constants: LimiterConstants,
    plan: Schedule,
    notes: list[str],
) -> Limits:
    l1 = time_l1(demands, rates, constants, plan)
    arithmetic = time_instructions(demands, rates, plan, notes)
    issue_s, beside_s = time_issue(demands, rates, plan, arithmetic)
    times = {
        **arithmetic,
        "issue": issue_s,
        "L1": l1.wavefronts_s + l1.fill_s,
        "L2": time_l2(demands, rates),
        "DRAM": time_dram(demands, rates, plan),
        "latency": time_latency(demands, rates, plan),
        "local": time_local(demands, rates, plan),
        "atomics": time_atomics(demands, rates, notes),
        "barriers": time_barriers(demands, rates, plan, notes),
        "dispatch": time_dispatch(demands, rates),
        "translation": time_translation(demands, rates, plan),
    }
    return Limits(times=times, exposed_s=l1.exposed_s, power=rates.overlap_power, beside_s=beside_s)
