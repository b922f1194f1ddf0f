"""How many work-groups are active at once per compute unit (P_sat), from public limits.

Pure: knows devices by their names and numbers only. For devices without a table, `find_limits`
gives None and P_sat has to be measured.
"""

from kernelcast.sampling.occupancy.amd import AmdLimits
from kernelcast.sampling.occupancy.build_log import CompiledResources, parse_build_log
from kernelcast.sampling.occupancy.intel_gpu import IntelLimits
from kernelcast.sampling.occupancy.nvidia import NvidiaLimits
from kernelcast.sampling.occupancy.resources import KernelResources, Limiter, OccupancyResult
from kernelcast.sampling.occupancy.rules import DeviceLimits, compute_p_sat, find_limits

__all__ = [
    "AmdLimits",
    "CompiledResources",
    "DeviceLimits",
    "IntelLimits",
    "KernelResources",
    "Limiter",
    "NvidiaLimits",
    "OccupancyResult",
    "compute_p_sat",
    "find_limits",
    "parse_build_log",
]
