"""Derives what a CPE does from OpenCL C: staging in local memory is DMA, all else is Gload."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from kernelcast.analytic.scratchpad.kernel import (
    Copy,
    Direction,
    DmaRequest,
    GloadRequest,
    ScratchpadKernel,
    ScratchpadMachine,
)
from kernelcast.expressions import EvaluationError, Symbol
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.evaluation import evaluate_where
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.counting.bindings import bind_ids, choose_work_groups
from kernelcast.features.counting.trips import Loop, Points, estimate_share, run_loops, widen
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.records.errors import InputError
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    Operation,
    OperationKind,
)
from kernelcast.records.problem import Problem

_FAR = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})
_FIXED = frozenset({
    OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.FUSED, OperationKind.LOGIC,
    OperationKind.COMPARE, OperationKind.SELECT,
})  # fmt: skip
_SLOW = frozenset({OperationKind.DIVIDE, OperationKind.SPECIAL, OperationKind.SPECIAL_NATIVE})
_ROOTS = frozenset({"sqrt", "rsqrt", "native_sqrt", "native_rsqrt", "half_sqrt", "half_rsqrt"})


_OPPOSITE = {AccessKind.LOAD: AccessKind.STORE, AccessKind.STORE: AccessKind.LOAD}


class GroupRequests(NamedTuple):
    """What a work-group's executions of one access amount to, mean of some work-groups."""

    executions: float
    """By all its work-items."""
    requests: float
    """Executions that at least one work-item takes part in, all together."""
    bytes: float
    chunks: float
    """Of a request: distinct bytes, and contiguous pieces of memory that they lie in. 0 where the
    address is not known."""


def derive_scratchpad_kernel(
    problem: Problem,
    machine: ScratchpadMachine,
    *,
    active_cpes: int | None = None,
    average_ilp: float | None = None,
) -> ScratchpadKernel:
    """Derive a scratchpad kernel from a problem with OpenCL C.

    A work-group runs on one CPE, work-item after work-item, and a CPE runs as many work-groups as
    its share. A statement that moves data between global and local memory is a copy of the whole
    work-group by DMA; copies of one direction in the same block make one request, for the barrier
    behind them waits for all. Every other access to global or constant memory is a Gload. The
    analysis does not say where a value goes: a load of global memory beside a store to local memory
    in the same line, block and loops is taken for a copy, and the other way round.
    """
    model = model_kernel(problem)
    launch = model.launch(problem.ndrange)
    if launch.local_bytes > machine.spm_bytes:
        msg = (
            f"{launch.kernel}: a work-group has {launch.local_bytes:,} bytes of local memory; a "
            f"scratchpad of {machine.name} holds {machine.spm_bytes:,}; give smaller tiles"
        )
        raise InputError(msg)
    groups = launch.ndrange.work_group_count
    cpes = min(groups, machine.cpes_per_group if active_cpes is None else active_cpes)
    share = math.ceil(groups / cpes)
    near = {
        (one.line, one.block, _loops(one), one.kind)
        for one in launch.accesses
        if one.space is MemorySpace.LOCAL and one.line
    }
    copies: dict[tuple[object, ...], list[tuple[MemoryAccess, GroupRequests]]] = {}
    gloads: list[GloadRequest] = []
    by_dma = 0.0
    far = [one for one in launch.accesses if one.space in _FAR]
    for access in far:
        counted = count_group_requests(access, launch)
        other = (access.line, access.block, _loops(access), _OPPOSITE.get(access.kind))
        if other in near and counted.bytes:
            key = access.kind, access.block, _loops(access)
            copies.setdefault(key, []).append((access, counted))
            by_dma += counted.executions * share
        elif counted.executions and access.bytes:
            pieces = math.ceil(access.bytes / machine.gload_bytes)
            # An atomic operation loads and stores.
            moves = 2 if access.kind is AccessKind.ATOMIC else 1
            name = f"{access.text} (line {access.line})"
            count = counted.executions * share * pieces * moves
            gloads.append(GloadRequest(name=name, bytes=access.bytes / pieces, count=count))
    dma = []
    for parts in copies.values():
        accesses, requests = zip(*parts, strict=True)
        lines = ", ".join(dict.fromkeys(str(one.line) for one in accesses))
        names = ", ".join(dict.fromkeys(one.buffer or "?" for one in accesses))
        dma.append(
            DmaRequest(
                name=f"{names} (line {lines})",
                direction=Direction.IN if accesses[0].kind is AccessKind.LOAD else Direction.OUT,
                copies=tuple(
                    Copy(bytes=one.bytes, chunk_bytes=one.bytes / one.chunks) for one in requests
                ),
                count=max(one.requests for one in requests) * share,
            )
        )
    work_items = launch.ndrange.work_group_size * share
    counts = {"floating": 0.0, "fixed": 0.0, "spm": 0.0, "div_sqrt": 0.0}
    for operation, times in launch.executed.operations.items():
        kind = _classify(operation)
        if kind is not None:
            counts[kind] += times * operation.lanes * work_items
    touched = sum(
        launch.executed.count_memory(MemorySpace.LOCAL, is_store=is_store)
        for is_store in (True, False)
    )
    counts["spm"] = max(0.0, touched * work_items - by_dma)
    gaps = [
        f"line {one.line}: {one.reason}"
        for one in model.facts.gaps
        if "async_work_group" not in one.reason  # has a note of its own
    ]
    notes = _note(launch, far, sum(map(len, copies.values())), average_ilp)
    return ScratchpadKernel(
        name=problem.name,
        active_cpes=cpes,
        dma=tuple(dma),
        gloads=tuple(gloads),
        compute=counts,
        average_ilp=1.0 if average_ilp is None else average_ilp,
        notes=(*notes, *gaps),
    )


