"""What instructions and built-in functions execute, as operations by kind and width."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from kernelcast.compiling.ir import (
    Instruction,
    Module,
    Operand,
    is_vector,
    lane_of,
    split_sequence,
)
from kernelcast.compiling.signatures import split_name
from kernelcast.records.operations import NumberClass, Operation
from kernelcast.records.operations import OperationKind as Kind


def name_called(instruction: Instruction) -> str:
    return split_name(instruction.detail)[0]


def mangled_types(instruction: Instruction) -> str:
    return split_name(instruction.detail)[1]


@lru_cache(maxsize=512)
def bits_of(type_name: str) -> int:
    """Give the bits of a whole number's type, or of a vector's lane; 0 for all else."""
    lane = lane_of(type_name)
    return int(lane[1:]) if lane[:1] == "i" and lane[1:].isdigit() else 0


def lanes_of(type_name: str) -> int:
    sequence = split_sequence(type_name) if is_vector(type_name) else None
    return sequence[0] if sequence else 1


def is_float(type_name: str) -> bool:
    return lane_of(type_name) in _FLOAT_BITS


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
    Kind.COPY: "prefetch",
}
_SINGLE = {name: kind for kind, names in _CHEAP.items() for name in names.split()} | dict.fromkeys(
    _PRECISE, Kind.SPECIAL
)
# Functions that are several operations, for vectors of so many lanes: kind, how many, of how many
# lanes each; and how their roots are taken.
_Parts = tuple[tuple[Kind, int, int], ...]
_COMPOSED: dict[str, Callable[[int, Kind], _Parts]] = {
    "clamp": lambda lanes, _: ((Kind.SELECT, 2, lanes),),
    "mix": lambda lanes, _: ((Kind.ADD, 1, lanes), (Kind.FUSED, 1, lanes)),
    "dot": lambda lanes, _: _dot(lanes),
    "cross": lambda *_: ((Kind.MULTIPLY, 2, 3), (Kind.ADD, 1, 3)),
    "length": lambda lanes, root: (*_dot(lanes), (root, 1, 1)),
    "distance": lambda lanes, root: ((Kind.ADD, 1, lanes), *_dot(lanes), (root, 1, 1)),
    "normalize": lambda lanes, root: (
        *_dot(lanes), (root, 1, 1), (Kind.MULTIPLY, 1, lanes),
    ),
}  # fmt: skip
# Ids, sizes, reinterpretations: no work of their own.
_FREE = re.compile(
    r"get_(work_dim|global_(id|size|offset|linear_id)|local_(id|size|linear_id)|group_id"
    r"|num_groups|enqueued_local_size|sub_group_\w+|num_sub_groups|max_sub_group_size"
    r"|enqueued_num_sub_groups)|as_\w+|__builtin_astype|vec_step|__builtin_(inf|nan|huge_val)f?"
)
_ATOMIC = re.compile(r"atom(ic)?_\w+")
VECTOR_ACCESS = re.compile(r"v(load|store)(?:(\d+)|(a?_half)(\d*)(?:_\w+)?)")


@cache
def find_parts(name: str, lanes: int) -> _Parts | None:
    """List (kind, number, lanes) of what a builtin executes; None for an unknown function."""
    if _FREE.fullmatch(name):
        return ()
    single = _SINGLE.get(name)
    if single is not None:
        return ((single, 1, 1 if single in (Kind.BARRIER, Kind.COPY) else lanes),)
    composed = _COMPOSED.get(name.removeprefix("fast_"))
    if composed is not None:
        return composed(lanes, Kind.SPECIAL_NATIVE if name.startswith("fast_") else Kind.SPECIAL)
    if name.startswith("convert_"):
        return ((Kind.CONVERT, 1, lanes),)
    if name.startswith(("native_", "half_")):
        return ((Kind.SPECIAL_NATIVE, 1, lanes),)
    return None


@cache
def is_atomic(name: str) -> bool:
    return bool(_ATOMIC.fullmatch(name)) and name not in _SINGLE


def _dot(lanes: int) -> _Parts:
    sums: Iterable[tuple[Kind, int, int]] = ((Kind.ADD, lanes - 1, 1),) if lanes > 1 else ()
    return ((Kind.MULTIPLY, 1, lanes), *sums)


_KINDS: Final = {
    "select": Kind.SELECT, "getelementptr": Kind.ADDRESS, "icmp": Kind.COMPARE,
    "fcmp": Kind.COMPARE, "fmul": Kind.MULTIPLY, "mul": Kind.MULTIPLY,
    **dict.fromkeys(("fadd", "fsub", "fneg", "add", "sub"), Kind.ADD),
    **dict.fromkeys(("fdiv", "frem", "sdiv", "udiv", "srem", "urem"), Kind.DIVIDE),
    **dict.fromkeys(("shl", "lshr", "ashr", "and", "or", "xor"), Kind.LOGIC),
    **dict.fromkeys(("sext", "zext", "trunc", "fptosi", "fptoui", "sitofp", "uitofp", "fpext",
                     "fptrunc"), Kind.CONVERT),
    **dict.fromkeys(("br", "switch"), Kind.BRANCH),
    **dict.fromkeys(("atomicrmw", "cmpxchg"), Kind.ATOMIC),
}  # fmt: skip
_FLOAT_BITS: Final = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "fp128": 128}
_IGNORED: Final = re.compile(
    r"llvm\.(?:lifetime|dbg|assume|experimental\.noalias|donothing|mem|expect|va_)"
)
INTRINSICS: Final = {
    "smin": "min", "smax": "max", "umin": "min", "umax": "max", "fabs": "fabs", "fma": "fma",
    "sqrt": "sqrt", "minnum": "fmin", "maxnum": "fmax", "ctlz": "clz", "cttz": "ctz",
    "ctpop": "popcount", "abs": "abs", "fshl": "rotate", "fshr": "rotate", "copysign": "copysign",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "exp": "exp", "log": "log",
    "sin": "sin", "cos": "cos", "pow": "pow",
}  # fmt: skip


@lru_cache(maxsize=1024)
def make_operation(
    kind: Kind, number: NumberClass, bits: int, lanes: int, name: str = ""
) -> Operation:
    return Operation(kind=kind, number=number, bits=bits, lanes=lanes, name=name)


@lru_cache(maxsize=512)
def number_of(type_name: str) -> tuple[NumberClass, int, int]:
    lanes = lanes_of(type_name)
    if is_float(type_name):
        return NumberClass.FLOAT, _FLOAT_BITS[lane_of(type_name)], lanes
    bits = bits_of(type_name)
    return (NumberClass.INTEGER, max(8, bits), lanes) if bits else (NumberClass.NONE, 0, 1)


def count_instruction(one: Instruction, module: Module, counts: Counter[Operation]) -> None:
    """Add what an instruction executes; loads and stores are accesses."""
    if one.opcode == "call":
        _count_call(one, counts)
        return
    kind, number, name = _KINDS.get(one.opcode), number_of(one.type), ""
    if kind is None:
        return
    if kind is Kind.CONVERT:
        before = one.operands[0][0]
        if 1 in (bits_of(before), bits_of(one.type)):
            return  # a condition is a number already
        (one_class, one_bits, _), (two_class, two_bits, lanes) = number_of(before), number
        is_floating = NumberClass.FLOAT in (one_class, two_class)
        number = (NumberClass.FLOAT if is_floating else NumberClass.INTEGER,
                  max(one_bits, two_bits), lanes)  # fmt: skip
    elif kind is Kind.ADDRESS:
        # An address of a structure's member costs nothing.
        pointed = module.types.get(one.detail, one.detail)
        is_byte = one.detail == "i8" and not one.operands[1][1].startswith("%")
        if is_byte or "{" in pointed.partition("[")[0]:
            return
    elif kind is Kind.BRANCH:
        kind, number = kind if one.operands else Kind.JUMP, number_of("")
    elif kind is Kind.ATOMIC:
        name = f"atomic_{one.detail}"
    elif one.type == "i1":
        if kind is not Kind.LOGIC:
            return
        number = number_of("i32")  # truth values are int in OpenCL C
    counts[make_operation(kind, *number, name)] += 1


def _count_call(one: Instruction, counts: Counter[Operation]) -> None:
    if _IGNORED.match(one.detail):
        return
    name = name_called(one)
    if name.startswith("llvm."):
        name = name[5:].partition(".")[0]
        if name == "fmuladd":
            counts[make_operation(Kind.MULTIPLY, *number_of(one.type))] += 1
            counts[make_operation(Kind.ADD, *number_of(one.type))] += 1
            return
        name = INTRINSICS.get(name, name)
    if VECTOR_ACCESS.fullmatch(name):
        return
    if is_atomic(name):
        counts[make_operation(Kind.ATOMIC, *atomic_number(one), name)] += 1
        return
    numbers = [each for kind, _ in one.operands if (each := number_of(kind)) != number_of("")]
    number, *others = numbers or (number_of(one.type),)
    parts = find_parts(name, max(lanes for *_, lanes in (number, *others)))
    if parts is None:
        counts[make_operation(Kind.CALL, NumberClass.NONE, 0, 1, name)] += 1
        return
    for kind, times, part_lanes in parts:
        plain = kind in (Kind.BARRIER, Kind.COPY)
        is_named = plain or part_lanes > 1 or kind in (Kind.SPECIAL, Kind.SPECIAL_NATIVE)
        operation = make_operation(
            kind, NumberClass.NONE if plain else number[0], 0 if plain else number[1], part_lanes,
            name if is_named else "",
        )  # fmt: skip
        counts[operation] += times


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorAccess:
    """A vload or a vstore: its pointer is moved by so many bytes for each of its index."""

    is_store: bool
    pointer: Operand
    index: Operand
    lanes: int
    bytes: int
    stride: int


def read_vector_access(one: Instruction, module: Module) -> VectorAccess | None:
    match = VECTOR_ACCESS.fullmatch(name_called(one)) if one.opcode == "call" else None
    if match is None:
        return None
    is_store, lanes, half = match[1] == "store", int(match[2] or match[4] or 1), match[3]
    place = next(at for at, (kind, _) in enumerate(one.operands) if kind.startswith("ptr"))
    moved = one.operands[0][0] if is_store else one.type
    element = 2 if half else module.size_of(lane_of(moved))
    # Three lanes are packed by vload3 and vstore3, four apart by the aligned ones.
    apart = 4 if lanes == 3 and half == "a_half" else lanes
    return VectorAccess(
        is_store=is_store, pointer=one.operands[place], index=one.operands[place - 1],
        lanes=lanes, bytes=lanes * element, stride=apart * element,
    )  # fmt: skip


def atomic_number(one: Instruction) -> tuple[NumberClass, int, int]:
    numbers = [each for kind, _ in one.operands[1:] if (each := number_of(kind)) != number_of("")]
    if numbers and name_called(one).startswith(("atom_", "atomic_")):
        return numbers[0]
    own = number_of(one.type)
    if own[0] is not NumberClass.NONE:
        return own
    long = "l" in mangled_types(one) or "m" in mangled_types(one)
    return NumberClass.INTEGER, 64 if long else 32, 1
