"""What a cache of a size holds of a nest's streams: requirement, misses, evictions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from kernelcast.analytic.cpu.layer_conditions.bound import BoundNest
from kernelcast.analytic.cpu.layer_conditions.streams import Stream, list_streams
from kernelcast.expressions import disjunction
from kernelcast.expressions.iteration_space import IterationSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseProfile:
    """A nest as any least-recently-used cache sees it.

    Parameters
    ----------
    streams : tuple of Stream
        Chain after chain.
    line_bytes : int
        Bytes of a cache line.
    total_bytes : int
        Bytes of all arrays together.
    iterations : float
        Iterations that make one cache line of work.
    space : IterationSpace or None
        Counts the iterations of conditions; None where no access has one.
    """

    streams: tuple[Stream, ...]
    line_bytes: int
    total_bytes: int
    iterations: float
    space: IterationSpace | None = None

    def horizons(self) -> list[float]:
        """Give the reuse distances, in iterations, falling; the last one is 0."""
        found = {distance for stream in self.streams for distance, _ in stream.knees}
        return sorted(found | {0.0}, reverse=True)

    def required_bytes(self, horizon: float) -> float:
        """Give the cache size that remembers so many iterations: the paper's C_req.

        With every stream moving by the same number of bytes per iteration this is the sum of
        the distances up to the horizon, and the horizon once for each larger one (section 2.4.2).
        """
        return self.line_bytes * sum(one.footprint(horizon) for one in self.streams)

    def remembered(self, capacity_bytes: float) -> float:
        """Give how many iterations a cache remembers; infinite if it holds all arrays."""
        if self.total_bytes < capacity_bytes:
            return inf
        return next(
            (one for one in self.horizons() if self.required_bytes(one) <= capacity_bytes), 0.0
        )

    def accessed_lines(self) -> float:
        """Give the lines that all streams together reach per cache line of work."""
        return self.iterations * sum(one.line_share * self._touched((one,)) for one in self.streams)

    def missed_lines(self, horizon: float) -> float:
        """Give the lines that a cache misses per cache line of work."""
        if horizon == inf:
            return 0.0
        return self.iterations * sum(
            stay[0].missing(horizon) * self._touched(stay) for stay in self._stays(horizon)
        )

    def evicted_lines(self, horizon: float) -> float:
        """Give the modified lines that leave a cache per cache line of work.

        A line stays from a miss until no access finds it any more; it leaves modified if one of
        those in between was a store.
        """
        if horizon == inf:
            return 0.0
        return self.iterations * sum(
            stay[0].missing(horizon) * self._touched([one for one in stay if one.is_store])
            for stay in self._stays(horizon)
        )

    def _touched(self, streams: Sequence[Stream]) -> float:
        """Give the share of lines that at least one of some streams along them touches."""
        if not streams or self.space is None:
            return float(bool(streams))
        either = disjunction(*(one.condition for one in streams))
        stride = round(streams[0].line_share * self.line_bytes)
        return self.space.share_of_lines(either, stride, self.line_bytes)

    def _stays(self, horizon: float) -> Iterator[Sequence[Stream]]:
        stay: list[Stream] = []
        for one in self.streams:
            if stay and (one.is_leading or one.missing(horizon) > 0):
                yield stay
                stay = []
            stay.append(one)
        if stay:
            yield stay


def profile_nest(nest: BoundNest, line_bytes: int) -> ReuseProfile:
    """Make the profile of a nest in numbers."""
    return ReuseProfile(
        streams=tuple(list_streams(nest, line_bytes)),
        line_bytes=line_bytes,
        total_bytes=sum(nest.array_bytes.values()),
        iterations=line_bytes / _work_bytes(nest, line_bytes),
        space=nest.space,
    )


def _work_bytes(nest: BoundNest, line_bytes: int) -> int:
    """Give the bytes of results per iteration: of what is stored, else of what is loaded."""
    moving = [one for one in nest.accesses if one.strides[-1]]
    for chosen in ([one for one in moving if one.is_store], moving):
        dense = [abs(one.strides[-1]) for one in chosen if abs(one.strides[-1]) <= line_bytes]
        if dense:
            return max(dense)
        if chosen:
            return line_bytes
    return max((one.bytes for one in nest.accesses), default=line_bytes)
