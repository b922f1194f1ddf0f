"""What OpenCL C's builtin functions cost, in operations (OpenCL C 6.13)."""

import re
from collections.abc import Callable, Iterable
from functools import cache

from kernelcast.records.operations import OperationKind as Kind

_PRECISE = """
acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt cos cosh cospi erfc erf
exp exp2 exp10 expm1 fdim fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log2 log10 log1p
logb modf nextafter pow pown powr remainder remquo rootn rsqrt sin sincos sinh sinpi sqrt tan tanh
tanpi tgamma smoothstep
""".split()  # noqa: SIM905 - a list of 60 lines tells no more
_CHEAP = {
    Kind.ADD: "floor ceil round trunc rint hadd rhadd add_sat sub_sat abs_diff",
    Kind.LOGIC: "fabs abs copysign sign signbit rotate popcount clz ctz upsample bitselect "
    "shuffle shuffle2",
    Kind.MULTIPLY: "mul24 mul_hi degrees radians",
    Kind.FUSED: "fma mad mad24 mad_hi mad_sat",
    Kind.SELECT: "min max fmin fmax maxmag minmag select step",
    Kind.COMPARE: "isequal isnotequal isgreater isgreaterequal isless islessequal islessgreater "
    "isfinite isinf isnan isnormal isordered isunordered any all",
    Kind.BARRIER: "barrier work_group_barrier sub_group_barrier mem_fence read_mem_fence "
    "write_mem_fence atomic_work_item_fence",
    Kind.COPY: "async_work_group_copy async_work_group_strided_copy prefetch wait_group_events",
}
_SINGLE = {name: kind for kind, names in _CHEAP.items() for name in names.split()} | dict.fromkeys(
    _PRECISE, Kind.SPECIAL
)
# Functions that are several operations, for vectors of so many lanes: kind, how many, of how many
# lanes each.
_Parts = tuple[tuple[Kind, int, int], ...]
_COMPOSED: dict[str, Callable[[int], _Parts]] = {
    "clamp": lambda lanes: ((Kind.SELECT, 2, lanes),),
    "mix": lambda lanes: ((Kind.ADD, 1, lanes), (Kind.FUSED, 1, lanes)),
    "dot": lambda lanes: _dot(lanes),
    "cross": lambda _: ((Kind.MULTIPLY, 2, 3), (Kind.ADD, 1, 3)),
    "length": lambda lanes: (*_dot(lanes), (Kind.SPECIAL, 1, 1)),
    "distance": lambda lanes: ((Kind.ADD, 1, lanes), *_dot(lanes), (Kind.SPECIAL, 1, 1)),
    "normalize": lambda lanes: (
        *_dot(lanes), (Kind.SPECIAL, 1, 1), (Kind.MULTIPLY, 1, lanes),
    ),
    "fast_length": lambda lanes: (*_dot(lanes), (Kind.SPECIAL_NATIVE, 1, 1)),
    "fast_distance": lambda lanes: (
        (Kind.ADD, 1, lanes), *_dot(lanes), (Kind.SPECIAL_NATIVE, 1, 1),
    ),
    "fast_normalize": lambda lanes: (
        *_dot(lanes), (Kind.SPECIAL_NATIVE, 1, 1), (Kind.MULTIPLY, 1, lanes),
    ),
}  # fmt: skip
# Ids, sizes, reinterpretations: no work of their own.
_FREE = re.compile(
    r"get_(work_dim|global_(id|size|offset|linear_id)|local_(id|size|linear_id)|group_id"
    r"|num_groups|enqueued_local_size|sub_group_\w+|num_sub_groups|max_sub_group_size"
    r"|enqueued_num_sub_groups)|as_\w+|__builtin_astype|vec_step|__builtin_(inf|nan|huge_val)f?"
)
_ATOMIC = re.compile(r"atom(ic)?_\w+")
_HALF = re.compile(r"(?P<what>vload|vstore)a?_half(?P<lanes>\d*)(_\w+)?")
_VECTOR = re.compile(r"(?P<what>vload|vstore)(?P<lanes>\d+)")

NATIVE_PREFIXES = ("native_", "half_")


@cache
def find_parts(name: str, lanes: int) -> _Parts | None:
    """List (kind, number, lanes) of what a builtin executes; None for an unknown function."""
    if _FREE.fullmatch(name):
        return ()
    single = _SINGLE.get(name)
    if single is not None:
        return ((single, 1, 1 if single in (Kind.BARRIER, Kind.COPY) else lanes),)
    composed = _COMPOSED.get(name)
    if composed is not None:
        return composed(lanes)
    if name.startswith("convert_"):
        return ((Kind.CONVERT, 1, lanes),)
    if name.startswith(NATIVE_PREFIXES):
        return ((Kind.SPECIAL_NATIVE, 1, lanes),)
    return None


@cache
def is_atomic(name: str) -> bool:
    """Tell whether a builtin is an atomic operation on memory."""
    return bool(_ATOMIC.fullmatch(name)) and name not in _SINGLE


@cache
def find_vector_access(name: str) -> tuple[bool, int, bool] | None:
    """Tell (does it store, lanes, is it half) of a vload or vstore; None for any other function."""
    match = _VECTOR.fullmatch(name)
    if match:
        return match["what"] == "vstore", int(match["lanes"]), False
    match = _HALF.fullmatch(name)
    if match:
        return match["what"] == "vstore", int(match["lanes"] or 1), True
    return None


def _dot(lanes: int) -> _Parts:
    sums: Iterable[tuple[Kind, int, int]] = ((Kind.ADD, lanes - 1, 1),) if lanes > 1 else ()
    return ((Kind.MULTIPLY, 1, lanes), *sums)
