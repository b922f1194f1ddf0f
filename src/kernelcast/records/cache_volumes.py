"""What moves through a cache hierarchy while a loop nest produces one cache line of results."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

MEMORY = "MEM"
"""Name of what lies behind the last cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelVolume:
    """Traffic of one level, in cache lines per cache line of work."""

    name: str
    hits: float
    misses: float
    """Lines asked of this level that it holds, and that it does not; everything hits memory. Lines
    that pass a victim cache by are misses of layer conditions alone."""
    evicts: float
    """Lines that it hands on: modified ones, and to a victim cache all; 0 for memory."""
    loads: float | None = None
    stores: float | None = None
    """Lines asked of it and written to it; None where layer conditions cannot tell."""


class Transfer(NamedTuple):
    """Lines that cross the boundary in front of a level, per cache line of work."""

    nearer: str
    farther: str
    loaded: float
    stored: float
    """Lines towards the core and away from it."""

    @property
    def lines(self) -> float:
        return self.loaded + self.stored


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheVolumes:
    """Traffic of a whole hierarchy, by layer conditions or by simulation."""

    predictor: str
    levels: tuple[LevelVolume, ...]
    line_bytes: int
    iterations: float
    """Iterations of the innermost loop that make one cache line of work."""
    notes: tuple[str, ...] = ()

    def level(self, name: str) -> LevelVolume | None:
        return next((level for level in self.levels if level.name == name), None)

    def transfers(self) -> Iterator[Transfer]:
        """List what crosses each boundary; a victim cache does not see what is loaded past it."""
        *caches, memory = self.levels
        for nearer, farther in pairwise(caches):
            yield Transfer(nearer.name, farther.name, nearer.misses, nearer.evicts)
        last = caches[-1]
        loaded = last.misses if memory.loads is None else memory.loads
        stored = last.evicts if memory.stores is None else memory.stores
        yield Transfer(last.name, memory.name, loaded, stored)
