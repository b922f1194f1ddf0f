"""Loops of a launch, and its addresses as boxes over them, in the order of a core."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from kernelcast.expressions import Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.axes import list_axes as list_dimensions
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.bindings import choose_work_groups
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import count_blocks
from kernelcast.launches.modelling.launches import ModelledKernel
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import MemorySpace, OperationKind
from kernelcast.tuning.footprints import Axis, Box

_AXES = MAX_DIMENSIONS
_GROUP_STEPS = [f"{what} {at}" for what in ("local", "group") for at in range(_AXES)]
_LOOP_BODY = "loop body"
_WORK_GROUPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop of one work-item."""

    body: int
    """Block of its body."""
    trips: float
    """Mean iterations per entry."""
    has_barrier: bool
    """Whether work-items wait for each other in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """The loops of a kernel for one launch."""

    facts: KernelFacts
    ndrange: NDRange
    counts: tuple[float, ...]
    """Mean executions of each block per work-item."""
    loops: Mapping[int, Loop]
    """By the block of their body."""

    def around(self, block: int) -> tuple[Loop, ...]:
        """List the loops around a block, outermost first."""
        found: list[Loop] = []
        at: int | None = block
        while at is not None:
            if at in self.loops:
                found.insert(0, self.loops[at])
            at = self.facts.blocks[at].parent
        return tuple(found)

    def is_straight(self) -> bool:
        """Tell whether no loop is left between barriers.

        Only then does a loop over work-items hold no other loop, and is vectorised.
        """
        return all(one.has_barrier or one.trips <= 1 for one in self.loops.values())


def read_nest(kernel: ModelledKernel, ndrange: NDRange) -> Nest:
    """Count a launch's blocks and find its loops."""
    facts = kernel.facts
    groups = choose_work_groups(ndrange, _WORK_GROUPS)
    sample = count_statically(facts, ndrange, kernel.scalars, groups)
    means = count_blocks(facts, sample)[sample.is_present].mean(axis=0)
    counts = tuple(float(mean) for mean in means)
    children: dict[int, list[int]] = {}
    for block in facts.blocks:
        if block.parent is not None:
            children.setdefault(block.parent, []).append(block.id)
    loops: dict[int, Loop] = {}
    for block in facts.blocks:
        if block.kind != _LOOP_BODY or block.parent is None:
            continue
        inner = [block.id]
        for one in inner:
            inner += children.get(one, ())
        entries = counts[block.parent]
        loops[block.id] = Loop(
            body=block.id,
            trips=counts[block.id] / entries if entries else 0.0,
            has_barrier=any(
                facts.blocks[one].operations.count(OperationKind.BARRIER) for one in inner
            ),
        )
    return Nest(facts=facts, ndrange=ndrange, counts=counts, loops=loops)


@dataclass(frozen=True, slots=True, kw_only=True)
class StridedAccess:
    """One access with its strides through memory."""

    access: MemoryAccess
    lane_bytes: int | None
    """From one work-item to its neighbour along dimension 0; None if it depends on data."""
    loop_bytes: int | None
    """From one iteration of the innermost loop around it to the next; None as before."""
    executions: float
    """Per work-item."""
    box: Box | None
    """Where it goes; None if that depends on data, or in local memory."""


