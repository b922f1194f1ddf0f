"""MWP, CWP and the three cases (Hong and Kim, ISCA 2009, Section 3), with the terms of Table 1."""

import math
from dataclasses import dataclass, fields
from enum import StrEnum

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class MwpCwpInputs:
    """A GPU, a kernel and how it fills the compute units, by the terms of Table 1.

    Instructions are of one thread, over its whole life; `uncoal_per_mw` are transactions of an
    uncoalesced memory instruction of a warp, which asks for `load_bytes_per_warp` in all.
    """

    issue_cycles: float
    """``Issue_cycles``: cycles to issue one instruction of a warp."""
    freq_hz: float
    """``Freq``: clock of the compute units."""
    mem_bandwidth_bytes_per_s: float
    """``Mem_Bandwidth``: between memory and all compute units."""
    mem_ld_cycles: float
    """``Mem_LD``: latency of memory."""
    departure_del_coal_cycles: float
    departure_del_uncoal_cycles: float
    """``Departure_del_coal``, ``Departure_del_uncoal``: cycles between two coalesced requests, and
    between two transactions of an uncoalesced one, as they leave a compute unit."""
    comp_insts: float
    coal_mem_insts: float
    uncoal_mem_insts: float
    active_warps_per_sm: float
    active_blocks_per_sm: float
    active_sms: float
    blocks: float
    synch_insts: float = 0.0
    uncoal_per_mw: float = 1.0
    load_bytes_per_warp: float = 128.0

    def __post_init__(self) -> None:
        counts = (self.comp_insts, self.coal_mem_insts, self.uncoal_mem_insts, self.synch_insts)
        if min(counts) < 0 or not any(counts[:3]):
            raise InputError(
                f"MWP-CWP: {self.comp_insts} computation, {self.coal_mem_insts} coalesced and "
                f"{self.uncoal_mem_insts} uncoalesced memory instructions; expected none below 0 "
                "and some instructions"
            )
        for one in fields(self):
            value = getattr(self, one.name)
            if not one.name.endswith("_insts") and not (math.isfinite(value) and value > 0):
                raise InputError(f"MWP-CWP: {one.name} is {value}; expected a number above 0")

    @property
    def mem_insts(self) -> float:
        """``#Mem_insts``: memory instructions of one thread."""
        return self.coal_mem_insts + self.uncoal_mem_insts


class Case(StrEnum):
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
    """Terms of the model; those of memory are 0 without memory instructions."""

    mean_cycles: float
    """``Mem_L``: mean latency of coalesced and uncoalesced requests."""
    departure_delay_cycles: float
    """``Departure_delay``."""
    mwp: float
    """``MWP``: the least of ``MWP_Without_BW``, ``MWP_peak_BW`` and the active warps."""
    comp_cycles: float
    mem_cycles: float
    """``Comp_cycles``, ``Mem_cycles``: of one warp."""
    cwp: float
    """``CWP``: what of ``CWP_full`` the active warps allow."""
    case: Case
    rep: float
    """``#Rep``: how often a compute unit is filled."""
    synch_cycles: float
    """``Synch_cost``."""
    seconds: float
    """Of ``Exec_cycles_app`` and ``Synch_cost``."""


def model_mwp_cwp(launch: MwpCwpInputs, *, rule: CaseRule = CaseRule.PUBLISHED) -> MwpCwpTerms:
    warps = mwp_without_bw = mwp_peak_bw = launch.active_warps_per_sm
    coal = uncoal = mean = delay = 0.0
    if launch.mem_insts:
        coal = launch.mem_ld_cycles
        uncoal = coal + (launch.uncoal_per_mw - 1) * launch.departure_del_uncoal_cycles
        weight = launch.uncoal_mem_insts / launch.mem_insts
        mean = uncoal * weight + coal * (1 - weight)
        delay = (
            launch.departure_del_uncoal_cycles * launch.uncoal_per_mw * weight
            + launch.departure_del_coal_cycles * (1 - weight)
        )
        mwp_without_bw = min(mean / delay, warps)
        per_warp = launch.freq_hz * launch.load_bytes_per_warp / mean
        mwp_peak_bw = launch.mem_bandwidth_bytes_per_s / (per_warp * launch.active_sms)
    mwp = min(mwp_without_bw, mwp_peak_bw, warps)
    comp_cycles = launch.issue_cycles * (launch.comp_insts + launch.mem_insts)
    mem_cycles = uncoal * launch.uncoal_mem_insts + coal * launch.coal_mem_insts
    cwp = min((mem_cycles + comp_cycles) / comp_cycles, warps)
    rep = launch.blocks / (launch.active_blocks_per_sm * launch.active_sms)
    if mwp == warps and cwp == warps:
        case = Case.FEW_WARPS
    elif cwp >= mwp or (comp_cycles > mem_cycles and rule is CaseRule.PUBLISHED):
        case = Case.MEMORY
    else:
        case = Case.COMPUTATION
    if not launch.mem_insts:  # MWP has no meaning, and there is no latency
        case, cycles = Case.COMPUTATION, comp_cycles * warps
    else:
        period = comp_cycles / launch.mem_insts
        cycles = {
            Case.FEW_WARPS: mem_cycles + comp_cycles + period * (mwp - 1),
            Case.MEMORY: mem_cycles * warps / mwp + period * (mwp - 1),
            Case.COMPUTATION: mean + comp_cycles * warps,
        }[case]
    waits = launch.synch_insts * launch.active_blocks_per_sm
    synch = delay * max(0.0, mwp - 1) * waits * rep
    return MwpCwpTerms(
        mean_cycles=mean,
        departure_delay_cycles=delay,
        mwp=mwp,
        comp_cycles=comp_cycles,
        mem_cycles=mem_cycles,
        cwp=cwp,
        case=case,
        rep=rep,
        synch_cycles=synch,
        seconds=(cycles * rep + synch) / launch.freq_hz,
    )
