"""A loop nest in numbers: where its arrays lie, and the addresses of its iterations."""

from collections.abc import Mapping, Sequence
from math import prod
from operator import attrgetter

import numpy as np

from kernelcast.analytic.cpu.cache_simulator.layout import IntArray
from kernelcast.analytic.cpu.cache_simulator.nest_bounds import (
    bind_bounds,
    find_ranges,
    read_linear,
)
from kernelcast.analytic.cpu.cache_simulator.odometer import (
    START,
    STEP,
    STOP,
    count_iterations,
    count_row,
    count_steps,
    fill,
    find_bound,
    rewind,
)
from kernelcast.expressions import Condition, Symbol, SymbolKind
from kernelcast.expressions.iteration_space import unite
from kernelcast.expressions.loop_nest import LoopNest, NestAccess
from kernelcast.records.errors import InputError

_MOST = 1 << 40
_SEED = 1
"""Which iterations a condition on data holds in is drawn anew for each nest, the same each time."""


class NestAddresses:
    """The addresses that a nest's iterations touch, in order.

    Arrays lie one behind the other in the order of their names, whatever the order of their
    declarations, each at the next multiple of the alignment; the first begins at address 0.
    Scalars are in registers. An iteration reads array by array in the order of declarations, then
    writes: which read comes first is the compiler's choice, not that of who wrote the sum.

    Parameters
    ----------
    nest : LoopNest
        Any; addresses may be any expression, bounds must be sums of outer loops' variables, or the
        least or greatest of such.
    constants : mapping of str to int
        Values of its constants; they win over the nest's own.
    alignment_bytes : int
        Of the arrays; 1 puts no gaps between them.

    Raises
    ------
    InputError
        If a constant is missing, a bound or an address is no such expression, an array's size is
        not known, or the nest never runs.
    """

    def __init__(
        self, nest: LoopNest, constants: Mapping[str, int], *, alignment_bytes: int = 1
    ) -> None:
        if alignment_bytes < 1:
            msg = f"arrays aligned to {alignment_bytes} bytes; expected at least 1"
            raise InputError(msg)
        self._scalars = nest.bind_constants(constants)
        self._symbols = [Symbol(SymbolKind.LOOP, loop.name) for loop in nest.loops]
        self.bounds = bind_bounds(nest, self._scalars)
        self._variables = np.zeros(len(nest.loops), dtype=np.int64)
        if not rewind(self.bounds, self._variables):
            msg = f"{nest.name}: the loops never run for {_list(self._scalars)}; give larger sizes"
            raise InputError(msg)
        starts = self._place_arrays(nest, alignment_bytes)
        places = {array.name: at for at, array in enumerate(nest.arrays)}
        accesses = sorted(nest.accesses, key=lambda one: (one.is_store, places[one.array]))
        self.footprint_bytes = starts.pop("")
        self._offsets = [
            one.offset_bytes.substitute(self._scalars) + starts[one.array] for one in accesses
        ]
        linear = [read_linear(one, self._symbols) for one in self._offsets]
        is_linear = all(one is not None for one in linear)
        self.strides = np.array(linear, dtype=np.int64) if is_linear else None
        self.kinds = np.array([(one.is_store, one.bytes) for one in accesses], dtype=np.int64)
        self._taken = nest.taken
        self._chance = np.random.default_rng(_SEED)
        self._conditions = (
            [self._bind(one.condition) for one in accesses] if nest.has_branches else []
        )
        self.is_uneven = any(set(self._symbols) & one.symbols() for one in self._conditions)
        self.total = self._count()

    @property
    def variables(self) -> tuple[int, ...]:
        """Values of the loops' variables in the next iteration, outermost first."""
        return tuple(self._variables.tolist())

    @property
    def row_left(self) -> int:
        """Iterations left of the innermost loop's present run; 0 at the end of the nest."""
        return count_row(self.bounds, self._variables)

    def find_work_bytes(self, line_bytes: int) -> int:
        """Give the bytes of results per iteration: of what is stored, else of what is loaded.

        Strides along the innermost loop of more than a line make whole lines.
        """
        if self.strides is None:
            moves = self.kinds[:, 1]
        else:
            moves = abs(self.strides[:, -1] * self.bounds[-1, STEP, 0, 0])
        for chosen in (moves[(self.kinds[:, 0] == 1) & (moves > 0)], moves[moves > 0]):
            dense = chosen[chosen <= line_bytes]
            if dense.size:
                return int(dense.max())
            if chosen.size:
                return line_bytes
        return int(self.kinds[:, 1].max())

    def peek(self) -> tuple[int, int]:
        """Give address and bytes of the lowest store, else load, of the next iteration."""
        values = dict(zip(self._symbols, self.variables, strict=True))
        stores = self.kinds[:, 0] == self.kinds[:, 0].max()
        return min(
            (int(self._offsets[at].evaluate(values)), int(self.kinds[at, 1]))
            for at in np.flatnonzero(stores).tolist()
        )

    def rewind(self) -> None:
        """Go back to the first iteration."""
        rewind(self.bounds, self._variables)

    def take(self, iterations: int) -> IntArray:
        """Give the addresses of the next iterations and go on; fewer at the end of the nest."""
        if self.strides is not None:
            buffer = np.empty(iterations * len(self.kinds), dtype=np.int64)
            done = fill(self.bounds, self._variables, self.strides, buffer, iterations)
            return buffer[: done * len(self.kinds)]
        bindings, done = self._list_variables(self._variables, iterations)
        addresses = np.empty((done, len(self._offsets)), dtype=np.int64)
        for at, offset in enumerate(self._offsets):
            addresses[:, at] = offset.evaluate(bindings)
        return addresses.ravel()

    def take_executed(self, iterations: int) -> tuple[IntArray, IntArray, int]:
        """Give addresses and kinds of what the next iterations execute, and how many they are."""
        if not self._conditions:
            chunk = self.take(iterations)
            return chunk, self.kinds, len(chunk) // len(self.kinds)
        bindings, done = self._list_variables(self._variables.copy(), iterations)
        for one in sorted(frozenset().union(*(one.symbols() for one in self._conditions)), key=str):
            if one not in bindings:
                bindings[one] = (self._chance.random(done) < (self._taken or 0.0)).astype(np.int64)
        executed = np.empty((done, len(self._conditions)), dtype=np.bool_)
        for at, condition in enumerate(self._conditions):
            executed[:, at] = condition.evaluate(bindings)
        kept = executed.ravel()
        return self.take(done)[kept], np.tile(self.kinds, (done, 1))[kept], done

    def _list_variables(
        self, variables: IntArray, iterations: int
    ) -> tuple[dict[Symbol, IntArray], int]:
        """Give the loops' variables in the next iterations, which are left behind."""
        depth = len(self._symbols)
        buffer = np.empty(iterations * depth, dtype=np.int64)
        identity = np.eye(depth, depth + 1, 1, dtype=np.int64)
        done = fill(self.bounds, variables, identity, buffer, iterations)
        columns = buffer[: done * depth].reshape(done, depth).T
        return dict(zip(self._symbols, columns, strict=True)), done

    def _bind(self, condition: Condition) -> Condition:
        open_ = unite(condition) if self._taken is None else condition
        return open_.substitute(self._scalars)

    def _place_arrays(self, nest: LoopNest, alignment_bytes: int) -> dict[str, int]:
        """Give each array's first address, and under an empty name the end of the last."""
        starts: dict[str, int] = {}
        end = 0
        for array in sorted(nest.arrays, key=attrgetter("name")):
            accesses = [one for one in nest.accesses if one.array == array.name]
            if array.dimensions:
                low, high = (
                    0,
                    array.element_bytes
                    * prod(int(one.evaluate(self._scalars)) for one in array.dimensions),
                )
                if high < 1:
                    msg = f"array {array.name} has {high} bytes; give sizes of at least 1"
                    raise InputError(msg)
            else:
                low, high = self._find_extent(accesses)
            start = -(-end // alignment_bytes) * alignment_bytes
            starts[array.name] = start - low
            end = start + high - low
        unknown = sorted({one.array for one in nest.accesses} - set(starts))
        if unknown:
            msg = f"{nest.name}: arrays {', '.join(unknown)} are accessed but not declared"
            raise InputError(msg)
        return {**starts, "": end}

    def _find_extent(self, accesses: Sequence[NestAccess]) -> tuple[int, int]:
        """Give the first byte and the one behind the last that some accesses touch."""
        ranges = find_ranges(self.bounds)
        low, high = 0, 1
        for one in accesses:
            linear = read_linear(one.offset_bytes.substitute(self._scalars), self._symbols)
            if linear is None:
                msg = (
                    f"{one.text or one.array}: how far a pointer reaches is only known of an index "
                    "that is a sum of loop variables; declare the array with its dimensions"
                )
                raise InputError(msg)
            ends = [sorted((c * a, c * b)) for c, (a, b) in zip(linear[1:], ranges, strict=True)]
            low = min(low, linear[0] + sum(end[0] for end in ends))
            high = max(high, linear[0] + sum(end[1] for end in ends) + one.bytes)
        return low, high

    def _count(self) -> int:
        """Count all iterations; a triangle row by row, a box at once."""
        if not self.bounds[..., 1:].any():
            variables = self._variables
            return prod(
                count_steps(
                    find_bound(self.bounds, variables, at, START),
                    find_bound(self.bounds, variables, at, STOP),
                    self.bounds[at, STEP, 0, 0],
                )
                for at in range(len(self.bounds))
            )
        return count_iterations(self.bounds, np.zeros(len(self.bounds), dtype=np.int64), _MOST)


def _list(values: Mapping[Symbol, int]) -> str:
    return ", ".join(sorted(f"{name}={value}" for name, value in values.items())) or "its bounds"
