"""How many instructions operations are, on hardware that runs each work-item in a scalar lane."""

import math

from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)  # fmt: skip

WIDEST_ACCESS_BYTES = 16
"""What one memory instruction moves per work-item at most."""

_FREE = frozenset({OperationKind.ADDRESS, OperationKind.JUMP})


def count_instructions(counts: OperationCounts) -> float:
    """Count the instructions of a work-item.

    Returns
    -------
    float
        An operation on a vector is an instruction per lane, for GPUs have no vector units; a
        memory operation one per 16 bytes. Not counted is what compilers make disappear: jumps,
        address arithmetic (part of the memory instruction), conversions to integers (of ids,
        widened for the source's sake), and private memory, which is registers.

    Examples
    --------
    >>> add = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32, lanes=4)
    >>> address = Operation(kind=OperationKind.ADDRESS)
    >>> count_instructions(OperationCounts(operations={add: 2, address: 5}, memory={}))
    8
    """
    total: float = sum(
        times * operation.lanes
        for operation, times in counts.operations.items()
        if not _is_free(operation)
    )
    return total + sum(
        times * math.ceil(access.bytes / WIDEST_ACCESS_BYTES)
        for access, times in counts.memory.items()
        if access.space is not MemorySpace.PRIVATE
    )


def _is_free(operation: Operation) -> bool:
    is_widening = (
        operation.kind is OperationKind.CONVERT and operation.number is not NumberClass.FLOAT
    )
    return is_widening or operation.kind in _FREE
