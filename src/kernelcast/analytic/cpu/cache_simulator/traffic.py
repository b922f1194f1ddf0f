"""What a simulation counted."""

from dataclasses import dataclass

from kernelcast.records.cache_volumes import MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTraffic:
    """Counts of one level; `MEMORY` behind the last.

    Parameters
    ----------
    name : str
        The level.
    loads, hits, misses : int
        Requests to read, from the core or from the level in front; an access that crosses lines
        is one for each. A store that brings its line in is a load (a miss) as well. Loads that
        miss a victim cache pass it by uncounted.
    stores : int
        Requests to write, lines that the level in front evicts included.
    evicts : int
        Requests to write that it sends on: modified lines, stores that it passes through, and
        all lines that go to a victim cache.
    loaded_bytes, hit_bytes, missed_bytes, stored_bytes, evicted_bytes : int
        Bytes of each.
    """

    name: str
    loads: int
    hits: int
    misses: int
    stores: int
    evicts: int
    loaded_bytes: int
    hit_bytes: int
    missed_bytes: int
    stored_bytes: int
    evicted_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTraffic:
    """Counts of a hierarchy.

    Parameters
    ----------
    levels : tuple of LevelTraffic
        Caches, nearest first, then memory.
    """

    levels: tuple[LevelTraffic, ...]

    def level(self, name: str) -> LevelTraffic:
        """Find a level.

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        for one in self.levels:
            if one.name == name:
                return one
        raise KeyError(name)

    @property
    def memory(self) -> LevelTraffic:
        """What reaches memory."""
        return self.level(MEMORY)
