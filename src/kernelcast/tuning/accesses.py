"""Addresses of a launch as boxes over its loops, in the order in which a core goes through them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from kernelcast.expressions import Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.axes import list_axes as list_dimensions
from kernelcast.launches.modelling.launches import ModelledKernel
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import MemorySpace
from kernelcast.tuning.footprints import Axis, Box
from kernelcast.tuning.nest import Loop, Nest

_AXES = MAX_DIMENSIONS
_GROUP_STEPS = ("", *(f"{what} {at}" for what in ("local", "group") for at in range(_AXES)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StridedAccess:
    """One access with its strides through memory."""

    access: MemoryAccess
    lane_bytes: int | None
    """From one work-item to its neighbour along dimension 0; None if it depends on data."""
    loop_bytes: int | None
    """From one iteration of the innermost loop around it to the next; None as before."""
    executions: float
    """Per work-item, as compiled: what does not change within loops is loaded before them."""
    box: Box | None
    """Where it goes; None if that depends on data, or in local memory."""


def list_axes(nest: Nest, width: int) -> tuple[list[Axis], list[int]]:
    """List the loops that a core goes through, innermost first.

    Parameters
    ----------
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
    """List a launch's accesses with their strides through memory."""
    axes, bodies = list_axes(nest, width)
    traversal = _Traversal(kernel, nest, axes, bodies)
    strided: list[StridedAccess] = []
    known: set[tuple[object, ...]] = set()
    for access in nest.facts.accesses:
        key = (access.block, access.kind, access.buffer, access.offset_bytes)
        if access.offset_bytes is not None and access.kind is AccessKind.LOAD and key in known:
            continue  # loaded once for both
        known.add(key)
        strided.append(traversal.follow(access))
    return strided, axes


def join_boxes(strided: Sequence[StridedAccess]) -> list[Box]:
    """Join accesses of a buffer that differ by a constant only; a load brings in what is stored."""
    found: dict[tuple[object, ...], list[Box]] = defaultdict(list)
    for one in strided:
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


class _Traversal:
    """How a core goes through a launch; accesses are followed along it."""

    def __init__(
        self, kernel: ModelledKernel, nest: Nest, axes: Sequence[Axis], bodies: Sequence[int]
    ) -> None:
        self._nest = nest
        self._axes = axes
        self._bodies = bodies
        self._steps = [*_GROUP_STEPS, *(f"loop {body}" for body in nest.loops)]
        marks = np.eye(len(self._steps), dtype=np.int64)
        self._ids = _bind_ids(kernel, nest.ndrange, marks)
        self._marks = dict(zip(nest.loops, marks[len(_GROUP_STEPS) :], strict=True))
        self._stored = {
            (loop.body, one.space)
            for one in nest.facts.accesses
            if one.kind is not AccessKind.LOAD
            for loop in nest.around(one.block)
        }

    def follow(self, access: MemoryAccess) -> StridedAccess:
        """Give an access with its strides through memory."""
        nest = self._nest
        executions = nest.counts[access.block]
        if access.offset_bytes is None:
            return StridedAccess(
                access=access, lane_bytes=None, loop_bytes=None, executions=executions, box=None
            )
        around = nest.around(access.block)
        points = self._evaluate(access, around)
        reached = 1.0
        for loop in around:
            reached *= loop.trips
        inside = {loop.body for loop in around}
        box = Box(
            buffer=access.buffer or "",
            bytes=access.bytes,
            strides=self._list_strides(points, inside),
            offsets=(points[""],),
            is_store=access.kind is not AccessKind.LOAD,
            share=min(1.0, executions / reached) if reached else 0.0,
            inside=tuple(body < 0 or body in inside for body in self._bodies),
        )
        is_far = access.space in (MemorySpace.GLOBAL, MemorySpace.CONSTANT)
        return StridedAccess(
            access=access,
            lane_bytes=points["local 0"],
            loop_bytes=points[f"loop {around[-1].body}"] if around else 0,
            executions=self._hoist(executions, around, points, access),
            box=box if is_far else None,
        )

    def _list_strides(self, points: Mapping[str, int], inside: Set[int]) -> tuple[int, ...]:
        lane, width = points["local 0"], self._axes[0].extent
        strides = [lane]
        for axis, body in zip(self._axes[1:], self._bodies[1:], strict=True):
            if axis.name == "local 0":
                strides.append(lane * width)
            else:  # loops beside the access are not around it
                strides.append(points[axis.name] if body < 0 or body in inside else 0)
        return tuple(strides)

    def _hoist(
        self,
        executions: float,
        around: Sequence[Loop],
        points: Mapping[str, int],
        access: MemoryAccess,
    ) -> float:
        """Take innermost loops off a load that they do not move, if nothing is stored in them."""
        if access.kind is not AccessKind.LOAD:
            return executions
        kept = executions
        for loop in reversed(around):
            # What a loop stores to the same space may be the same place.
            is_stored = (loop.body, access.space) in self._stored
            if points[f"loop {loop.body}"] or loop.has_barrier or is_stored:
                break
            kept /= max(1.0, loop.trips)
        return kept

    def _evaluate(self, access: MemoryAccess, around: Sequence[Loop]) -> dict[str, int]:
        """Give how far one step along each axis moves an address; under "" where it begins."""
        assert access.offset_bytes is not None
        loops = {
            Symbol(SymbolKind.LOOP, facts.name): self._marks[loop.body]
            for loop, facts in zip(around, access.loops, strict=False)
        }
        try:
            found = np.asarray(access.offset_bytes.evaluate(self._ids | loops))
        except InputError as error:
            kernel = self._nest.facts.kernel
            msg = f"{kernel}, line {access.line}: address of {access.text}: {error}"
            raise InputError(msg) from error
        first, *values = np.broadcast_to(found, (len(self._steps),)).tolist()
        points = dict.fromkeys(self._steps, first)
        for name, value in zip(self._steps[1:], values, strict=True):
            points[name] = value - first
        return points


def _bind_ids(kernel: ModelledKernel, ndrange: NDRange, marks: np.ndarray) -> dict[Symbol, Value]:
    """Give ids, sizes and arguments values: at the first point of a work-group in the middle.

    Ids have further values: a step on along each of `_GROUP_STEPS`, which `marks` has a row for.
    """
    bound: dict[Symbol, Value] = {**bind_names(kernel.scalars)}
    for axis in list_dimensions(ndrange):
        inner = marks[1 + axis.number]
        outer = marks[1 + _AXES + axis.number] + axis.groups // 2
        bound |= axis.bind(outer, inner, axis.local)
    return bound
