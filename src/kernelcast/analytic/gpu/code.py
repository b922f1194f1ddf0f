"""What a warp does by compiled code: slots of each pipe, wavefronts of local memory, waits."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Final

from kernelcast.compiling import Compiled
from kernelcast.compiling.execution import Instruction, count_executed, find_ptx_body
from kernelcast.records.ndrange import NDRange

Slots = Mapping[str, float]
_PIPES: Final = ("fp32", "fp64", "int", "special")
_WARP_WIDTH: Final = 32
_LOCAL_BYTES: Final = 128
"""A wavefront of local memory, of 32 banks."""
_DEPOT: Final = re.compile(r"\.local \S+ \d+ \.b8\s+\S+\[(\d+)\]")
_FREE: Final = frozenset({"mov", "cvta", "neg", "abs", "bra", "ret", "prefetch"})
"""Copies and signs, which become part of other instructions; branches take one slot."""
# Instructions of a correctly rounded division or root: of fp32 by counters of an RTX 2080 Ti, of
# fp64 a V100 takes 7.5 and 9.6 cycles of a warp's instruction (gpu-benches).
_DIVIDE: Final[Slots] = {"fp32": 10, "special": 1, "int": 4, "other": 10}
_DIVIDE_WIDE: Final[Slots] = {"fp64": 7.5, "special": 1, "int": 4}
_ROOT_WIDE: Final[Slots] = {"fp64": 9.6, "special": 1, "int": 4}
_INTEGER_DIVIDE: Final[Mapping[int, Slots]] = {
    32: {"int": 12, "fp32": 4, "special": 3}, 64: {"int": 45, "fp32": 20, "special": 3},
}  # fmt: skip
_APPROXIMATE: Final = frozenset({"sin", "cos", "ex2", "lg2", "rsqrt", "rcp", "sqrt", "tanh"})
_CALL: Final[Slots] = {"int": 20}
_MOST_SELECTS: Final = 8.0
_SELECTS: Final = 0.25
"""An element of a private array by an index that is not constant: selections among the array's
elements in registers, as an RTX 2080 Ti's counters show, at most what an access to memory takes."""
_INDEX: Final = 10.0
"""Instructions for each index of such accesses, of the same counters."""
# Cycles until a result can be used: V100 to H100, public microbenchmarks.
_LATENCY: Final = {"fp32": 4, "int": 5, "fp64": 8, "special": 18, "local": 25, "barrier": 20}


def read_work(
    compiled: Compiled, kernel: str, ndrange: NDRange, arguments: Sequence[int | None]
) -> dict[str, float] | None:
    """Count what a warp of a launch executes in PTX; None where data decide how often loops run.

    ``fp32``, ``fp64``, ``int`` and ``special`` are slots of each pipe of a compute unit:
    instructions, those of several passes as often; ``other`` are those of memory and branches,
    ``issued`` all of them. ``wavefronts`` are cycles of local memory without bank conflicts,
    ``latency`` those that instructions wait for one another, none other in the way. It waits for
    loads of global memory ``rounds`` times, one wait after the other.
    """
    executed = count_executed(compiled, kernel, ndrange, arguments)
    if executed is None:
        return None
    private_bytes = sum(map(int, _DEPOT.findall(find_ptx_body(compiled.text, kernel))))
    total = dict.fromkeys((*_PIPES, "other", "wavefronts", "latency", "rounds"), 0.0)
    # Registers that hold addresses in private memory that do not vary.
    fixed = {"%SP", "%SPL"}
    for one in itertools.chain.from_iterable(block for _, block in executed):
        if one.name in {"mov", "add", "cvta"} and one.read and fixed.issuperset(one.read):
            fixed.update(one.written)
    for visits, block in executed:
        if not visits:
            continue
        folded = _find_folded(block)
        for place, one in enumerate(block):
            slots = {} if place in folded else _count(one, private_bytes, fixed)
            for name, amount in slots.items():
                total[name] += visits * amount
        if any(_is_indexed(one, fixed) for one in block):
            total["other"] += visits * _INDEX
        cycles, rounds = _measure_chain(block)
        total["latency"] += visits * cycles
        total["rounds"] += visits * rounds
    return {**total, "issued": sum(total[name] for name in (*_PIPES, "other"))}


def _is_indexed(one: Instruction, fixed: set[str]) -> bool:
    """Tell whether an access to private memory has an address that varies."""
    if "local" not in one.parts or one.name not in {"ld", "st"}:
        return False
    address = next(text for text in one.operands if text.startswith("["))
    return not fixed.issuperset(re.findall(r"%\w+", address))