def _loops(access: MemoryAccess) -> tuple[str, ...]:
    return tuple(one.name for one in access.loops)


def _classify(operation: Operation) -> str | None:
    if operation.kind in _SLOW:
        return "div_sqrt"
    if operation.number is NumberClass.FLOAT and operation.kind in {
        *_FIXED, OperationKind.CONVERT,
    }:  # fmt: skip
        return "floating"
    if operation.number is NumberClass.INTEGER and operation.kind in _FIXED:
        return "fixed"
    return None


def _note(
    launch: ModelledLaunch, far: Sequence[MemoryAccess], copies: int, average_ilp: float | None
) -> list[str]:
    notes = [one for one in launch.notes if "recorded addresses" not in one]
    if average_ilp is None:
        notes.append("average ILP: no source tells it, 1 is taken, the slowest; give --ilp")
    if any(
        operation.kind in _SLOW
        and operation.kind is not OperationKind.DIVIDE
        and operation.name not in _ROOTS
        for operation in launch.executed.operations
    ):
        notes.append("special functions count as one division or root each, which is too little")
    if launch.executed.count(OperationKind.COPY):
        notes.append(
            "async_work_group_copy: the analysis does not describe what it copies, so its DMA "
            "requests are missing here; write them into a scratchpad kernel file"
        )
    if copies:
        notes.append(
            f"{copies} accesses beside local memory are taken for DMA copies of the work-group"
        )
    if any(one.kind is AccessKind.ATOMIC for one in far):
        notes.append("atomic operations count as two Gload requests; waiting is left out")
    if any(not one.guard.is_exact for one in far):
        notes.append("accesses under conditions on data count as executed half the time")
    return notes


def count_group_requests(access: MemoryAccess, launch: ModelledLaunch) -> GroupRequests:
    """Count an access's requests per work-group; conditions on data count as met half the time."""
    chosen = choose_work_groups(launch.ndrange)
    items = bind_ids(launch.ndrange, chosen)
    bindings: Mapping[Symbol, object] = {**items.bindings, **bind_names(launch.scalars)}
    start = Points.start(bindings, items.is_present)  # type: ignore[arg-type]  # both are values
    loops = tuple(Loop(one) for one in access.loops)
    offset = access.offset_bytes
    own = frozenset(loop.symbol for loop in loops)
    if offset is not None and not offset.symbols() - own <= start.bindings.keys():
        offset = None
    wanted = access.guard.symbols() | (frozenset() if offset is None else offset.symbols())
    used = wanted.union(*(loop.symbols for loop in loops))
    # Iterations are rows, work-items columns.
    # Of more addresses of an access, some iterations stand for all.
    points = run_loops(start.keep(used), loops, wanted, 65_536)
    share = estimate_share(access.guard, points.bindings, points.is_active.shape) * points.is_active
    kept = np.flatnonzero(share.any(axis=1))
    points, share = points.take(kept), share[kept]
    weights, groups = points.weights, float(len(chosen))
    requests = float((weights * share.max(axis=1, initial=0.0)).sum()) / groups
    sizes, chunks = np.zeros(weights.size), np.zeros(weights.size)
    if offset is not None and requests:
        with suppress(EvaluationError):
            addresses = widen(evaluate_where(offset, share > 0, points.bindings), share.shape)
            for row, (offsets, active) in enumerate(zip(addresses, share, strict=True)):
                steps = np.diff(np.unique(offsets[active > 0]))
                sizes[row] = access.bytes + np.minimum(steps, access.bytes).sum()
                chunks[row] = 1 + np.count_nonzero(steps > access.bytes)
    total = float(weights.sum()) or 1.0
    return GroupRequests(
        executions=float((weights[:, None] * share).sum()) / groups,
        requests=requests,
        bytes=float((weights * sizes).sum()) / total,
        chunks=float((weights * chunks).sum()) / total,
    )
