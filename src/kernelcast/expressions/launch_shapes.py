"""Which launches of a kernel do the same per work-item, though their sizes differ.

What work-items of some work-groups do is told by a few whole numbers: on which side of its turn
each condition is, how often each loop runs, where each access begins within a cache line. They
follow from sizes by one product of matrices. Two launches with the same numbers execute the same,
and touch lines that can be mapped to each other: where the same lines meet in one launch, they
meet in the other. For what is multiplied by a size that differs, this needs rows that keep apart;
where they may meet, the sizes themselves are among the numbers.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.comparisons import Comparison, Relation
from kernelcast.expressions.conditions import Condition
from kernelcast.expressions.decisions import DECIDED, Decisions
from kernelcast.expressions.evaluation import BoolArray, EvaluationError, IntArray
from kernelcast.expressions.group_bounds import GroupBounds, list_loops
from kernelcast.expressions.group_forms import (
    CONSTANT,
    GROUP,
    PLACES,
    START,
    Form,
    NotAffineError,
    Sizes,
    symbols_of,
)
from kernelcast.expressions.junctions import And, Or
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.polynomials import Expr
from kernelcast.expressions.row_spans import RowSpans
from kernelcast.expressions.row_strides import RowStrides
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import MemorySpace

_LARGEST = 2.0**60
_PAGE_BYTES = 4096
"""Their translations are held in few sets too."""
_NONE: frozenset[int] = frozenset()


class LookedAt(NamedTuple):
    """Work-groups that say what all of a launch do.

    Parameters
    ----------
    work_groups : ndarray of int64, shape (4, work-groups)
        A row of ones and their ids: first those of which only counts what they execute, then
        those whose lines are compared with others', all different.
    alone : int
        How many there are of the first.
    pairs : ndarray of int64, shape (2, pairs)
        Which of the others are compared with which, by their places among them.
    axes : tuple of bool
        The dimensions along which there are several.
    """

    work_groups: IntArray
    alone: int
    pairs: IntArray
    axes: tuple[bool, ...]


class LaunchShape(NamedTuple):
    """What launches that do the same have in common.

    Parameters
    ----------
    key : tuple
        Equal for those that do the same.
    alone, together : tuple of bytes
        Equal for work-groups that do the same, of the first ones, and of others.
    shared : ndarray of bool, shape (buffers, pairs)
        Whether pairs touch the same line of buffers of which each touches one.
    """

    key: Hashable
    alone: tuple[bytes, ...]
    together: tuple[bytes, ...]
    shared: BoolArray

    def count_alike(self) -> dict[int, int]:
        """Give the first of each kind of work-groups, and how many of the kind there are."""
        kinds = Counter(self.alone)
        return {self.alone.index(one): kinds[one] for one in sorted(kinds)}


class LaunchShapes:
    """Tells launches of a kernel with one local size apart.

    Parameters
    ----------
    facts : KernelFacts
        The kernel.
    local_size : tuple of int
        Of the launches.
    line_bytes : int
        Of a cache line; a power of two of at least 32.
    """

    def __init__(self, facts: KernelFacts, local_size: tuple[int, ...], line_bytes: int) -> None:
        self._local = (*local_size, *(1,) * (MAX_DIMENSIONS - len(local_size)))
        self._line_bytes = line_bytes
        self._sizes = {
            Symbol(SymbolKind.LOCAL_SIZE, axis=axis): one for axis, one in enumerate(self._local)
        }
        try:
            self._collect(facts)
        except NotAffineError:
            self._rows: IntArray | None = None

    def identify(
        self, ndrange: NDRange, scalars: Mapping[str, int], looked_at: LookedAt
    ) -> LaunchShape | None:
        """Give what launches that do the same have in common.

        Parameters
        ----------
        ndrange : NDRange
            The launch, with this local size.
        looked_at : LookedAt
            Of its work-groups.

        Returns
        -------
        LaunchShape or None
            None where it is not known which launches do the same.
        """
        if self._rows is None or not ndrange.is_uniform:
            return None
        values = self._evaluate(ndrange, scalars)
        if values is None or self._exceeds(values, ndrange):
            return None
        numbers = np.array(values)
        told = (self._rows @ numbers) @ looked_at.work_groups
        if any(ndrange.global_offset):
            told += self._move(numbers, ndrange.global_offset)
        alone, conditions = looked_at.alone, self._decisions.count
        stands = self._decisions.round(told[:conditions], numbers, alone)
        exact = self._find_exact(values) if stands else self._every
        addresses, pages = told[conditions:, alone:], b""
        if self._strides.crowd(values):
            exact, pages = exact | self._strides.places, (addresses % _PAGE_BYTES).tobytes()
        shared = self._compare_lines(addresses, looked_at.pairs)
        addresses &= self._within
        told[conditions:, :alone] = 0  # only what they execute matters
        width, rows = 8 * len(told), told.T.tobytes()
        groups = range(looked_at.work_groups.shape[1])
        kinds = tuple([rows[width * at : width * (at + 1)] for at in groups])
        sizes = [one % least for one, least in zip(values, self._moduli, strict=True)]
        for place in exact:
            sizes[place] = values[place]
        key = (
            exact, tuple(sizes), tuple(sorted(kinds[:alone])), kinds[alone:], shared.tobytes(),
            pages, looked_at.axes, looked_at.pairs.tobytes(),
        )  # fmt: skip
        return LaunchShape(key, kinds[:alone], kinds[alone:], shared)

    def _move(self, numbers: IntArray, offset: Sequence[int]) -> IntArray:
        """Give what global offsets add."""
        every = (*offset, 0, 0)[:MAX_DIMENSIONS]
        added: IntArray = ((self._starts @ numbers) @ np.array(every))[:, None]
        return added

    def _compare_lines(self, addresses: IntArray, pairs: IntArray) -> BoolArray:
        """Tell which pairs touch the same line of buffers of which each touches one."""
        if not self._single.size:
            return self._nothing
        lines = addresses[self._single] // self._line_bytes
        own, other = pairs
        return np.asarray(lines[:, own] == lines[:, other])

    def _find_exact(self, values: Sequence[int]) -> frozenset[int]:
        """Give the places of sizes that rows which may meet are made of."""
        exact = _NONE
        for one in self._buffers:
            if not one.keeps_apart(values):
                exact = exact.union([place for place, _ in one.spans])
        return exact

    def _exceeds(self, values: Sequence[int], ndrange: NDRange) -> bool:
        """Tell whether numbers may be beyond 64 bits."""
        fixed = moving = 0.0
        for value, (one, other) in zip(values, self._heaviest, strict=True):
            fixed += one * abs(value)
            moving += other * abs(value)
        farthest = max(ndrange.global_size) + max(ndrange.global_offset)
        return fixed + moving * farthest > _LARGEST

    def _evaluate(self, ndrange: NDRange, scalars: Mapping[str, int]) -> list[int] | None:
        """Give the values of all products of sizes; None if one is not known."""
        bound: dict[Symbol, int] = {}
        for one in self._symbols:
            value = _look_up(one, ndrange, scalars)
            if value is None:
                return None
            bound[one] = value
        values = []
        try:
            for product in self._products:
                value = 1
                for atom in product:
                    value *= bound[atom] if isinstance(atom, Symbol) else int(atom.evaluate(bound))
                values.append(value)
        except EvaluationError:
            return None
        return values

    def _collect(self, facts: KernelFacts) -> None:
        bounds = GroupBounds(facts, self._local, self._sizes)
        buffers, decisions, endless = self._collect_forms(facts)
        # Of local memory only strides matter, which sizes that keep apart leave as they are.
        addresses = [one for forms in buffers for one in forms
                     if one[1].space is not MemorySpace.LOCAL]  # fmt: skip
        every = [*decisions, *(form for forms in buffers for form, _ in forms)]
        pinned = set().union(*(one.pinned() for one in every))
        products = sorted(set().union(*(one.sizes() for one in every), {()}), key=str)
        products += [(one,) for one in pinned]
        self._products: list[Sizes] = products
        self._every = frozenset(range(len(products)))
        index = {one: place for place, one in reversed([*enumerate(products)])}
        self._symbols = frozenset(
            symbol for one in products for atom in one for symbol in symbols_of(atom)
        )
        self._lay_out([*decisions, *(form for form, _ in addresses)], index)
        self._decisions = Decisions(decisions, self._clamps, endless, products, bounds)
        self._tell_lines(addresses, {id(one[0][0]) for one in buffers if len(one) == 1}, index)
        self._moduli[len(products) - len(pinned) :] = [DECIDED] * len(pinned)
        self._strides = RowStrides.of([form for form, _ in addresses], index)
        self._buffers = [
            RowSpans.measure(one, index, bounds) for one in buffers
            if any(sizes for form, _ in one for sizes in form.sizes())
        ]  # fmt: skip

    def _collect_forms(
        self, facts: KernelFacts
    ) -> tuple[list[list[tuple[Form, MemoryAccess]]], list[Form], list[bool]]:
        """Give addresses by buffers, what must be known of others, and whether exactly."""
        decisions, endless = self._collect_decisions(facts)
        clamps: dict[Expr, None] = {}
        buffers = []
        for accesses in _group(facts.accesses).values():
            forms = [(Form.of(offset, self._sizes), one) for offset, one in accesses]
            clamps |= {clamp: None for form, _ in forms for clamp in form.clamps}
            if any(form.moves != forms[0][0].moves for form, _ in forms):
                decisions += [form for form, _ in forms]  # where they meet depends on the place
                endless += [True] * len(forms)
            else:
                buffers.append(forms)
        self._clamps = len(clamps)
        first = [Form.of(one, self._sizes) for one in clamps]
        return buffers, [*first, *decisions], [*([False] * len(first)), *endless]

    def _lay_out(self, forms: Sequence[Form], index: Mapping[Sizes, int]) -> None:
        """Write the factors of forms as rows of numbers."""
        rows = np.zeros((len(forms), PLACES, len(self._products)), dtype=np.int64)
        for row, form in enumerate(forms):
            for (place, sizes), factor in form.places.items():
                rows[row, place, index[sizes]] = factor
        self._starts = rows[:, START:GROUP]
        by_groups = self._starts * np.array(self._local)[:, None] + rows[:, GROUP:]
        self._rows = np.concatenate([rows[:, :START], by_groups], axis=1)
        heavy = np.abs(rows.astype(np.float64))
        own, moving = heavy[:, CONSTANT], heavy[:, START:].sum(axis=1)
        self._heaviest = [
            (float(one), float(other))
            for one, other in zip(own.max(0, initial=1), moving.max(0, initial=0), strict=True)
        ]

    def _tell_lines(
        self,
        addresses: Sequence[tuple[Form, MemoryAccess]],
        sole: Set[int],
        index: Mapping[Sizes, int],
    ) -> None:
        """Say how exactly addresses must be known, so that lines are the same.

        Periods are powers of two.
        """
        within, single = [], []
        self._moduli = [1] * len(self._products)
        for row, (form, access) in enumerate(addresses):
            period = self._line_bytes
            clamped = [((None, sizes), factor) for sizes, factor in form.clamped]
            for (what, sizes), factor in (*form.inner.items(), *form.moves.items(), *clamped):
                if isinstance(what, int) and what < GROUP:
                    factor *= self._local[what - START]
                modulus = period // math.gcd(factor, period)
                self._moduli[index[sizes]] = max(self._moduli[index[sizes]], modulus)
            is_one = not any(form.inner.values()) and not form.clamped and id(form) in sole
            if is_one and period % access.bytes == 0:
                # One address: all that matters is whether neighbours are in the same line.
                period = access.bytes
                single.append(row)
            within.append(period)
        self._within = np.array(within, dtype=np.int64)[:, None] - 1
        self._single = np.array(single, dtype=np.intp)
        self._nothing = np.zeros((0, 0), dtype=np.bool_)

    def _collect_decisions(self, facts: KernelFacts) -> tuple[list[Form], list[bool]]:
        """Give what conditions compare with zero and loops count, and what must be exactly same."""
        if any(_may_be_split(one.guard) for one in facts.accesses):
            raise NotAffineError
        guards = dict.fromkeys(
            [*(one.guard for one in facts.reaches), *(one.guard for one in facts.accesses)]
        )
        exprs = {one.expr: False for guard in guards for one in _find_comparisons(guard)}
        for loop in list_loops(facts):
            exprs |= {one.expr: True for one in _find_comparisons(loop.condition)}
            if loop.trip_count is not None:
                exprs[loop.trip_count] = True
        forms = [Form.of(one, self._sizes) for one in exprs]
        if any(one.clamps for one in forms):
            raise NotAffineError
        return forms, [*exprs.values()]


def _group(accesses: Iterable[MemoryAccess]) -> dict[str, list[tuple[Expr, MemoryAccess]]]:
    """Give the accesses of each buffer whose addresses are known."""
    found: dict[str, list[tuple[Expr, MemoryAccess]]] = defaultdict(list)
    for one in accesses:
        if one.offset_bytes is not None:
            found[one.buffer or ""].append((one.offset_bytes, one))
    return found


def _find_comparisons(condition: Condition) -> Iterator[Comparison]:
    if isinstance(condition, And | Or):
        for part in condition.parts:
            yield from _find_comparisons(part)
    elif isinstance(condition, Comparison):
        yield condition


def _may_be_split(guard: Condition) -> bool:
    """Tell whether models may take an access apart into as many boxes as sizes make of it."""
    parts = guard.parts if isinstance(guard, And) else (guard,)
    return any(one.is_exact and _is_apart(one) for one in parts)


def _is_apart(part: Condition) -> bool:
    kinds = {one.kind for one in part.symbols()}
    if kinds == {SymbolKind.LOCAL_ID}:
        return False  # boxes are of global ids
    if isinstance(part, Comparison) and part.relation is Relation.NOT_ZERO:
        # One id that is not a number leaves what lies before and behind it: work-groups at the
        # borders, which are always looked at, tell which of these there is.
        return len(part.symbols()) > 1 or kinds != {SymbolKind.GLOBAL_ID}
    return isinstance(part, Or)


def _look_up(symbol: Symbol, ndrange: NDRange, scalars: Mapping[str, int]) -> int | None:
    if symbol.kind is SymbolKind.SCALAR:
        return scalars.get(symbol.name)
    if symbol.axis >= ndrange.dimensions:
        return 0 if symbol.kind is SymbolKind.GLOBAL_OFFSET else 1
    match symbol.kind:
        case SymbolKind.GLOBAL_SIZE:
            return ndrange.global_size[symbol.axis]
        case SymbolKind.GROUP_COUNT:
            return ndrange.group_counts[symbol.axis]
        case SymbolKind.LOCAL_SIZE:
            return ndrange.known_local_size[symbol.axis]
        case _:
            return ndrange.global_offset[symbol.axis]
