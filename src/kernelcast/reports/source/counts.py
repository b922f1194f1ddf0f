"""Counts of operations as people read them."""

from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    OperationCounts,
    OperationKind,
)

_K = OperationKind
ARITHMETIC = (
    _K.ADD, _K.MULTIPLY, _K.FUSED, _K.DIVIDE, _K.LOGIC, _K.COMPARE, _K.SELECT,
)  # fmt: skip
SPECIAL = (_K.SPECIAL, _K.SPECIAL_NATIVE)
_OTHERS = ((_K.BARRIER, "barrier"), (_K.ATOMIC, "atomic"), (_K.CALL, "call"), (_K.COPY, "copy"))
_WEIGHED = (*ARITHMETIC, *SPECIAL, _K.BARRIER, _K.ATOMIC, _K.BRANCH, _K.CALL, _K.COPY)
_SCALES = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From which number on, what it is divided by, and the letter."""


def format_count(value: float) -> str:
    """Write a count: exactly up to 9,999, else with three digits.

    Examples
    --------
    >>> [format_count(one) for one in (0, 1, 92.0, 0.98765, 1472, 23552, 1.5e6, 0.0004)]
    ['0', '1', '92', '0.988', '1,472', '23.6k', '1.50M', '0.0004']
    """
    for least, scale, unit in _SCALES:
        if abs(value) >= least:
            return f"{_three_digits(value / scale)}{unit}"
    if value == int(value):
        return f"{int(value):,}"
    return _three_digits(value) if abs(value) >= 0.01 else f"{value:.2g}"


def format_value(value: float | None) -> str:
    """Write a feature: whole numbers exactly, others with six digits, a dash for none.

    Examples
    --------
    >>> format_value(541696.0), format_value(2.3145365), format_value(None)
    ('541,696', '2.31454', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"


def format_size(count: int) -> str:
    """Write an amount of memory with three digits.

    Examples
    --------
    >>> format_size(8667136), format_size(1024), format_size(100)
    ('8.27 MiB', '1 KiB', '100 B')
    """
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= scale:
            return f"{float(_three_digits(count / scale)):g} {unit}"
    return f"{count} B"


def _three_digits(value: float) -> str:
    size = abs(value)
    return f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}"


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
