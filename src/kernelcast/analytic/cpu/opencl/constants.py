"""What calibration does not tell of a CPU and its OpenCL runtime; all of it stands here.

Times are told in units of the machine's own (one scalar addition that no other waits for), so that
they travel between clocks. The numbers were chosen with the kernels of ``examples/`` on two OpenCL
runtimes of one processor (`benchmarks/cpu_model.py` shows what they give), and then with the corpus
on Intel's runtime and PoCL, on one processor each (`benchmarks/static_estimates.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_FUNCTIONS: Mapping[str, float] = MappingProxyType({
    "exp": 0.5, "exp2": 0.5, "exp10": 0.5, "log": 0.8, "log2": 0.8, "log10": 0.8,
    "cospi": 0.8, "sinpi": 0.8, "tanpi": 1.2,
    "tan": 1.5, "asin": 1.5, "acos": 1.5, "atan": 1.2, "atan2": 2.0, "sinh": 1.5, "cosh": 1.5,
    "tanh": 1.2, "pow": 16.0, "pown": 16.0, "powr": 16.0, "rootn": 16.0, "erf": 2.0, "erfc": 3.0,
    "lgamma": 6.0, "tgamma": 6.0,
})  # fmt: skip
_DIVIDER: Mapping[str, int] = MappingProxyType({
    "sqrt": 1, "rsqrt": 2, "native_sqrt": 1, "native_rsqrt": 2, "half_sqrt": 1, "half_rsqrt": 2,
    "native_divide": 1, "native_recip": 1, "length": 1, "distance": 1, "normalize": 2,
    "fast_length": 1, "fast_normalize": 2, "hypot": 1,
})  # fmt: skip
_BY_LANE = frozenset({"cospi", "sinpi", "tanpi", "acospi", "asinpi", "atanpi", "atan2pi", "sincos"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItemConstants:
    """Costs that no microbenchmark measures.

    Parameters
    ----------
    divider_adds : float
        Time of a scalar division or square root, in additions.
    divider_adds_per_lane : float
        The same per lane of a vector, whose lanes go through the divider in turn.
    gather_adds_per_lane : float
        Time per lane of a vector load or store whose lanes do not lie side by side.
    masked_gather : float
        How many times as long accesses take, lane by lane, that some lanes may leave out, on
        vectors without mask registers: one lane after the other is asked.
    mask_adds : float
        Time to narrow the lanes that are active at a branch, likewise, per vector.
    multiply_long : float
        Products of 32 bits that one of 64 bits takes on vectors.
    divide_integers : tuple of (float, float)
        Integer operations that a division or remainder takes, of one number and of a register:
        geometric means of constant divisors and others (`benchmarks/operation_costs.py`).
    barrier_adds_per_work_item : float
        Time of a barrier per work-item: the loop over work-items ends and begins again, and what
        lives across the barrier goes to memory and back.
    barrier_adds_per_vector : float
        The same of a vector of work-items at most, however wide.
    exit_chains : float
        Time lost where a loop's end is not foretold, in additions that wait for each other.
    scalar_misses, gather_misses : float
        Cache misses that a core waits for at once, of independent loads and within a gather.
    functions : mapping of str to float
        Time of precise functions, in calibrated cosines.
    divider : mapping of str to int
        Functions that are passes through the divider.
    by_lane : frozenset of str
        Functions of which vector libraries have no vector version.
    """

    divider_adds: float = 4.0
    divider_adds_per_lane: float = 2.0
    gather_adds_per_lane: float = 2.5
    masked_gather: float = 3.0
    mask_adds: float = 6.0
    multiply_long: float = 4.0
    divide_integers: tuple[float, float] = (6.0, 16.0)
    barrier_adds_per_work_item: float = 6.0
    barrier_adds_per_vector: float = 48.0
    exit_chains: float = 5.0
    scalar_misses: float = 12.0
    gather_misses: float = 6.0
    functions: Mapping[str, float] = field(default_factory=lambda: _FUNCTIONS)
    divider: Mapping[str, int] = field(default_factory=lambda: _DIVIDER)
    by_lane: frozenset[str] = _BY_LANE


FITTED = WorkItemConstants()
"""Chosen with the examples and the corpus."""
