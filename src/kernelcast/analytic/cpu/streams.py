"""Accesses as streams of cache lines, and what a cache of a size holds of them.

Accesses to one array that move alike form a chain. The first of it to reach an address brings the
line, unless it did in an earlier iteration of an outer loop; each other one finds it if it is still
there, the distance in between counted in iterations.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, prod

from kernelcast.expressions import FALSE, TRUE, Condition, Expr, Symbol, SymbolKind, disjunction
from kernelcast.expressions.loop_nest import IterationSpace, LoopNest
from kernelcast.records.errors import InputError


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
    trips: tuple[int, ...]
    """Iterations of each loop, outermost first; of a triangular loop in the middle of the loops
    around it."""
    steps: tuple[int, ...]
    accesses: tuple[BoundAccess, ...]
    array_bytes: int
    """Of all arrays that are touched."""
    is_blocked: bool = False
    """Whether a loop runs over a part of a row, so that distances in memory say nothing about
    distances in time."""
    space: IterationSpace | None = None
    """Counts the iterations of conditions; None where no access has one."""

    def iterations_inside(self, place: int) -> int:
        return prod(self.trips[place + 1 :])


def bind(nest: LoopNest, constants: Mapping[str, int]) -> BoundNest:
    """Put numbers in the place of constants; `constants` win over the nest's own."""
    values = nest.bind_constants(constants)
    known = dict(values)
    counts = []
    for loop in nest.loops:
        trip = _evaluate(loop.trips, known)
        if trip < 1:
            where = f"line {loop.line}: " if loop.line else ""
            given = ", ".join(sorted(f"{name}={value}" for name, value in values.items()))
            raise InputError(
                f"{where}the loop over {loop.name} never runs for {given or 'its bounds'}; give "
                "larger sizes"
            )
        counts.append(trip)
        known[Symbol(SymbolKind.LOOP, loop.name)] = trip // 2
    touched = {one.array for one in nest.accesses}
    return BoundNest(
        trips=tuple(counts),
        steps=tuple(_evaluate(loop.step, values) for loop in nest.loops),
        accesses=tuple(
            BoundAccess(
                array=one.array, bytes=one.bytes, is_store=one.is_store, condition=one.condition,
                strides=tuple(_evaluate(stride, values) for stride in one.strides),
                offset=_evaluate(one.offset, values),
            )
            for one in nest.accesses
        ),
        array_bytes=sum(nest.count_bytes(one, values) for one in touched),
        space=IterationSpace(nest.loops, values, nest.taken) if nest.has_branches else None,
    )  # fmt: skip


def _evaluate(expression: Expr, values: Mapping[Symbol, int]) -> int:
    return int(expression.evaluate(values))


