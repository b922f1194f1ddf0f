"""Counts of operations as people read them."""

from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    OperationCounts,
    OperationKind,
)
from kernelcast.reports.numbers import format_count

_K = OperationKind
ARITHMETIC = (
    _K.ADD, _K.MULTIPLY, _K.FUSED, _K.DIVIDE, _K.LOGIC, _K.COMPARE, _K.SELECT,
)  # fmt: skip
SPECIAL = (_K.SPECIAL, _K.SPECIAL_NATIVE)
_OTHERS = ((_K.BARRIER, "barrier"), (_K.ATOMIC, "atomic"), (_K.CALL, "call"), (_K.COPY, "copy"))
_WEIGHED = (*ARITHMETIC, *SPECIAL, _K.BARRIER, _K.ATOMIC, _K.BRANCH, _K.CALL, _K.COPY)


def summarise_operations(counts: OperationCounts) -> list[tuple[str, str]]:
    """Give what is computed, in a few words each: class and text.

    Examples
    --------
    >>> from kernelcast.records.operations import Operation
    >>> add = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32, lanes=4)
    >>> summarise_operations(OperationCounts(operations={add: 2}, memory={}))
    [('float', '8 fp32')]
    """
    words = []
    for bits in (16, 32, 64):
        times = counts.count(*ARITHMETIC, number=NumberClass.FLOAT, bits=bits, per_lane=True)
        words.append(("float", times, f"fp{bits}"))
    words.append(("special", counts.count(*SPECIAL, per_lane=True), "special"))
    integers = counts.count(*ARITHMETIC, number=NumberClass.INTEGER, per_lane=True)
    words.append(("integer", integers, "int"))
    found = [(kind, f"{format_count(times)} {text}") for kind, times, text in words if times]
    for kind, text in _OTHERS:
        times = counts.count(kind)
        if times:
            found.append(("other", text if times == 1 else f"{format_count(times)} {text}"))
    return found


def summarise_memory(counts: OperationCounts) -> str:
    """Give how much is loaded and stored, in a few words.

    Examples
    --------
    >>> summarise_memory(OperationCounts(operations={}, memory={}))
    ''
    """
    words = []
    for is_store, text in ((False, "ld"), (True, "st")):
        times = sum(counts.count_memory(space, is_store=is_store) for space in MemorySpace)
        if times:
            words.append(f"{format_count(times)} {text}")
    return "  ".join(words)


def weigh(counts: OperationCounts) -> float:
    """Add up what costs time: arithmetic, branches, loads and stores, not laying out addresses."""
    memory = sum(counts.memory.values())
    return counts.count(*_WEIGHED, per_lane=True) + memory
