"""A loop nest with all its constants: whole numbers of bytes and iterations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from kernelcast.analytic.cpu.layer_conditions.affine import AffineAccess
from kernelcast.expressions import TRUE, Condition, Expr, Symbol, SymbolKind
from kernelcast.expressions.iteration_space import IterationSpace
from kernelcast.expressions.loop_nest import LoopNest, NestArray, NestLoop
from kernelcast.records.errors import InputError

Constants = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAccess:
    """An access in numbers.

    Parameters
    ----------
    array : str
        The array.
    strides : tuple of int
        Bytes per iteration of each loop, outermost first.
    offset, bytes : int
        Address where all loop variables are 0, and width, in bytes.
    is_store : bool
        Whether it writes.
    condition : Condition
        Iterations in which it is executed.
    """

    array: str
    strides: tuple[int, ...]
    offset: int
    bytes: int
    is_store: bool
    condition: Condition = TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundNest:
    """A nest in numbers.

    Parameters
    ----------
    trips : tuple of int
        Iterations of each loop per entry, outermost first; of a triangular loop in the middle of
        the loops around it.
    steps : tuple of int
        By what each loop's variable grows.
    accesses : tuple of BoundAccess
        As executed.
    array_bytes : mapping of str to int
        Bytes of each array that is touched.
    is_blocked : bool
        Whether a loop runs over a part of a row only, so that distances in memory say nothing
        about distances in time.
    space : IterationSpace or None
        Counts the iterations of conditions; None where no access has one.
    """

    trips: tuple[int, ...]
    steps: tuple[int, ...]
    accesses: tuple[BoundAccess, ...]
    array_bytes: Mapping[str, int]
    is_blocked: bool = False
    space: IterationSpace | None = None

    def iterations_inside(self, place: int) -> int:
        """Count iterations of the innermost loop per iteration of the loop at a place."""
        return prod(self.trips[place + 1 :])


def bind(nest: LoopNest, accesses: Sequence[AffineAccess], constants: Constants) -> BoundNest:
    """Put numbers in the place of constants.

    Parameters
    ----------
    nest : LoopNest
        Any.
    accesses : sequence of AffineAccess
        The nest's.
    constants : mapping of str to int
        Values; they win over the nest's own.

    Raises
    ------
    InputError
        If a constant is missing or below 1, a loop never runs, or an array has no elements.
    """
    values = nest.bind_constants(constants)
    trips = _count_trips(nest.loops, values)
    bound = tuple(
        BoundAccess(
            array=one.access.array,
            strides=tuple(_number(stride, values) for stride in one.strides),
            offset=_number(one.offset, values), bytes=one.access.bytes,
            is_store=one.access.is_store, condition=one.access.condition,
        )
        for one in accesses
    )  # fmt: skip
    known = {array.name: array for array in nest.arrays}
    touched = dict.fromkeys(one.array for one in bound)
    sizes = {name: _size(known.get(name), name, bound, trips, values) for name in touched}
    steps = tuple(loop.step for loop in nest.loops)
    space = IterationSpace(nest.loops, values, nest.taken) if nest.has_branches else None
    return BoundNest(trips=trips, steps=steps, accesses=bound, array_bytes=sizes, space=space)


def _number(expression: Expr, values: Mapping[Symbol, int]) -> int:
    return int(expression.evaluate(values))


def _count_trips(loops: Sequence[NestLoop], values: Mapping[Symbol, int]) -> tuple[int, ...]:
    known = dict(values)
    trips = []
    for loop in loops:
        start, stop = _number(loop.start, known), _number(loop.stop, known)
        trip = len(range(start, stop, loop.step))
        if trip < 1:
            where = f"line {loop.line}: " if loop.line else ""
            msg = (
                f"{where}the loop over {loop.name} goes from {start} to {stop} in steps of "
                f"{loop.step}: it never runs; give larger sizes"
            )
            raise InputError(msg)
        trips.append(trip)
        known[Symbol(SymbolKind.LOOP, loop.name)] = start + loop.step * (trip // 2)
    return tuple(trips)


def _size(
    array: NestArray | None,
    name: str,
    accesses: Sequence[BoundAccess],
    trips: Sequence[int],
    values: Mapping[Symbol, int],
) -> int:
    """Give an array's bytes: as declared, else what the loops reach."""
    if array is not None and array.dimensions:
        size = array.element_bytes * prod(_number(one, values) for one in array.dimensions)
        if size < 1:
            msg = f"array {name} has {size} bytes; give sizes of at least 1"
            raise InputError(msg)
        return size
    ends = [_reach(one, trips) for one in accesses if one.array == name]
    return max(high for _, high in ends) - min(low for low, _ in ends)


def _reach(access: BoundAccess, trips: Sequence[int]) -> tuple[int, int]:
    steps = [stride * (trip - 1) for stride, trip in zip(access.strides, trips, strict=True)]
    low = access.offset + sum(one for one in steps if one < 0)
    return low, access.offset + sum(one for one in steps if one > 0) + access.bytes
