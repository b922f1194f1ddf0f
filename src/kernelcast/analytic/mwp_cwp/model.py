"""MWP, CWP and the three cases (Hong and Kim, ISCA 2009, Section 3)."""

from dataclasses import dataclass
from enum import StrEnum

from kernelcast.analytic.mwp_cwp.inputs import MwpCwpLaunch, MwpCwpMachine


class Case(StrEnum):
    """Which of the three cases a launch is."""

    FEW_WARPS = "few warps"
    """MWP and CWP are both as large as the number of warps: too few to hide latency."""
    MEMORY = "memory"
    """CWP is at least MWP: warps wait for memory, computation hides behind it."""
    COMPUTATION = "computation"
    """MWP is larger than CWP: memory hides behind computation."""


class CaseRule(StrEnum):
    """When the formula of the case `MEMORY` is taken."""

    PUBLISHED = "published"
    """If ``CWP >= MWP`` or ``Comp_cycles > Mem_cycles``, as published."""
    BY_PARALLELISM = "by parallelism"
    """Only if ``CWP >= MWP``. The published rule takes the formula of memory for kernels that
    compute most, where it counts one computation period per warp instead of all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MwpCwpTerms:
    """Every term of the model."""

    mem_l_coal_cycles: float
    mem_l_uncoal_cycles: float
    mem_l_cycles: float
    """``Mem_L_Coal``, ``Mem_L_Uncoal`` and their weighted mean ``Mem_L``; 0 without memory
    instructions."""
    departure_delay_cycles: float
    """``Departure_delay``."""
    mwp_without_bw: float
    mwp_peak_bw: float
    mwp: float
    """``MWP_Without_BW``, ``MWP_peak_BW`` and the least of both and of the active warps,
    ``MWP``."""
    comp_cycles: float
    mem_cycles: float
    """``Comp_cycles``, ``Mem_cycles``: of one warp."""
    cwp_full: float
    cwp: float
    """``CWP_full`` and what of it the active warps allow, ``CWP``."""
    case: Case
    """Which formula was taken."""
    rep: float
    """``#Rep``: how often a compute unit is filled."""
    exec_cycles: float
    """``Exec_cycles_app``."""
    synch_cycles: float
    """``Synch_cost``."""
    seconds: float
    """Both together."""

    @property
    def total_cycles(self) -> float:
        """``Exec_cycles_app`` with the cost of synchronisation."""
        return self.exec_cycles + self.synch_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """What memory instructions cost."""

    coal: float
    uncoal: float
    mean: float
    departure_delay: float
    without_bw: float
    peak_bw: float


def model_mwp_cwp(
    launch: MwpCwpLaunch, machine: MwpCwpMachine, *, rule: CaseRule = CaseRule.PUBLISHED
) -> MwpCwpTerms:
    """Compute every term of a launch.

    Parameters
    ----------
    rule : CaseRule
        When memory is taken to bound the launch.

    Notes
    -----
    Without memory instructions MWP has no meaning; the answer is then the case of computation
    without its one latency, ``Comp_cycles * N * #Rep``.

    Examples
    --------
    The worked example of the paper, on a GPU of 1 GHz and 80 GB/s:

    >>> launch = MwpCwpLaunch(
    ...     comp_insts=27, coal_mem_insts=0, uncoal_mem_insts=6, synch_insts=6, uncoal_per_mw=32,
    ...     active_warps_per_sm=20, active_blocks_per_sm=5, active_sms=16, blocks=80,
    ... )
    >>> gpu = MwpCwpMachine(
    ...     issue_cycles=4, freq_hz=1e9, mem_bandwidth_bytes_per_s=80e9, mem_ld_cycles=420,
    ...     departure_del_coal_cycles=1, departure_del_uncoal_cycles=10,
    ... )
    >>> terms = model_mwp_cwp(launch, gpu)
    >>> round(terms.mwp, 2), terms.cwp, str(terms.case)
    (2.28, 20, 'memory')
    """
    warps = launch.active_warps_per_sm
    memory = _time_memory(launch, machine)
    mwp = min(memory.without_bw, memory.peak_bw, warps)
    comp_cycles = machine.issue_cycles * launch.total_insts
    mem_cycles = memory.uncoal * launch.uncoal_mem_insts + memory.coal * launch.coal_mem_insts
    cwp_full = (mem_cycles + comp_cycles) / comp_cycles
    cwp = min(cwp_full, warps)
    rep = launch.blocks / (launch.active_blocks_per_sm * launch.active_sms)
    case = _choose(mwp, cwp, warps, is_busy=comp_cycles > mem_cycles, rule=rule)
    if not launch.mem_insts:
        case, cycles = Case.COMPUTATION, comp_cycles * warps
    else:
        period = comp_cycles / launch.mem_insts
        cycles = {
            Case.FEW_WARPS: mem_cycles + comp_cycles + period * (mwp - 1),
            Case.MEMORY: mem_cycles * warps / mwp + period * (mwp - 1),
            Case.COMPUTATION: memory.mean + comp_cycles * warps,
        }[case]
    exec_cycles = cycles * rep
    synch = (
        memory.departure_delay * max(0.0, mwp - 1) * launch.synch_insts
        * launch.active_blocks_per_sm * rep
    )  # fmt: skip
    return MwpCwpTerms(
        mem_l_coal_cycles=memory.coal,
        mem_l_uncoal_cycles=memory.uncoal,
        mem_l_cycles=memory.mean,
        departure_delay_cycles=memory.departure_delay,
        mwp_without_bw=memory.without_bw,
        mwp_peak_bw=memory.peak_bw,
        mwp=mwp,
        comp_cycles=comp_cycles,
        mem_cycles=mem_cycles,
        cwp_full=cwp_full,
        cwp=cwp,
        case=case,
        rep=rep,
        exec_cycles=exec_cycles,
        synch_cycles=synch,
        seconds=(exec_cycles + synch) / machine.freq_hz,
    )


def _time_memory(launch: MwpCwpLaunch, machine: MwpCwpMachine) -> _Memory:
    """Compute latencies, and how many warps memory can serve at once."""
    warps = launch.active_warps_per_sm
    if not launch.mem_insts:
        return _Memory(
            coal=0.0, uncoal=0.0, mean=0.0, departure_delay=0.0, without_bw=warps, peak_bw=warps
        )
    coal = machine.mem_ld_cycles
    further = launch.uncoal_per_mw - 1
    uncoal = machine.mem_ld_cycles + further * machine.departure_del_uncoal_cycles
    weight = launch.uncoal_mem_insts / launch.mem_insts
    mean = uncoal * weight + coal * (1 - weight)
    delay = (
        machine.departure_del_uncoal_cycles * launch.uncoal_per_mw * weight
        + machine.departure_del_coal_cycles * (1 - weight)
    )
    per_warp = machine.freq_hz * launch.load_bytes_per_warp / mean
    return _Memory(
        coal=coal,
        uncoal=uncoal,
        mean=mean,
        departure_delay=delay,
        without_bw=min(mean / delay, warps),
        peak_bw=machine.mem_bandwidth_bytes_per_s / (per_warp * launch.active_sms),
    )


def _choose(mwp: float, cwp: float, warps: float, *, is_busy: bool, rule: CaseRule) -> Case:
    if mwp == warps and cwp == warps:
        return Case.FEW_WARPS
    if cwp >= mwp or (is_busy and rule is CaseRule.PUBLISHED):
        return Case.MEMORY
    return Case.COMPUTATION
