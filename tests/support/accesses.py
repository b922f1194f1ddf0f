"""Accesses of four bytes, loops of known length, recorded addresses: what launches are made of."""

from typing import Any

import numpy as np

from kernelcast.expressions import Expr, Symbol, SymbolKind, less
from kernelcast.expressions.accesses import (
    AccessKind,
    AddressPattern,
    LoopFacts,
    MemoryAccess,
    ModelledLaunch,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace
from kernelcast.records.software_counters import RecordedAddresses

X, Y = (Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis)) for axis in (0, 1))
K = Expr.symbol(Symbol(SymbolKind.LOOP, "k"))


def make_loop(trips: int | Expr) -> LoopFacts:
    """Make a loop over `K`."""
    count = trips if isinstance(trips, Expr) else Expr.constant(trips)
    return LoopFacts(name="k", line=1, condition=less(K, trips), trip_count=count, is_exact=True)


def make_access(
    buffer: str,
    offset: Expr | None,
    kind: AccessKind = AccessKind.LOAD,
    *,
    trips: int = 0,
    **more: Any,  # noqa: ANN401 - fields
) -> MemoryAccess:
    """Make an access of every work-item, in a loop where it has trips; None depends on data."""
    pattern = AddressPattern.INDIRECT if offset is None else AddressPattern.QUASI_AFFINE
    fields = {
        "site": 0, "text": f"{buffer}[i]", "space": MemorySpace.GLOBAL, "bytes": 4,
        "pattern": pattern, "loops": (make_loop(trips),) if trips else (), **more,
    }  # fmt: skip
    return MemoryAccess(block=0, line=3, kind=kind, buffer=buffer, offset_bytes=offset, **fields)


def make_launch(
    *accesses: MemoryAccess,
    items: tuple[int, ...],
    local: tuple[int, ...],
    **more: Any,  # noqa: ANN401 - fields
) -> ModelledLaunch:
    """Make a launch of accesses, of 32 registers unless others are given."""
    ndrange = NDRange(global_size=items, local_size=local)
    return ModelledLaunch(
        kernel="k", ndrange=ndrange, accesses=accesses, **{"registers": 32} | more
    )


def record(
    offsets: np.ndarray, groups: tuple[int, ...], *, size: int, site: int = 0
) -> RecordedAddresses:
    """Record the addresses of one access: of each work-item as many as there are, in order."""
    steps = offsets.size // (size * len(groups))
    return RecordedAddresses(
        work_groups=groups,
        work_items=(size,) * len(groups),
        sites=np.full(offsets.size, site),
        groups=np.repeat(groups, size * steps),
        local_ids=np.tile(np.repeat(np.arange(size), steps), len(groups)),
        sequences=np.tile(np.arange(steps), size * len(groups)),
        offsets_bytes=offsets,
    )
