"""A loop nest as strides and trip counts: over constants, and in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from kernelcast.expressions import TRUE, Condition, Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import IterationSpace, LoopNest, NestAccess
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineAccess:
    """An access whose address is a sum of loop variables times strides."""

    access: NestAccess
    strides: tuple[Expr, ...]
    """Bytes by which the address moves per iteration of each loop, outermost first; an inner loop
    that starts where an outer one is (a tile, a triangle) moves along with it."""
    offset: Expr
    """Address of the very first iteration, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAccess:
    """An access in numbers: bytes per iteration of each loop, and the first address."""

    array: str
    strides: tuple[int, ...]
    offset: int
    bytes: int
    is_store: bool
    condition: Condition = TRUE

    @property
    def moving(self) -> list[int]:
        """Places of the loops that move it, widest stride first."""
        places = [place for place, stride in enumerate(self.strides) if stride]
        return sorted(places, key=lambda place: -abs(self.strides[place]))

    @property
    def is_sequential(self) -> bool:
        """Whether the loops pass the array from one end to the other: inner strides smaller."""
        return all(
            abs(outer) > abs(inner) and (outer > 0) == (inner > 0)
            for outer, inner in pairwise(one for one in self.strides if one)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundNest:
    """A nest in numbers."""

    trips: tuple[int, ...]
    """Iterations of each loop, outermost first; of a triangular loop in the middle of the loops
    around it."""
    steps: tuple[int, ...]
    accesses: tuple[BoundAccess, ...]
    array_bytes: Mapping[str, int]
    """Of each array that is touched."""
    is_blocked: bool = False
    """Whether a loop runs over a part of a row, so that distances in memory say nothing about
    distances in time."""
    space: IterationSpace | None = None
    """Counts the iterations of conditions; None where no access has one."""

    def iterations_inside(self, place: int) -> int:
        """Count iterations of the innermost loop per iteration of the loop at a place."""
        return prod(self.trips[place + 1 :])


def read_accesses(nest: LoopNest) -> tuple[AffineAccess, ...]:
    """Read strides and offsets of all accesses."""
    return tuple(_read_access(nest, access) for access in nest.accesses)


def _read_access(nest: LoopNest, access: NestAccess) -> AffineAccess:
    strides = []
    address, reason = access.offset_bytes, ""
    for loop in reversed(nest.loops):
        variable = Symbol(SymbolKind.LOOP, loop.name)
        parts = address.split(variable)
        if parts is None or not parts[1].is_parameter:
            reason = f"is not affine in {loop.name}"
            break
        strides.append(parts[1] * loop.step)
        address = address.substitute({variable: loop.start})
    else:
        moving = sorted(str(one) for one in address.symbols() if not one.is_parameter)
        if not moving:
            return AffineAccess(access=access, strides=tuple(reversed(strides)), offset=address)
        reason = f"moves with {moving[0]}, which is no loop around it"
    where = f"line {access.line}: " if access.line else ""
    msg = (
        f"{where}the index of {access.text or access.array} {reason}; expected a sum of loop "
        "variables times constants (the cache simulator takes any address)"
    )
    raise InputError(msg)


def bind(
    nest: LoopNest, accesses: Sequence[AffineAccess], constants: Mapping[str, int]
) -> BoundNest:
    """Put numbers in the place of constants; `constants` win over the nest's own."""
    values = nest.bind_constants(constants)
    known = dict(values)
    counts = []
    for loop in nest.loops:
        start, stop = _evaluate(loop.start, known), _evaluate(loop.stop, known)
        trip = len(range(start, stop, loop.step))
        if trip < 1:
            where = f"line {loop.line}: " if loop.line else ""
            msg = (
                f"{where}the loop over {loop.name} goes from {start} to {stop} in steps of "
                f"{loop.step}: it never runs; give larger sizes"
            )
            raise InputError(msg)
        counts.append(trip)
        known[Symbol(SymbolKind.LOOP, loop.name)] = start + loop.step * (trip // 2)
    trips = tuple(counts)
    bound = tuple(
        BoundAccess(
            array=one.access.array,
            strides=tuple(_evaluate(stride, values) for stride in one.strides),
            offset=_evaluate(one.offset, values),
            bytes=one.access.bytes,
            is_store=one.access.is_store,
            condition=one.access.condition,
        )
        for one in accesses
    )
    # Measure each array in bytes: as declared, else what the loops reach.
    sizes = {}
    declared = {array.name: array for array in nest.arrays if array.dimensions}
    for name in dict.fromkeys(one.array for one in bound):
        if name in declared:
            array = declared[name]
            size = array.element_bytes * prod(_evaluate(one, values) for one in array.dimensions)
            if size < 1:
                msg = f"array {name} has {size} bytes; give sizes of at least 1"
                raise InputError(msg)
        else:
            lows, highs = [], []
            for one in bound:
                if one.array == name:
                    reach = [
                        step * (trip - 1) for step, trip in zip(one.strides, trips, strict=True)
                    ]
                    lows.append(one.offset + sum(min(0, step) for step in reach))
                    highs.append(one.offset + sum(max(0, step) for step in reach) + one.bytes)
            size = max(highs) - min(lows)
        sizes[name] = size
    return BoundNest(
        trips=trips,
        steps=tuple(loop.step for loop in nest.loops),
        accesses=bound,
        array_bytes=sizes,
        space=IterationSpace(nest.loops, values, nest.taken) if nest.has_branches else None,
    )


def _evaluate(expression: Expr, values: Mapping[Symbol, int]) -> int:
    return int(expression.evaluate(values))
