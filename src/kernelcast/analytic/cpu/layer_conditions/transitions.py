"""Where cache traffic changes: layer conditions solved for a size (paper, Listing 5)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from kernelcast.analytic.cpu.layer_conditions.affine import read_accesses
from kernelcast.analytic.cpu.layer_conditions.bound import bind
from kernelcast.analytic.cpu.layer_conditions.inequalities import (
    normalise,
    solve_largest,
    write_polynomial,
)
from kernelcast.analytic.cpu.layer_conditions.polynomial_chains import (
    NotPolynomialError,
    PolynomialNest,
    read_polynomial_nest,
)
from kernelcast.analytic.cpu.layer_conditions.profile import ReuseProfile, profile_nest
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.errors import InputError

_LARGE = 100_003
"""A size at which reuse distances stand in the order that they have for all large sizes."""

ALL_ARRAYS = "oo"
"""Stands for the distance beyond all: the cache holds all arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A condition under which a cache misses no more than so much.

    Parameters
    ----------
    level : str
        The cache.
    condition : str
        In the constants, like ``11*N**2 <= 3276800``.
    variables : tuple of str
        The constants in it.
    largest : int or None
        The largest value that meets it, if there is one variable.
    tail_bytes : str
        The longest reuse distance that is met, in bytes; `ALL_ARRAYS` if there is no limit.
    hits, misses, evicts : float
        Lines per cache line of work where it holds, and no condition before it does.
    """

    level: str
    condition: str
    variables: tuple[str, ...]
    largest: int | None
    tail_bytes: str
    hits: float
    misses: float
    evicts: float


def list_transitions(
    nest: LoopNest,
    machine: CpuMachine,
    *,
    constants: Mapping[str, int] | None = None,
    size: str | None = None,
    cores: int = 1,
) -> tuple[Transition, ...]:
    """List the conditions of every cache, the most demanding first.

    Parameters
    ----------
    nest : LoopNest
        Any whose loops pass their arrays row by row, with steps and strides known.
    machine : CpuMachine
        Caches.
    constants : mapping of str to int
        Constants to put in; the nest's own are put in as well, but for `size`.
    size : str or None
        The constant to solve for; None leaves all in that `constants` does not name.
    cores : int
        Busy cores.

    Returns
    -------
    tuple of Transition
        Conditions that hold for all sizes are left out; branches count as if all iterations took
        them.

    Raises
    ------
    InputError
        If the nest has no such constant, or its reuse distances are no polynomials; then
        evaluating single sizes still works.
    """
    nest = nest.without_branches()
    put_in = _choose_constants(nest, constants, size)
    try:
        polynomials = read_polynomial_nest(nest, machine.line_bytes)
    except NotPolynomialError:
        msg = (
            f"{nest.name}: its loops do not pass all arrays row by row with steps and strides "
            "that are numbers, so there is no formula for its layer conditions; evaluate sizes "
            "one by one"
        )
        raise InputError(msg) from None
    ranked = _Ranked(nest, polynomials, machine.line_bytes)
    values = {Symbol(SymbolKind.SCALAR, name): value for name, value in put_in.items()}
    return tuple(
        transition
        for cache, capacity in zip(machine.caches, machine.shares(cores), strict=True)
        for transition in ranked.list_level(cache.name, capacity, values)
    )


def _choose_constants(
    nest: LoopNest, constants: Mapping[str, int] | None, size: str | None
) -> dict[str, int]:
    given = dict(constants or {})
    if size is None:
        return given
    names = nest.name_constants()
    if size not in names:
        msg = f"{nest.name} has no size {size}; it has {', '.join(sorted(names)) or 'none'}"
        raise InputError(msg)
    return {name: value for name, value in {**nest.constants, **given}.items() if name != size}


class _Ranked:
    """Reuse distances in the order that they have for all large sizes."""

    def __init__(self, nest: LoopNest, polynomials: PolynomialNest, line_bytes: int) -> None:
        names = sorted(nest.name_constants())
        sample = {name: _LARGE + place for place, name in enumerate(names)}
        symbols = {Symbol(SymbolKind.SCALAR, name): value for name, value in sample.items()}
        bound = bind(nest, read_accesses(nest), sample)
        self._profile: ReuseProfile = profile_nest(bound, line_bytes)
        self._nest = polynomials
        self._distances: Sequence[tuple[int, Expr]] = sorted(
            ((int(one.evaluate(symbols)), one) for one in polynomials.slopes),
            key=lambda pair: -pair[0],
        )

    def list_level(
        self, level: str, capacity: int, values: Mapping[Symbol, int]
    ) -> Iterator[Transition]:
        """Give the conditions of a cache of so many bytes, constants put in."""
        total = self._nest.total_bytes.substitute(values)
        found = self._make(level, _Condition.below(total, capacity), ALL_ARRAYS, inf)
        if found is not None:
            yield found
        seen = set()
        for place, (sample, distance) in enumerate(self._distances):
            if sample in seen:
                continue
            seen.add(sample)
            condition = _Condition.up_to(
                self._require(place).substitute(values), capacity * self._nest.scale
            )
            tail = write_polynomial(distance.substitute(values))
            found = self._make(level, condition, tail, sample / self._nest.scale)
            if found is not None:
                yield found

    def _require(self, place: int) -> Expr:
        """Give the paper's C_req of a distance, in bytes times the scale."""
        horizon = self._distances[place][1]
        slopes = self._nest.slopes
        total = horizon * self._nest.endless_slope
        for rank, (_, distance) in enumerate(self._distances):
            total = total + (horizon if rank < place else distance) * slopes[distance]
        return total

    def _make(
        self, level: str, condition: "_Condition", tail: str, horizon: float
    ) -> Transition | None:
        symbols = sorted(condition.left.symbols(), key=str)
        if not symbols:
            return None
        misses = self._profile.missed_lines(horizon)
        return Transition(
            level=level,
            condition=str(condition),
            variables=tuple(str(one) for one in symbols),
            largest=condition.solve(symbols[0]) if len(symbols) == 1 else None,
            tail_bytes=tail,
            hits=self._profile.accessed_lines() - misses,
            misses=misses,
            evicts=self._profile.evicted_lines(horizon),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """A polynomial and its limit."""

    left: Expr
    relation: str
    right: int

    @classmethod
    def below(cls, left: Expr, right: int) -> "_Condition":
        left, right = normalise(left, right)
        return cls(left=left, relation="<", right=right)

    @classmethod
    def up_to(cls, left: Expr, right: int) -> "_Condition":
        left, right = normalise(left, right)
        return cls(left=left, relation="<=", right=right)

    def solve(self, symbol: Symbol) -> int:
        limit = self.right - 1 if self.relation == "<" else self.right
        return solve_largest(self.left, limit, symbol)

    def __str__(self) -> str:
        return f"{write_polynomial(self.left)} {self.relation} {self.right}"
