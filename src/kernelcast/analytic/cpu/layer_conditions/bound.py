"""A loop nest with all its constants: whole numbers of bytes and iterations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from kernelcast.analytic.cpu.layer_conditions.affine import AffineAccess
from kernelcast.expressions import Expr, Symbol, SymbolKind
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
    """

    array: str
    strides: tuple[int, ...]
    offset: int
    bytes: int
    is_store: bool


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
    """

    trips: tuple[int, ...]
    steps: tuple[int, ...]
    accesses: tuple[BoundAccess, ...]
    array_bytes: Mapping[str, int]
    is_blocked: bool = False

    def iterations_inside(self, place: int) -> int:
        """Count iterations of the innermost loop per iteration of the loop at a place."""
        return prod(self.trips[place + 1 :])


def merge_constants(nest: LoopNest, constants: Constants) -> dict[str, int]:
    """Join the nest's constants with those given now, which win.

    Raises
    ------
    InputError
        If a constant that sizes, bounds or addresses name has no value, or one below 1.
    """
    merged = {**nest.constants, **constants}
    wanted = sorted(name_constants(nest))
    missing = [name for name in wanted if name not in merged]
    if missing:
        msg = (
            f"{nest.name}: no value for {', '.join(missing)}; give each one "
            f"({' '.join(f'-D {name} 1000' for name in missing)})"
        )
        raise InputError(msg)
    for name in wanted:
        if merged[name] < 1:
            msg = f"{nest.name}: {name} is {merged[name]}; expected at least 1"
            raise InputError(msg)
    return merged


def name_constants(nest: LoopNest) -> frozenset[str]:
    """Name the constants on which sizes, bounds and addresses depend."""
    expressions = [
        *(one for loop in nest.loops for one in (loop.start, loop.stop)),
        *(access.offset_bytes for access in nest.accesses),
        *(size for array in nest.arrays for size in array.dimensions),
    ]
    symbols = frozenset().union(*(one.symbols() for one in expressions))
    return frozenset(one.name for one in symbols if one.kind is SymbolKind.SCALAR)


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
    values = {
        Symbol(SymbolKind.SCALAR, name): value
        for name, value in merge_constants(nest, constants).items()
    }
    trips = _count_trips(nest.loops, values)
    bound = tuple(
        BoundAccess(
            array=one.access.array,
            strides=tuple(_number(stride, values) for stride in one.strides),
            offset=_number(one.offset, values), bytes=one.access.bytes,
            is_store=one.access.is_store,
        )
        for one in accesses
    )  # fmt: skip
    known = {array.name: array for array in nest.arrays}
    touched = dict.fromkeys(one.array for one in bound)
    sizes = {name: _size(known.get(name), name, bound, trips, values) for name in touched}
    steps = tuple(loop.step for loop in nest.loops)
    return BoundNest(trips=trips, steps=steps, accesses=bound, array_bytes=sizes)


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