def _find_folded(block: Sequence[Instruction]) -> set[int]:
    """Find the instructions that others do as well."""
    # A product takes a sum with it (IMAD.WIDE), a comparison takes one condition that it is
    # combined with, and negated conditions are read as they are.
    wide = {one.written[0] for one in block if "wide" in one.parts}
    compared: set[str] = set()
    folded = set()
    for place, one in enumerate(block):
        if one.name == "setp":
            compared.update(one.written)
        elif one.parts[-1] == "pred":
            own = compared.intersection(one.read)
            if own or one.name == "not":
                folded.add(place)
                compared.difference_update(sorted(own)[:1])
        elif one.name == "add" and one.bits == 64 and wide.intersection(one.read):
            folded.add(place)
    return folded


def _count(one: Instruction, private_bytes: int, fixed: set[str]) -> Slots:
    name, bits = one.name, one.bits
    if name in {"ld", "ldu", "st", "atom", "red"}:
        return _count_access(one, private_bytes, fixed)
    if name in _FREE:
        is_id = name == "mov" and any(text.startswith(("%tid", "%ctaid")) for text in one.read)
        return {"other": 1.0} if name == "bra" or is_id else {}
    if name in {"bar", "barrier", "membar", "fence", "shfl", "vote", "match", "redux"}:
        return {"other": 1.0}
    if name == "call":
        return _CALL
    if name == "cvt":
        kinds = [part for part in one.parts if re.fullmatch(r"[fsu]\d+", part)]
        target, source = kinds[0], kinds[-1]
        if "f" in target or "f" in source:
            return {"special": 1.0}
        # Only widening a signed number takes an instruction.
        return {"int": 1.0} if (source, target) == ("s32", "s64") else {}
    if one.is_float and name not in {"selp", "setp"}:
        if name in {"div", "sqrt", "rcp", "rsqrt"} and not {"approx", "full"} & set(one.parts):
            wide = _ROOT_WIDE if "sqrt" in name else _DIVIDE_WIDE
            return wide if bits == 64 else _DIVIDE
        if name == "div":
            return {"fp32": 2 if "full" in one.parts else 1, "special": 1}
        if name in _APPROXIMATE:
            extra = 1.0 if name in {"sin", "cos", "sqrt"} else 0.0
            return {"special": 1.0, "fp32": extra}
        lanes = 2.0 if one.parts[-1].endswith("x2") else 1.0
        return {"fp64" if bits == 64 else "fp32": lanes}
    if name in {"div", "rem"}:
        return _INTEGER_DIVIDE[64 if bits == 64 else 32]
    if name == "setp" and one.parts[-1] == "f64":
        return {"fp64": 1.0}
    times = 2.0 if bits == 64 and name not in {"setp", "selp"} else 1.0
    if name in {"mul", "mad"}:
        return {"fp32": 1.0} if "wide" in one.parts or bits < 64 else {"fp32": 4.0}
    return {"int": times}


def _count_access(one: Instruction, private_bytes: int, fixed: set[str]) -> Slots:
    space = next((part for part in one.parts if part in {"shared", "param", "const", "local"}), "")
    lanes = next((int(part[1:]) for part in one.parts if re.fullmatch(r"v\d", part)), 1)
    size = lanes * one.bits // 8
    if space == "param" or (space == "const" and not one.read):
        return {}
    if space == "local":
        if not _is_indexed(one, fixed):
            return {}
        return {"other": min(_SELECTS * private_bytes / size, _MOST_SELECTS)}
    if space == "shared" and one.name in {"ld", "st"}:
        return {"other": 1.0, "wavefronts": max(size * _WARP_WIDTH / _LOCAL_BYTES, 1.0)}
    return {"other": 1.0}


def _measure_chain(block: Sequence[Instruction]) -> tuple[float, float]:
    """Measure the longest chain of instructions that wait for one another."""
    ready: dict[str, tuple[float, float]] = {}
    most_cycles = most_rounds = 0.0
    for one in block:
        known = [ready[text] for text in one.read if text in ready]
        cycles, rounds = (max(own) for own in zip((0.0, 0.0), *known, strict=True))
        if one.name in {"ld", "ldu", "atom"}:
            if "shared" in one.parts:
                cycles += _LATENCY["local"]
            elif "param" not in one.parts and "const" not in one.parts and "local" not in one.parts:
                rounds += 1
        elif one.name in {"bar", "barrier"}:
            cycles += _LATENCY["barrier"]
        elif one.name not in _FREE:
            slots = _count(one, 0, set())
            kind = max(slots, key=slots.__getitem__, default="int")
            cycles += _LATENCY.get(kind, 4) * max(1.0, slots.get(kind, 1.0))
        for text in one.written:
            ready[text] = cycles, rounds
        most_cycles, most_rounds = max(most_cycles, cycles), max(most_rounds, rounds)
    return most_cycles, most_rounds
