"""Addresses of a launch as boxes over its loops, in the order in which a core goes through them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.predictor.modelling.launches import ModelledKernel
from kernelcast.predictor.tuning.footprints import Axis, Box
from kernelcast.predictor.tuning.nest import Loop, Nest
from kernelcast.records.accesses import AccessKind, MemoryAccess
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.operations import MemorySpace
from kernelcast.records.quasi_affine import Symbol, SymbolKind, Value

_AXES = MAX_DIMENSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One access with its way through memory.

    Parameters
    ----------
    access : MemoryAccess
        Which.
    lane_bytes : int or None
        From one work-item to its neighbour along dimension 0; None if it depends on data.
    loop_bytes : int or None
        From one iteration of the innermost loop around it to the next; None as before.
    executions : float
        Per work-item, as compiled: what does not change within loops is loaded before them.
    box : Box or None
        Where it goes; None if that depends on data, or in local memory.
    """

    access: MemoryAccess
    lane_bytes: int | None
    loop_bytes: int | None
    executions: float
    box: Box | None


def list_axes(nest: Nest, width: int) -> tuple[list[Axis], list[int]]:
    """List the loops that a core goes through, innermost first.

    Parameters
    ----------
    nest : Nest
        The kernel's own loops.
    width : int
        Work-items in the lanes of a vector.

    Returns
    -------
    axes : list of Axis
        Lanes, loops without barriers, vectors and rows of a work-group, loops with barriers,
        work-groups.
    bodies : list of int
        Body of the kernel's loop that each axis is; -1 where it is none.
    """
    local = _widen(nest.ndrange.known_local_size)
    counts = _widen(nest.ndrange.group_counts)
    loops = sorted(nest.loops.values(), key=lambda one: -one.body)
    axes = [Axis(name="lane", extent=width)]
    bodies = [-1]

    def add(chosen: Sequence[Loop]) -> None:
        for one in chosen:
            axes.append(Axis(name=f"loop {one.body}", extent=max(1, round(one.trips))))
            bodies.append(one.body)

    add([one for one in loops if not one.has_barrier])
    axes.append(Axis(name="local 0", extent=max(1, local[0] // width)))
    axes += [Axis(name=f"local {at}", extent=local[at]) for at in range(1, _AXES)]
    bodies += [-1] * _AXES
    add([one for one in loops if one.has_barrier])
    axes += [Axis(name=f"group {at}", extent=counts[at]) for at in range(_AXES)]
    bodies += [-1] * _AXES
    return axes, bodies


def list_touches(kernel: ModelledKernel, nest: Nest, width: int) -> tuple[list[Touch], list[Axis]]:
    """List a launch's accesses with their ways through memory.

    Raises
    ------
    InputError
        If an address has no value.
    """
    axes, bodies = list_axes(nest, width)
    touches: list[Touch] = []
    known: set[tuple[object, ...]] = set()
    for access in nest.facts.accesses:
        key = (access.block, access.kind, access.buffer, str(access.offset_bytes))
        if access.offset_bytes is not None and access.kind is AccessKind.LOAD and key in known:
            continue  # loaded once for both
        known.add(key)
        touches.append(_follow(access, kernel, nest, (axes, bodies, width)))
    return touches, axes


def join_boxes(touches: Sequence[Touch]) -> list[Box]:
    """Join accesses of a buffer that differ by a constant only; a load brings in what is stored."""
    found: dict[tuple[object, ...], list[Box]] = defaultdict(list)
    for one in touches:
        if one.box is not None:
            box = one.box
            found[box.buffer, box.bytes, box.strides, box.inside].append(box)
    joined = []
    for boxes in found.values():
        starts = sorted({box.offsets[0] for box in boxes})
        joined.append(
            Box(
                buffer=boxes[0].buffer,
                bytes=boxes[0].bytes,
                strides=boxes[0].strides,
                offsets=tuple(one - starts[0] for one in starts),
                is_store=any(box.is_store for box in boxes),
                share=max(box.share for box in boxes),
                inside=boxes[0].inside,
            )
        )
    return joined


def _follow(
    access: MemoryAccess,
    kernel: ModelledKernel,
    nest: Nest,
    space: tuple[list[Axis], list[int], int],
) -> Touch:
    axes, bodies, width = space
    executions = nest.counts[access.block]
    if access.offset_bytes is None:
        return Touch(
            access=access, lane_bytes=None, loop_bytes=None, executions=executions, box=None
        )
    around = nest.around(access.block)
    names = {loop.body: facts.name for loop, facts in zip(around, access.loops, strict=False)}
    points = _evaluate(access, kernel, nest, names)
    lane = points["local 0"]
    strides = []
    for axis, body in zip(axes, bodies, strict=True):
        if axis.name == "local 0":
            strides.append(lane * width)
        elif body >= 0:
            strides.append(points.get(f"loop {body}", 0))
        else:
            strides.append(points.get(axis.name, 0))
    strides[0] = lane
    kept = _hoist(executions, around, points, nest, access)
    reached = 1.0
    for loop in around:
        reached *= loop.trips
    is_far = access.space in (MemorySpace.GLOBAL, MemorySpace.CONSTANT)
    inside = {loop.body for loop in around}
    # Loops beside the access are not around it.
    moved = [
        0 if body >= 0 and body not in inside else stride
        for stride, body in zip(strides, bodies, strict=True)
    ]
    box = Box(
        buffer=access.buffer or "",
        bytes=access.bytes,
        strides=tuple(moved),
        offsets=(points[""],),
        is_store=access.kind is not AccessKind.LOAD,
        share=min(1.0, executions / reached) if reached else 0.0,
        inside=tuple(body < 0 or body in inside for body in bodies),
    )
    return Touch(
        access=access,
        lane_bytes=lane,
        loop_bytes=points.get(f"loop {around[-1].body}", 0) if around else 0,
        executions=kept,
        box=box if is_far else None,
    )


def _hoist(
    executions: float,
    around: Sequence[Loop],
    points: dict[str, int],
    nest: Nest,
    access: MemoryAccess,
) -> float:
    """Take innermost loops off a load that they do not move, if nothing is stored in them."""
    if access.kind is not AccessKind.LOAD:
        return executions
    kept = executions
    for loop in reversed(around):
        if points.get(f"loop {loop.body}", 0) or loop.has_barrier or _stores(nest, loop, access):
            break
        kept /= max(1.0, loop.trips)
    return kept


def _stores(nest: Nest, loop: Loop, load: MemoryAccess) -> bool:
    """Tell whether a loop stores to the space of a load: it may be the same place."""
    return any(
        one.kind is not AccessKind.LOAD and one.space is load.space
        and any(other.body == loop.body for other in nest.around(one.block))
        for one in nest.facts.accesses
    )  # fmt: skip


def _evaluate(
    access: MemoryAccess, kernel: ModelledKernel, nest: Nest, names: dict[int, str]
) -> dict[str, int]:
    """Give how far one step along each axis moves an address, and under "" where it begins."""
    assert access.offset_bytes is not None
    steps = ["", *(f"local {at}" for at in range(_AXES)), *(f"group {at}" for at in range(_AXES)),
             *(f"loop {body}" for body in names)]  # fmt: skip
    place = {name: at for at, name in enumerate(steps)}
    bound = _bind(kernel, nest, names, place)
    try:
        values = np.broadcast_to(np.asarray(access.offset_bytes.evaluate(bound)), (len(steps),))
    except InputError as error:
        msg = f"{nest.facts.kernel}, line {access.line}: address of {access.text}: {error}"
        raise InputError(msg) from error
    first = int(values[0])
    return {name: int(values[at]) - (first if name else 0) for name, at in place.items()}


def _bind(
    kernel: ModelledKernel, nest: Nest, names: dict[int, str], place: dict[str, int]
) -> dict[Symbol, Value]:
    """Give all symbols values: the first point of a work-group in the middle, and one step on."""
    ndrange = nest.ndrange
    local = _widen(ndrange.known_local_size)
    counts = _widen(ndrange.group_counts)
    items = _widen(ndrange.global_size)
    offsets = (*ndrange.global_offset, 0, 0, 0)[:_AXES]
    bound: dict[Symbol, Value] = {
        Symbol(SymbolKind.SCALAR, name): value for name, value in kernel.scalars.items()
    }

    def step(*names: str) -> np.ndarray:
        found = np.zeros(len(place), dtype=np.int64)
        for name in names:
            found[place[name]] = 1
        return found

    for at in range(_AXES):
        group = counts[at] // 2
        inner = step(f"local {at}")
        outer = group + step(f"group {at}")
        bound |= {
            Symbol(SymbolKind.LOCAL_ID, axis=at): inner,
            Symbol(SymbolKind.GROUP_ID, axis=at): outer,
            Symbol(SymbolKind.GLOBAL_ID, axis=at): outer * local[at] + inner + offsets[at],
            Symbol(SymbolKind.LOCAL_SIZE, axis=at): local[at],
            Symbol(SymbolKind.GLOBAL_SIZE, axis=at): items[at],
            Symbol(SymbolKind.GROUP_COUNT, axis=at): counts[at],
            Symbol(SymbolKind.GLOBAL_OFFSET, axis=at): offsets[at],
        }
    for body, name in names.items():
        bound[Symbol(SymbolKind.LOOP, name)] = step(f"loop {body}")
    return bound


def _widen(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:_AXES]
    return x, y, z
