"""What an analytic model answers: seconds, and the limiters that they come from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelcast.records.errors import KernelcastError


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticEstimate:
    """Time of a whole launch by an analytic model."""

    model: str
    """Which: ``gpu``, ``cpu``, ``scratchpad``, ``mwp_cwp``."""
    machine: str
    """Id of the machine description."""
    seconds: float
    limiter: str
    """What bounds it: a key of `limiters`."""
    limiters: Mapping[str, float]
    """Seconds that each part alone would take: ``fp32``, ``L1``, ``DRAM``, ``latency``."""
    volumes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of the whole launch over each boundary: ``L2_to_L1``, ``DRAM_to_L2``,
    ``L2_to_DRAM``."""
    quantities: Mapping[str, float] = field(default_factory=dict)
    """Everything else worth reading or learning from; names end in their unit, see
    `kernelcast.records.feature_vector.UNITS`."""
    notes: tuple[str, ...] = ()
    """What was assumed, and which numbers of the machine were missing."""
    doubt: float = 0.0
    """By how much more than usual the logarithm of the time may be off, where data end loops."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            msg = f"the {self.model} model answers {self.seconds} s; expected a positive time"
            raise KernelcastError(msg)
        if self.limiter not in self.limiters:
            msg = f"limiter {self.limiter!r} is not one of {', '.join(self.limiters)}"
            raise KernelcastError(msg)
