"""Loop nests as the analytic CPU model sees them: loops, arrays, accesses, and the iterations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

import islpy

from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.conditions import (
    FALSE,
    TRUE,
    Condition,
    conjunction,
    disjunction,
    less,
    less_equal,
)
from kernelcast.expressions.point_sets import IslSpace, NotKnownError, answering, make_context
from kernelcast.expressions.polynomials import Expr
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.records.errors import InputError
from kernelcast.records.operations import OperationCounts, add_weighted

_ONE = Expr.constant(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NestLoop:
    name: str
    """Its variable; expressions name it as ``Symbol(SymbolKind.LOOP, name)``, which stands for the
    number of the iteration, from 0."""
    trips: Expr
    """How often it runs, over constants and the loops around it; not at all where that is less
    than 1."""
    step: Expr = _ONE
    """By how much its variable changes, over constants."""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NestAccess:
    """A load or store of one iteration of the innermost loop."""

    array: str
    strides: tuple[Expr, ...]
    """Bytes by which its address moves per iteration of each loop, outermost first, over constants;
    an inner loop that starts where an outer one is (a tile, a triangle) moves along with it."""
    offset: Expr
    """Address of the very first iteration, in bytes from the start of the array, over constants."""
    is_store: bool
    """Whether it writes. ``a[i] += x`` is a load and a store."""
    bytes: int
    condition: Condition = TRUE
    """Iterations in which it is executed, over loop variables, constants and decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNest:
    """A perfect loop nest."""

    name: str
    loops: tuple[NestLoop, ...]
    """Outermost first."""
    arrays: Mapping[str, Expr]
    """Bytes of each array, over constants."""
    accesses: tuple[NestAccess, ...]
    """In the order in which an iteration executes them."""
    executed: OperationCounts
    """Operations of one iteration of the innermost loop, those of all branches together."""
    constants: Mapping[str, int] = field(default_factory=dict)
    chain: tuple[str, ...] = ()
    """Operations that each iteration must wait for, one after the other (a sum's addition); empty
    if iterations are independent."""
    notes: tuple[str, ...] = ()
    branches: tuple[tuple[Condition, OperationCounts], ...] = ()
    """The part of `executed` that only some iterations execute, and which."""
    taken: float | None = None
    """Share of iterations in which each decision holds, at random; None if vectors execute both
    sides under a mask."""

    def __post_init__(self) -> None:
        if self.taken is not None and not 0 <= self.taken <= 1:
            msg = f"conditions on data hold in {self.taken} of the iterations; expected 0 to 1"
            raise InputError(msg)

    @property
    def decisions(self) -> tuple[Symbol, ...]:
        """Conditions on data, of accesses and of branches: 1 where they hold, else 0."""
        conditions = (*(one.condition for one in self.accesses), *(one for one, _ in self.branches))
        return tuple(dict.fromkeys(one for each in conditions for one in find_decisions(each)))

    @property
    def has_branches(self) -> bool:
        return bool(self.branches) or any(one.condition != TRUE for one in self.accesses)

    def name_constants(self) -> frozenset[str]:
        """Name the constants on which sizes, bounds, addresses and conditions depend."""
        expressions: list[Expr | Condition] = [
            *(one for loop in self.loops for one in (loop.trips, loop.step)),
            *(one for each in self.accesses for one in (*each.strides, each.offset)),
            *(one.condition for one in self.accesses),
            *self.arrays.values(),
            *(condition for condition, _ in self.branches),
        ]
        symbols = frozenset().union(*(one.symbols() for one in expressions))
        return frozenset(one.name for one in symbols if one.kind is SymbolKind.SCALAR)

    def bind_constants(self, constants: Mapping[str, int]) -> dict[Symbol, int]:
        """Join the nest's constants with those given now, which win."""
        merged = {**self.constants, **constants}
        wanted = sorted(self.name_constants())
        missing = [name for name in wanted if name not in merged]
        if missing:
            raise InputError(
                f"{self.name}: no value for {', '.join(missing)}; give each one "
                f"({' '.join(f'-D {name} 1000' for name in missing)})"
            )
        for name in wanted:
            if merged[name] < 1:
                raise InputError(f"{self.name}: {name} is {merged[name]}; expected at least 1")
        return bind_names(merged)

    def count_bytes(self, array: str, values: Mapping[Symbol, int]) -> int:
        size = int(self.arrays[array].evaluate(values))
        if size < 1:
            raise InputError(f"array {array} has {size} bytes; give sizes of at least 1")
        return size


