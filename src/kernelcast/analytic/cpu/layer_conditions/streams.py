"""Accesses as streams of cache lines: when each finds again what another brought.

Accesses to one array that move alike form a chain. The first of it to reach an address brings the
line, each other one finds it if it is still there; the distance in between is counted in
iterations. The first one may find what it brought itself in an earlier iteration of an outer loop.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kernelcast.analytic.cpu.layer_conditions.bound import BoundAccess, BoundNest
from kernelcast.expressions import FALSE, TRUE, Condition

Knee = tuple[float, float]
"""A reuse distance in iterations, and the share of lines that even a larger cache must fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An access as the cache sees it.

    Parameters
    ----------
    line_share : float
        Cache lines per iteration that it reaches for the first time since long: 8 bytes of a
        64-byte line are 0.125, a stride beyond the line is 1.
    knees : tuple of (float, float)
        Growing distances, falling shares; before the first knee the share is 1.
    is_store : bool
        Whether it writes.
    is_leading : bool
        Whether it begins a chain.
    condition : Condition
        Iterations in which it is executed.
    density : float
        Share of its lines that it touches while it is executed at all: less than 1 where its
        condition changes along the innermost loop.
    """

    line_share: float
    knees: tuple[Knee, ...]
    is_store: bool
    is_leading: bool
    condition: Condition = TRUE
    density: float = 1.0

    def missing(self, horizon: float) -> float:
        """Give the lines per iteration that a cache misses which remembers `horizon` iterations."""
        remaining = 1.0
        for distance, share in self.knees:
            if distance > horizon:
                break
            remaining = share
        return self.line_share * remaining

    def footprint(self, horizon: float) -> float:
        """Give the different cache lines that it reaches within `horizon` iterations."""
        lines, begin, rate = 0.0, 0.0, 1.0
        for distance, share in self.knees:
            if distance >= horizon:
                break
            lines += (distance - begin) * rate
            begin, rate = distance, share
        return self.density * self.line_share * (lines + (horizon - begin) * rate)


def list_streams(nest: BoundNest, line_bytes: int) -> list[Stream]:
    """Turn accesses into streams, chain after chain, each chain's first access first.

    Parameters
    ----------
    nest : BoundNest
        A nest in numbers. Accesses that the innermost loop does not move are left out: they stay
        in registers or in the nearest cache.
    line_bytes : int
        Bytes of a cache line.
    """
    streams: list[Stream] = []
    for chain in _chains(nest, line_bytes):
        streams.extend(_stream_chain(nest, chain, line_bytes))
    return streams


def _chains(nest: BoundNest, line_bytes: int) -> list[list[BoundAccess]]:
    """Group accesses that pass the same lines."""
    found: dict[tuple[object, ...], list[BoundAccess]] = defaultdict(list)
    for one in nest.accesses:
        stride = abs(one.strides[-1])
        if stride and one.condition != FALSE:
            # Strides beyond the line leave gaps: only those in the same rank of them can meet.
            rank = one.offset % stride // line_bytes if stride > line_bytes else 0
            rank = 0 if _small_outer(one, line_bytes) else rank
            found[one.array, one.strides, rank, _skipped_rows(nest, one)].append(one)
    return list(found.values())


def _skipped_rows(nest: BoundNest, access: BoundAccess) -> tuple[int, ...]:
    """Tell which of the rows an access is in that an outer loop of a larger step takes in turn."""
    rest, turns = access.offset, []
    for place, steps in _by_stride(access, nest.steps):
        row = access.strides[place] // nest.steps[place]
        turn = round(rest / row)
        rest -= turn * row
        turns.append(turn % abs(steps) if _skips(nest, access, place) else 0)
    return tuple(turns)


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


def _by_stride(access: BoundAccess, values: Sequence[int]) -> list[tuple[int, int]]:
    """Give places and values of the loops that move an access, widest stride first."""
    moving = [(place, values[place]) for place, stride in enumerate(access.strides) if stride]
    return sorted(moving, key=lambda pair: -abs(access.strides[pair[0]]))


def _small_outer(access: BoundAccess, line_bytes: int) -> bool:
    """Tell whether an outer loop fills the gaps that the innermost one leaves."""
    return any(0 < abs(stride) <= line_bytes for stride in access.strides[:-1])


def _stream_chain(nest: BoundNest, chain: Sequence[BoundAccess], line_bytes: int) -> list[Stream]:
    stride = chain[0].strides[-1]
    share = min(abs(stride), line_bytes) / line_bytes
    positions = [_position(nest, one, chain[0], line_bytes) for one in chain]
    order = sorted(range(len(chain)), key=lambda place: -positions[place])
    streams = []
    for rank, place in enumerate(order):
        if rank == 0:
            knees = _outer_knees(nest, chain[place], line_bytes)
        else:
            before = order[rank - 1]
            knees = _chain_knees(
                chain[place], chain[before], positions[before] - positions[place], line_bytes
            )
        streams.append(
            Stream(
                line_share=share, knees=knees, is_store=chain[place].is_store,
                is_leading=rank == 0, condition=chain[place].condition,
                density=_find_density(nest, chain[place], line_bytes),
            )
        )  # fmt: skip
    return streams


def _find_density(nest: BoundNest, access: BoundAccess, line_bytes: int) -> float:
    if nest.space is None or access.condition == TRUE:
        return 1.0
    rows = nest.space.share_of_rows(access.condition)
    stride = abs(access.strides[-1])
    return nest.space.share_of_lines(access.condition, stride, line_bytes) / rows if rows else 0.0


def is_sequential(strides: Sequence[int]) -> bool:
    """Tell whether the loops pass an array from one end to the other: inner strides smaller."""
    moving = [one for one in strides if one]
    return all(
        abs(outer) > abs(inner) and (outer > 0) == (inner > 0) for outer, inner in pairwise(moving)
    )


def _is_in_order(nest: BoundNest, access: BoundAccess) -> bool:
    """Tell whether distances in memory are distances in time."""
    skips = any(_skips(nest, access, place) for place in range(len(nest.steps)))
    return is_sequential(access.strides) and not skips and not nest.is_blocked


def _position(nest: BoundNest, access: BoundAccess, origin: BoundAccess, line_bytes: int) -> float:
    """Give by how many iterations an access is ahead of another of its chain."""
    distance = access.offset - origin.offset
    strides = access.strides
    if _is_in_order(nest, access) and abs(strides[-1]) <= line_bytes:
        return distance / strides[-1]
    ahead = 0.0
    for place, _ in _by_stride(access, strides):
        steps = round(distance / strides[place])
        distance -= steps * strides[place]
        ahead += steps * nest.iterations_inside(place)
    return ahead + (distance / strides[-1] if abs(strides[-1]) <= line_bytes else 0.0)


def _chain_knees(
    access: BoundAccess, before: BoundAccess, distance: float, line_bytes: int
) -> tuple[Knee, ...]:
    """Give when an access finds what the one ahead of it brought."""
    stride = abs(access.strides[-1])
    gap = abs(before.offset - access.offset)
    beside = gap - round(gap / stride) * stride
    if stride <= line_bytes or not beside or abs(beside) >= line_bytes:
        return ((distance, 0.0),)
    # Neighbours within a line meet there at once, unless a line ends between them.
    return ((float(round(gap / stride)), abs(beside) / line_bytes), (distance, 0.0))


def _outer_knees(nest: BoundNest, access: BoundAccess, line_bytes: int) -> tuple[Knee, ...]:
    """Give when the leading access of a chain comes back to lines it has been to."""
    knees: list[Knee] = []
    remaining = 1.0
    for place in range(len(nest.trips) - 2, -1, -1):
        if nest.trips[place] == 1:
            continue
        share = _new_share(nest, access, place, line_bytes)
        if share < 1:
            remaining *= share
            knees.append((float(nest.iterations_inside(place)), remaining))
    return tuple(knees)


def _new_share(nest: BoundNest, access: BoundAccess, place: int, line_bytes: int) -> float:
    """Give the share of lines that one more iteration of a loop reaches for the first time."""
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
