"""What bounds a launch on a GPU: the time of every limiter, and how they overlap."""

from kernelcast.analytic.gpu.limiters.assess import Assessment, assess
from kernelcast.analytic.gpu.limiters.constants import (
    FITTED,
    PAPER_2022,
    LimiterConstants,
    match_constants,
)
from kernelcast.analytic.gpu.limiters.demands import Demands, Patterns, make_demands
from kernelcast.analytic.gpu.limiters.rates import GpuRates, read_rates

__all__ = [
    "FITTED",
    "PAPER_2022",
    "Assessment",
    "Demands",
    "GpuRates",
    "LimiterConstants",
    "Patterns",
    "assess",
    "make_demands",
    "match_constants",
    "read_rates",
]