def _list_axes(nest: Nest, width: int) -> tuple[list[Axis], list[int]]:
    """List the loops that a core goes through, innermost first, and their bodies' blocks or -1.

    Lanes, loops without barriers, vectors and rows of a work-group, loops with barriers,
    work-groups.
    """
    dimensions = list_dimensions(nest.ndrange)
    loops = sorted(nest.loops.values(), key=lambda one: -one.body)
    axes = [Axis(name="lane", extent=width)]
    bodies = [-1]

    def add(chosen: Sequence[Loop]) -> None:
        for one in chosen:
            axes.append(Axis(name=f"loop {one.body}", extent=max(1, round(one.trips))))
            bodies.append(one.body)

    add([one for one in loops if not one.has_barrier])
    axes.append(Axis(name="local 0", extent=max(1, dimensions[0].local // width)))
    axes += [Axis(name=f"local {one.number}", extent=one.local) for one in dimensions[1:]]
    bodies += [-1] * _AXES
    add([one for one in loops if one.has_barrier])
    axes += [Axis(name=f"group {one.number}", extent=one.groups) for one in dimensions]
    bodies += [-1] * _AXES
    return axes, bodies


def list_strided_accesses(
    kernel: ModelledKernel, nest: Nest, width: int
) -> tuple[list[StridedAccess], list[Axis]]:
    """List a launch's accesses with their strides through memory, and the loops of a core.

    Ids have the values of the first point of a work-group in the middle, and others a step on along
    each of the `_GROUP_STEPS` and loops.
    """
    axes, bodies = _list_axes(nest, width)
    steps = [*_GROUP_STEPS, *(f"loop {body}" for body in nest.loops)]
    marks = np.eye(1 + len(steps), dtype=np.int64)[1:]
    ids: dict[Symbol, Value] = {**bind_names(kernel.scalars)}
    for axis in list_dimensions(nest.ndrange):
        inner, outer = marks[axis.number], marks[_AXES + axis.number] + axis.groups // 2
        ids |= axis.bind(outer, inner, axis.local)
    of_loops = dict(zip(nest.loops, marks[len(_GROUP_STEPS) :], strict=True))
    strided: list[StridedAccess] = []
    known: set[tuple[object, ...]] = set()
    for access in nest.facts.accesses:
        executions = nest.counts[access.block]
        offset = access.offset_bytes
        if offset is None:
            strided.append(
                StridedAccess(
                    access=access, lane_bytes=None, loop_bytes=None, executions=executions, box=None
                )
            )
            continue
        key = (access.block, access.kind, access.buffer, offset)
        if access.kind is AccessKind.LOAD and key in known:
            continue  # loaded once for both
        known.add(key)
        around = nest.around(access.block)
        numbers = {
            Symbol(SymbolKind.LOOP, facts.name): of_loops[loop.body]
            for loop, facts in zip(around, access.loops, strict=False)
        }
        try:
            found = np.asarray(offset.evaluate(ids | numbers))
        except InputError as error:
            where = f"{nest.facts.kernel}, line {access.line}"
            msg = f"{where}: address of {access.text}: {error}"
            raise InputError(msg) from error
        first, *values = np.broadcast_to(found, (1 + len(steps),)).tolist()
        moves = {name: value - first for name, value in zip(steps, values, strict=True)}
        lane, inside = moves["local 0"], {loop.body for loop in around}
        reached = prod(loop.trips for loop in around)
        box = Box(
            buffer=access.buffer or "",
            bytes=access.bytes,
            strides=(
                lane,
                *(
                    lane * width if axis.name == "local 0"
                    # loops beside the access are not around it
                    else moves[axis.name] if body < 0 or body in inside else 0
                    for axis, body in zip(axes[1:], bodies[1:], strict=True)
                ),
            ),
            is_store=access.kind is not AccessKind.LOAD,
            share=min(1.0, executions / reached) if reached else 0.0,
            inside=tuple(body < 0 or body in inside for body in bodies),
        )  # fmt: skip
        is_far = access.space in (MemorySpace.GLOBAL, MemorySpace.CONSTANT)
        strided.append(
            StridedAccess(
                access=access,
                lane_bytes=lane,
                loop_bytes=moves[f"loop {around[-1].body}"] if around else 0,
                executions=executions,
                box=box if is_far else None,
            )
        )
    return strided, axes


def join_boxes(strided: Sequence[StridedAccess]) -> list[Box]:
    """Join accesses of a buffer that differ by a constant only; a load brings in what is stored."""
    found: dict[tuple[object, ...], list[Box]] = defaultdict(list)
    for one in strided:
        if one.box is not None:
            box = one.box
            found[box.buffer, box.bytes, box.strides, box.inside].append(box)
    return [
        replace(
            boxes[0],
            is_store=any(box.is_store for box in boxes),
            share=max(box.share for box in boxes),
        )
        for boxes in found.values()
    ]