Knee = tuple[float, float]
"""A reuse distance in iterations, and the share of lines that even a larger cache must fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An access as the cache sees it."""

    line_share: float
    """Cache lines per iteration: 8 bytes of 64 are 0.125, a stride beyond the line is 1."""
    knees: tuple[Knee, ...]
    """Growing distances, falling shares; before the first knee the share is 1."""
    is_store: bool
    is_leading: bool
    """Whether it begins a chain."""
    condition: Condition = TRUE
    density: float = 1.0
    """Share of its lines that it touches while it is executed at all: less than 1 where its
    condition changes along the innermost loop."""

    def missing(self, horizon: float) -> float:
        """Count the lines per iteration that a cache misses which remembers `horizon` of them."""
        shares = [share for distance, share in self.knees if distance <= horizon]
        return self.line_share * (shares[-1] if shares else 1.0)

    def footprint(self, horizon: float) -> float:
        """Count the different cache lines that it reaches within `horizon` iterations."""
        lines, begin, rate = 0.0, 0.0, 1.0
        for distance, share in self.knees:
            if distance >= horizon:
                break
            lines += (distance - begin) * rate
            begin, rate = distance, share
        return self.density * self.line_share * (lines + (horizon - begin) * rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseProfile:
    """A nest as any least-recently-used cache sees it."""

    streams: tuple[Stream, ...]
    """Chain after chain, each chain's first access first."""
    line_bytes: int
    total_bytes: int
    """Of all arrays together."""
    iterations: float
    """Iterations that make one cache line of work."""
    space: IterationSpace | None = None

    def remembered(self, capacity_bytes: float) -> float:
        """Find how many iterations a cache remembers; infinite if it holds all arrays."""
        if self.total_bytes < capacity_bytes:
            return inf
        distances = {distance for stream in self.streams for distance, _ in stream.knees}
        for horizon in sorted(distances, reverse=True):
            # The paper's C_req (section 2.4.2).
            lines = sum(one.footprint(horizon) for one in self.streams)
            if self.line_bytes * lines <= capacity_bytes:
                return horizon
        return 0.0

    def accessed_lines(self) -> float:
        """Count the lines that all streams together reach per cache line of work."""
        return self.iterations * sum(one.line_share * self._touched((one,)) for one in self.streams)

    def missed_lines(self, horizon: float) -> float:
        """Count the lines that a cache misses per cache line of work."""
        return self.iterations * sum(
            lines * self._touched(stay) for lines, stay in self._stays(horizon)
        )

    def evicted_lines(self, horizon: float) -> float:
        """Count the modified lines that leave a cache per cache line of work."""
        # A line stays from a miss until no access finds it any more; it leaves modified if one of
        # those in between was a store.
        return self.iterations * sum(
            lines * self._touched([one for one in stay if one.is_store])
            for lines, stay in self._stays(horizon)
        )

    def _touched(self, streams: Sequence[Stream]) -> float:
        """Count the share of lines that at least one of some streams along them touches."""
        if not streams or self.space is None:
            return float(bool(streams))
        either = disjunction(*(one.condition for one in streams))
        stride = round(streams[0].line_share * self.line_bytes)
        return self.space.share_of_lines(either, stride, self.line_bytes)

    def _stays(self, horizon: float) -> Iterator[tuple[float, Sequence[Stream]]]:
        """List missed lines per iteration, and the accesses between a miss and the next one."""
        if horizon == inf:
            return
        starts = [
            place for place, one in enumerate(self.streams)
            if one.is_leading or one.missing(horizon) > 0
        ]  # fmt: skip
        for start, stop in pairwise([*starts, len(self.streams)]):
            yield self.streams[start].missing(horizon), self.streams[start:stop]


def profile_nest(nest: BoundNest, line_bytes: int) -> ReuseProfile:
    chains: dict[tuple[object, ...], list[BoundAccess]] = defaultdict(list)
    # What the innermost loop does not move stays in registers or in the nearest cache.
    for one in nest.accesses:
        stride = abs(one.strides[-1])
        if stride and one.condition != FALSE:
            # Strides beyond the line leave gaps, unless an outer loop fills them: only accesses of
            # the same rank in them can meet.
            is_filled = any(0 < abs(outer) <= line_bytes for outer in one.strides[:-1])
            rank = 0 if stride <= line_bytes or is_filled else one.offset % stride // line_bytes
            # Tell in which of the rows an access is that an outer loop of a larger step takes in
            # turn.
            rest, turns = one.offset, []
            for place in one.moving:
                row = one.strides[place] // nest.steps[place]
                turn = round(rest / row)
                rest -= turn * row
                turns.append(turn % abs(nest.steps[place]) if _skips(nest, one, place) else 0)
            chains[one.array, one.strides, rank, tuple(turns)].append(one)
    moves = [(one.is_store, abs(one.strides[-1])) for one in nest.accesses]
    work = find_work_bytes(moves, line_bytes)
    return ReuseProfile(
        streams=tuple(
            stream for chain in chains.values() for stream in _list_streams(nest, chain, line_bytes)
        ),
        line_bytes=line_bytes,
        total_bytes=nest.array_bytes,
        iterations=line_bytes
        / (work or max((one.bytes for one in nest.accesses), default=line_bytes)),
        space=nest.space,
    )


def find_work_bytes(moves: Sequence[tuple[bool, int]], line_bytes: int) -> int:
    """Find the bytes of results per iteration: of what is stored, else of what is loaded.

    `moves` says of each access whether it writes, and how far the innermost loop moves it.
    """
    for chosen in ([step for is_store, step in moves if is_store], [step for _, step in moves]):
        dense = [step for step in chosen if 0 < step <= line_bytes]
        if any(chosen):
            return max(dense, default=line_bytes)
    return 0


def _skips(nest: BoundNest, access: BoundAccess, place: int) -> bool:
    """Tell whether an outer loop leaves out rows, which no loop inside it fills in."""
    step, stride = abs(nest.steps[place]), abs(access.strides[place])
    if step == 1 or not stride or place == len(nest.steps) - 1:
        return False
    reached = max(
        abs(inner) * trip
        for inner, trip in zip(access.strides[place + 1 :], nest.trips[place + 1 :], strict=True)
    )
    # A row of a stencil reaches one step in so many, edges left out; a tile reaches all of them.
    return reached < stride * (1 - 0.5 / step)


def _list_streams(
    nest: BoundNest, chain: Sequence[BoundAccess], line_bytes: int
) -> Iterator[Stream]:
    stride = abs(chain[0].strides[-1])
    places = [(_find_position(nest, one, chain[0], line_bytes), one) for one in chain]
    places.sort(key=lambda pair: -pair[0])
    for rank, (position, one) in enumerate(places):
        if rank == 0:
            # Find when the leading access of a chain comes back to lines it has been to.
            outer: list[Knee] = []
            remaining = 1.0
            for place in range(len(nest.trips) - 2, -1, -1):
                share = (
                    1.0 if nest.trips[place] == 1 else _find_new_share(nest, one, place, line_bytes)
                )
                if share < 1:
                    remaining *= share
                    outer.append((float(nest.iterations_inside(place)), remaining))
            knees = tuple(outer)
        else:
            ahead, before = places[rank - 1]
            knees = ((ahead - position, 0.0),)
            gap = abs(before.offset - one.offset)
            beside = abs(gap - round(gap / stride) * stride)
            if stride > line_bytes and 0 < beside < line_bytes:
                # Neighbours within a line meet there at once, unless a line ends between them.
                knees = ((float(round(gap / stride)), beside / line_bytes), *knees)
        density = 1.0
        if nest.space is not None and one.condition != TRUE:
            rows = nest.space.share_of_rows(one.condition)
            touched = nest.space.share_of_lines(one.condition, stride, line_bytes)
            density = touched / rows if rows else 0.0
        yield Stream(
            line_share=min(stride, line_bytes) / line_bytes,
            knees=knees,
            is_store=one.is_store,
            is_leading=rank == 0,
            condition=one.condition,
            density=density,
        )


def _find_position(
    nest: BoundNest, access: BoundAccess, origin: BoundAccess, line_bytes: int
) -> float:
    """Find by how many iterations an access is ahead of another of its chain."""
    distance, strides = access.offset - origin.offset, access.strides
    is_dense = abs(strides[-1]) <= line_bytes
    skips = any(_skips(nest, access, place) for place in range(len(nest.steps)))
    if is_dense and access.is_sequential and not skips and not nest.is_blocked:
        return distance / strides[-1]  # distances in memory are distances in time
    ahead = 0.0
    for place in access.moving:
        steps = round(distance / strides[place])
        distance -= steps * strides[place]
        ahead += steps * nest.iterations_inside(place)
    return ahead + (distance / strides[-1] if is_dense else 0.0)


def _find_new_share(nest: BoundNest, access: BoundAccess, place: int, line_bytes: int) -> float:
    """Find the share of lines that one more iteration of a loop reaches for the first time."""
    shift = abs(access.strides[place])
    inner = [
        (abs(stride), trip)
        for stride, trip in zip(access.strides[place + 1 :], nest.trips[place + 1 :], strict=True)
        if stride
    ]
    # The widest stride first: a shift by whole steps of it leaves all but those steps in place.
    for stride, trip in sorted(inner, reverse=True):
        steps = round(shift / stride)
        rest = abs(shift - steps * stride)
        if steps and (rest == 0 or rest < line_bytes < stride):
            return min(1.0, steps / trip)
        if stride <= line_bytes:
            return min(1.0, shift / (stride * trip))
    return min(1.0, shift / line_bytes)
