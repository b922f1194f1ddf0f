"""How many work-groups are active at once per compute unit (P_sat), from public limits.

Pure: knows devices by their names and numbers only. For devices without a table, `find_limits`
gives None and P_sat has to be measured.
"""

from kernelcast.sampling.occupancy.build_log import CompiledResources, parse_build_log
from kernelcast.sampling.occupancy.limits import (
    AmdLimits,
    ComputeUnitLimits,
    DeviceLimits,
    IntelLimits,
)
from kernelcast.sampling.occupancy.lookup import find_limits
from kernelcast.sampling.occupancy.resources import KernelResources, Limiter, OccupancyResult
from kernelcast.sampling.occupancy.rules import compute_p_sat

__all__ = [
    "AmdLimits",
    "CompiledResources",
    "ComputeUnitLimits",
    "DeviceLimits",
    "IntelLimits",
    "KernelResources",
    "Limiter",
    "OccupancyResult",
    "compute_p_sat",
    "find_limits",
    "parse_build_log",
]
