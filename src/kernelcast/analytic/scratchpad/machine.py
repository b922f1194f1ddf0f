"""A processor whose cores move data between memory and scratchpads themselves (Table I)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchpadMachine:
    """A processor in the numbers of Table I.

    Raises
    ------
    InputError
        If a number is not positive, or there is no compute instruction.
    """

    id: str
    name: str
    """Name for the command line, and the full one."""
    clock_hz: float
    """``Freq``."""
    bandwidth_bytes_per_s: float
    """``mem_bw``: of memory, per core group."""
    transaction_bytes: int
    """``Trans_size``: bytes of a transaction with memory."""
    delay_cycles: float
    """Delta delay: what each further transaction of a request adds to its latency."""
    base_latency_cycles: float
    """``L_base``: of a request that meets no other."""
    latencies_cycles: Mapping[str, float]
    """``L_t``: of each type of compute instruction."""
    cpes_per_group: int
    core_groups: int
    """Computing elements of a core group, and core groups."""
    spm_bytes: int
    """Scratchpad memory of one computing element."""
    gload_bytes: int
    """What one Gload request moves at most."""

    def __post_init__(self) -> None:
        numbers = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, value in numbers.items():
            if isinstance(value, int | float) and not (math.isfinite(value) and value > 0):
                msg = f"machine {self.id}: {name} is {value}; expected a number above 0"
                raise InputError(msg)
        if not self.latencies_cycles:
            msg = f"machine {self.id}: no latency of a compute instruction is given"
            raise InputError(msg)

    @property
    def most_cpes(self) -> int:
        """Computing elements of the whole processor."""
        return self.cpes_per_group * self.core_groups

    def bandwidth(self, active_cpes: int) -> float:
        """Give the bandwidth of the core groups in use, in bytes per second.

        It grows with the core groups that the active elements fill (Section V-C3).

        Raises
        ------
        InputError
            If the processor has fewer elements.

        Examples
        --------
        >>> from kernelcast.launches.modelling.scratchpad_machines import find_scratchpad
        >>> SW26010 = find_scratchpad("sw26010")
        >>> SW26010.bandwidth(48) / 1e9, SW26010.bandwidth(65) / 1e9
        (32.0, 64.0)
        """
        if not 1 <= active_cpes <= self.most_cpes:
            msg = (
                f"{active_cpes} active CPEs: {self.name} has {self.most_cpes} "
                f"({self.core_groups} core groups of {self.cpes_per_group}); give 1 to "
                f"{self.most_cpes}"
            )
            raise InputError(msg)
        return -(-active_cpes // self.cpes_per_group) * self.bandwidth_bytes_per_s