class IterationSpace:
    """Iterations of a nest of one size; decisions on data hold for a share `taken` of them."""

    def __init__(
        self,
        loops: Sequence[NestLoop],
        values: Mapping[Symbol, int],
        taken: float | None = None,
    ) -> None:
        self._values = values
        self._taken = taken
        # Steps of the solver for one count; it takes some 3 ms for the rows of a square of 4000.
        self._context = make_context(20_000_000)
        self._shares: dict[tuple[Condition, int, int], float] = {}
        self._inside: dict[Symbol, Condition] = {}
        for loop in loops:
            own = Symbol(SymbolKind.LOOP, loop.name)
            ahead = less(own, loop.trips.substitute(values))
            self._inside[own] = conjunction(less_equal(0, own), ahead)

    def share(self, condition: Condition) -> float:
        """Give the share of iterations in which a condition holds."""
        decisions = find_decisions(condition)
        if self._taken is None or not decisions:
            return self._share(unite(condition))
        total = 0.0
        for sides in product((0, 1), repeat=len(decisions)):
            chance = prod(self._taken if side else 1 - self._taken for side in sides)
            case = condition.substitute(dict(zip(decisions, sides, strict=True)))
            total += chance * self._share(case)
        return total

    def share_of_rows(self, condition: Condition) -> float:
        """Give the share of the innermost loop's runs in which a condition holds at least once."""
        return self._share(unite(condition), stride=0)

    def share_of_lines(self, condition: Condition, stride: int, line_bytes: int) -> float:
        """Give the share of lines, of all that an access passes, that it touches."""
        if stride >= line_bytes:
            return self.share(condition)
        possible = unite(condition)
        lines = self._share(possible, stride, line_bytes)
        if possible == condition or not lines:
            return lines
        chance = self.share(condition) / self.share(possible)
        missed: float = (1 - chance) ** (line_bytes / stride)
        return lines * (1 - missed)

    def _share(self, condition: Condition, stride: int = 1, line_bytes: int = 1) -> float:
        """Give the share that is left of lines through which the innermost loop passes by strides:
        of iterations where each has a line of its own, of rows where it never moves."""
        if condition in (TRUE, FALSE):
            return float(condition == TRUE)
        key = condition, stride, line_bytes
        if key not in self._shares:
            self._shares[key] = self._count(condition.substitute(self._values), stride, line_bytes)
        return self._shares[key]

    def _count(self, condition: Condition, stride: int, line_bytes: int) -> float:
        symbols = set(condition.symbols())
        if stride != line_bytes:
            symbols.add([*self._inside][-1])
        # Loops whose lengths bear on some that are asked for, themselves included.
        size = -1
        while size < len(symbols):
            size = len(symbols)
            for own, inside in self._inside.items():
                if not symbols.isdisjoint({own, *inside.symbols()}):
                    symbols |= inside.symbols()
        known = [own for own in self._inside if own in symbols]
        try:
            space = IslSpace(known, self._context)
            with answering(self._context):
                domain = space.to_isl_set(conjunction(*(self._inside[own] for own in known)))
                parts = [domain, domain.intersect(space.to_isl_set(condition))]
                if stride != line_bytes:
                    outer = "".join(f"o{place}," for place in range(len(known) - 1))
                    lines = islpy.Map.read_from_str(
                        self._context, f"{{ [{outer} i] -> [{outer} line] : "
                        f"{line_bytes} line <= {stride} i < {line_bytes} line + {line_bytes} }}",
                    )  # fmt: skip
                    parts = [one.apply(lines) for one in parts]
                total, left = (int(one.coalesce().count_val().to_python()) for one in parts)
        except NotKnownError as error:
            raise InputError(
                f"the iterations in which {condition} holds cannot be counted; expected "
                "comparisons of sums of loop variables times constants"
            ) from error
        return left / total if total else 0.0


def split_address(address: Expr, loops: Sequence[NestLoop]) -> tuple[tuple[Expr, ...], Expr] | None:
    """Give strides and start; None of what is no sum of loop variables times constants."""
    strides = []
    for loop in loops:
        parts = address.split(Symbol(SymbolKind.LOOP, loop.name))
        if parts is None:
            return None
        address, stride = parts
        strides.append(stride)
    is_sum = all(one.is_parameter for one in (*strides, address))
    return (tuple(strides), address) if is_sum else None


def find_decisions(condition: Condition) -> tuple[Symbol, ...]:
    """Give the conditions on data that a condition is made of."""
    found = [one for one in condition.symbols() if one.kind is SymbolKind.CONTENT]
    return tuple(sorted(found, key=lambda one: one.name))


def unite(condition: Condition) -> Condition:
    """Give the iterations in which a condition holds if data have it so: a mask may be set."""
    for one in find_decisions(condition):
        condition = disjunction(*(condition.substitute({one: side}) for side in (0, 1)))
    return condition


def list_outcomes(nest: LoopNest) -> Iterator[LoopNest]:
    """Give the nest as it is if each condition on data always holds, or never: all ways."""
    count = len(nest.decisions)
    every = (
        # All outcomes of a few are tried; of more, that all hold and that none does.
        product((0, 1), repeat=count) if count <= 4 else ((0,) * count, (1,) * count)
    )
    for outcome in every:
        sides = dict(zip(nest.decisions, outcome, strict=True))
        branches = [(one.substitute(sides), counts) for one, counts in nest.branches]
        never = [(counts, -1.0) for condition, counts in branches if condition == FALSE]
        yield replace(
            nest,
            accesses=tuple(
                replace(one, condition=one.condition.substitute(sides)) for one in nest.accesses
            ),
            executed=add_weighted([(nest.executed, 1.0), *never]),
            branches=tuple(one for one in branches if one[0] != FALSE),
        )
