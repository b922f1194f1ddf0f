"""A GPU that exists as numbers only: runs of a cycle-level simulator.

Whole launches, launches of the first work-groups and warmed windows; nothing is simulated here.
``runs.json`` names the simulator, its version and the meaning of each number. Shapes, ratios and
counters are to be trusted, absolute times are not.
"""

from support.simulated_gpu.problems import make_problem
from support.simulated_gpu.runs import SimulatedKernel, SimulatedRun, load_simulated_kernels

__all__ = ["SimulatedKernel", "SimulatedRun", "load_simulated_kernels", "make_problem"]
