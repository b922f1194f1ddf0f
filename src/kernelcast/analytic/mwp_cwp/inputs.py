"""What Hong and Kim's model needs to know, in the terms of their Table 1."""

import math
from dataclasses import dataclass, fields

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class MwpCwpMachine:
    """A GPU, or what stands in for one.

    Raises
    ------
    InputError
        If a number is not positive.
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

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not (math.isfinite(value) and value > 0):
                msg = f"MWP-CWP: {one.name} is {value}; expected a number above 0"
                raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class MwpCwpLaunch:
    """A kernel and how it fills the compute units.

    Parameters
    ----------
    comp_insts, coal_mem_insts, uncoal_mem_insts, synch_insts : float
        ``#Comp_insts``, ``#Coal_Mem_insts``, ``#Uncoal_Mem_insts``, ``#Synch_insts``: of one
        thread, over its whole life.
    uncoal_per_mw : float
        ``#Uncoal_per_mw``: transactions of an uncoalesced memory instruction of a warp.
    load_bytes_per_warp : float
        ``Load_bytes_per_warp``: bytes that the threads of a warp ask for in one memory
        instruction.
    active_warps_per_sm : float
        ``#Active_warps_per_SM``, ``N``: warps that a compute unit holds at once.
    active_blocks_per_sm, active_sms, blocks : float
        ``#Active_blocks_per_SM``, ``#Active_SMs``, ``#Blocks``.

    Raises
    ------
    InputError
        If a count is negative, there are no instructions, or nothing is active.
    """

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
            msg = (
                f"MWP-CWP: {self.comp_insts} computation, {self.coal_mem_insts} coalesced and "
                f"{self.uncoal_mem_insts} uncoalesced memory instructions; expected none below 0 "
                "and some instructions"
            )
            raise InputError(msg)
        for name in ("active_warps_per_sm", "active_blocks_per_sm", "active_sms", "blocks",
                     "uncoal_per_mw", "load_bytes_per_warp"):  # fmt: skip
            if getattr(self, name) <= 0:
                msg = f"MWP-CWP: {name} is {getattr(self, name)}; expected a number above 0"
                raise InputError(msg)

    @property
    def mem_insts(self) -> float:
        """``#Mem_insts``: memory instructions of one thread."""
        return self.coal_mem_insts + self.uncoal_mem_insts

    @property
    def total_insts(self) -> float:
        """``#Total_insts``."""
        return self.comp_insts + self.mem_insts
