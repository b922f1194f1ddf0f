"""Atomics by where they go, and the time that they take."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.records.operations import MemorySpace, Operation, OperationCounts, OperationKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Atomics:
    """Atomic operations of a work-item, mean."""

    same: float = 0.0
    """Global, all work-items on one address."""
    distinct: float = 0.0
    """Global, on addresses that depend on the work-item or on data."""
    local: float = 0.0
    """On local memory."""


def count_atomics(accesses: Sequence[MemoryAccess], executed: OperationCounts) -> Atomics:
    """Tell executed atomics apart by the places in the source that they come from.

    Places that call the same function count as executed equally often; an atomic whose place is
    not known counts as a global one on distinct addresses.

    Parameters
    ----------
    executed : OperationCounts
        Mean per work-item.
    """
    sites = [one for one in accesses if one.kind is AccessKind.ATOMIC]
    found = {"same": 0.0, "distinct": 0.0, "local": 0.0}
    for operation, times in executed.operations.items():
        if operation.kind is not OperationKind.ATOMIC:
            continue
        own = _find_sites(operation, sites)
        for site in own:
            found[_classify(site)] += times / len(own)
        if not own:
            found["distinct"] += times
    return Atomics(same=found["same"], distinct=found["distinct"], local=found["local"])


def _find_sites(operation: Operation, sites: Sequence[MemoryAccess]) -> list[MemoryAccess]:
    called = [one for one in sites if one.text.startswith(f"{operation.name}(")]
    return called if operation.name and called else list(sites)


def _classify(access: MemoryAccess) -> str:
    if access.space is MemorySpace.LOCAL:
        return "local"
    is_same = access.offset_bytes is not None and access.offset_bytes.is_parameter
    return "same" if is_same else "distinct"
