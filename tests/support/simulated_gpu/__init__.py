"""A GPU that exists as numbers only: launches of a cycle-level simulator, replayed.

The simulator's whole launches, launches of the first work-groups and warmed windows answer as a
`PreparedLaunch` does; nothing is simulated here. ``runs.json`` names the simulator, its version and
the meaning of each number. Shapes, ratios and counters are to be trusted, absolute times are not.
"""

from support.simulated_gpu.launch import SimulatedLaunch
from support.simulated_gpu.problems import make_problem
from support.simulated_gpu.runs import (
    SimulatedGpu,
    SimulatedKernel,
    SimulatedRun,
    load_simulated_kernels,
)

__all__ = [
    "SimulatedGpu",
    "SimulatedKernel",
    "SimulatedLaunch",
    "SimulatedRun",
    "load_simulated_kernels",
    "make_problem",
]
