"""What functions cost on runtimes that ``benchmarks/operation_costs.py`` has measured.

Compilers turn a function into very different code: Intel's runtime has vector versions of all and
divides by Newton steps; PoCL has vector versions of few, and calls the others once per lane; on
llvmpipe a division takes as long as thirty additions. Their
ratios to the calibrated cosine, and to an addition, belong to the compiler more than to the
processor: measured on an EPYC with AVX-512, no kernel of the corpus among what was run. What other
programs took of the processor meanwhile is the ratio of the cosine to its calibrated time, and is
divided out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

INTEL, POCL, RUSTICL = "Intel(R) OpenCL", "Portable Computing Language", "rusticl"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCosts:
    """Costs of single-precision functions on a runtime."""

    divider_adds: Mapping[str, float]
    divider_vector_adds: Mapping[str, float]
    """Time of divisions and roots, in scalar additions and per vector in vector additions."""
    scalar: Mapping[str, float]
    vector: Mapping[str, float]
    """Time of other functions, in calibrated cosines (native ones: in calibrated native cosines) of
    scalars and of vectors."""
    by_lane: frozenset[str]
    """Functions that are called once per lane of a vector."""
    never_jumps: bool = False
    """Whether both sides of every condition are gone through, under masks."""
    gathers_narrowed: bool = False
    """Whether lanes are gathered whose indices pass through 32 bits."""

    def divide_adds(self, name: str, lanes: int) -> float | None:
        """Find the additions of a division, root or their like; None of another function."""
        return (self.divider_adds if lanes == 1 else self.divider_vector_adds).get(name)

    def weigh(self, name: str, *, is_scalar: bool) -> float | None:
        """Find the cosines of a function; None where it was not measured."""
        return (self.scalar if is_scalar else self.vector).get(name)


_INTEL_FUNCTIONS = {
    "cos": 1.0, "sin": 0.95, "sincos": 0.8, "tan": 0.85, "exp": 0.47, "exp2": 0.4, "exp10": 0.5,
    "log": 0.52, "log2": 0.6, "log10": 0.6, "pow": 1.05, "powr": 1.05, "pown": 1.05, "tanh": 0.65,
    "atan": 0.65, "atan2": 1.3, "asin": 0.6, "acos": 0.6, "sinh": 0.65, "cosh": 0.5, "erf": 1.4,
    "erfc": 2.1, "cbrt": 0.7, "fmod": 0.45, "native_cos": 1.0, "native_sin": 1.0,
    "native_exp": 0.4, "native_exp2": 0.4, "native_log": 0.4, "native_log2": 0.4,
}  # fmt: skip
_INTEL_DIVIDER = {
    "divide": 4.5, "sqrt": 7.1, "rsqrt": 8.2, "native_rsqrt": 2.2, "native_recip": 2.2,
    "native_divide": 3.8, "native_sqrt": 7.1, "half_rsqrt": 2.2, "half_recip": 2.2,
    "half_divide": 3.8, "half_sqrt": 7.1, "hypot": 12.0,
}  # fmt: skip
_POCL_FUNCTIONS = {
    "cos": 1.0, "sin": 1.0, "sincos": 1.03, "tan": 1.07, "exp": 0.35, "exp2": 0.45, "exp10": 0.5,
    "log": 0.95, "log2": 0.32, "log10": 1.1, "pow": 7.0, "powr": 7.0, "pown": 7.0, "tanh": 0.52,
    "atan": 1.6, "atan2": 2.0, "asin": 0.37, "acos": 0.45, "sinh": 0.76, "cosh": 0.84, "erf": 1.2,
    "erfc": 4.4, "cbrt": 2.3, "hypot": 2.3, "fmod": 0.75, "native_cos": 1.0, "native_sin": 1.2,
    "native_exp": 1.0, "native_exp2": 1.3, "native_log": 2.7, "native_log2": 0.9,
}  # fmt: skip
_POCL_VECTORS = {
    "exp": 0.6, "tanh": 0.95, "native_cos": 3.0, "native_sin": 3.0, "native_exp": 3.0,
}  # fmt: skip
_RUSTICL_FUNCTIONS = {
    "cos": 1.0, "sin": 1.0, "sincos": 1.1, "tan": 1.0, "exp": 0.4, "exp2": 0.36, "exp10": 0.72,
    "log": 0.66, "log2": 0.65, "log10": 0.67, "pow": 1.6, "powr": 1.6, "pown": 1.6, "tanh": 0.62,
    "atan": 0.33, "atan2": 0.32, "asin": 0.37, "acos": 0.35, "sinh": 0.87, "cosh": 0.87,
    "erf": 1.1, "erfc": 1.0, "cbrt": 0.7, "hypot": 0.2, "fmod": 0.26, "native_cos": 3.4,
    "native_sin": 3.4, "native_exp": 1.8, "native_exp2": 1.8, "native_log": 2.6, "native_log2": 2.6,
}  # fmt: skip
_RUSTICL_DIVIDER = {
    "divide": 35.0, "sqrt": 15.0, "rsqrt": 37.0, "native_rsqrt": 32.0, "native_divide": 35.0,
    "native_sqrt": 15.0, "native_recip": 35.0,
}  # fmt: skip
_MEASURED: Mapping[str, FunctionCosts] = {
    INTEL: FunctionCosts(
        divider_adds=_INTEL_DIVIDER, divider_vector_adds=_INTEL_DIVIDER,
        scalar=_INTEL_FUNCTIONS, vector=_INTEL_FUNCTIONS, by_lane=frozenset(),
        gathers_narrowed=True,
    ),
    POCL: FunctionCosts(
        divider_adds={"divide": 2.0, "sqrt": 2.6, "rsqrt": 7.9, "native_rsqrt": 7.9,
                      "native_recip": 1.7, "native_divide": 2.0, "native_sqrt": 2.6},
        divider_vector_adds={"divide": 7.4, "sqrt": 15.6, "rsqrt": 25.0, "native_rsqrt": 25.0,
                             "native_recip": 7.4, "native_divide": 7.4, "native_sqrt": 15.6},
        scalar=_POCL_FUNCTIONS, vector=_POCL_VECTORS,
        by_lane=frozenset(_POCL_FUNCTIONS) - frozenset(_POCL_VECTORS),
    ),
    RUSTICL: FunctionCosts(
        divider_adds=_RUSTICL_DIVIDER, divider_vector_adds=_RUSTICL_DIVIDER,
        scalar=_RUSTICL_FUNCTIONS, vector=_RUSTICL_FUNCTIONS, by_lane=frozenset(),
        never_jumps=True,
    ),
}  # fmt: skip


def find_function_costs(platform: str) -> FunctionCosts | None:
    """Find what was measured on a runtime, by the name of its platform; None of others."""
    return _MEASURED.get(platform)
