"""MWP, CWP and the three cases (Hong and Kim, ISCA 2009, Section 3), with the terms of Table 1."""

import math
from dataclasses import dataclass, fields

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


def model_mwp_cwp(launch: MwpCwpInputs, *, is_published: bool = True) -> float:
    """Compute the seconds of a launch; the case by the published rule, or by parallelism alone."""
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
    if not launch.mem_insts:  # MWP has no meaning, and there is no latency
        cycles = comp_cycles * warps
    elif mwp == warps and cwp == warps:  # too few warps to hide latency
        cycles = mem_cycles + comp_cycles + comp_cycles / launch.mem_insts * (mwp - 1)
    elif cwp >= mwp or (comp_cycles > mem_cycles and is_published):
        # Warps wait for memory, computation hides behind it. The published rule takes this for
        # kernels that compute most, too, where it counts one computation period per warp instead of
        # all of them.
        cycles = mem_cycles * warps / mwp + comp_cycles / launch.mem_insts * (mwp - 1)
    else:  # memory hides behind computation
        cycles = mean + comp_cycles * warps
    waits = launch.synch_insts * launch.active_blocks_per_sm
    synch = delay * max(0.0, mwp - 1) * waits * rep
    return (cycles * rep + synch) / launch.freq_hz
