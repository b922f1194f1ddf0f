"""Caches as the simulator knows them."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from kernelcast.records.errors import InputError

_MASKED_BYTES = 64
"""Longest line of a write-combining cache: one bit of a mask per byte."""


class CacheRole(StrEnum):
    """How a level is reached."""

    CACHE = "cache"
    VICTIM = "victim"
    """Filled by what the level in front of it evicts, modified or not; a load that hits it moves
    the line back, one that misses it goes past it."""
    WRITE_COMBINING = "write-combining"
    """Collects stores from the level in front of it; loads go past it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLevel:
    """One cache; of a full set, the line goes that the levels in front have not asked for longest.

    Parameters
    ----------
    name : str
        For tables and messages.
    size_bytes, ways, line_bytes : int
        Geometry: sets = size / (ways * line), which need be no power of two.
    role : CacheRole
        How it is reached.
    writes_back : bool
        Whether a store stays here until its line is evicted, or goes on at once.
    writes_allocate : bool
        Whether a store that misses brings the line in, or goes on. A whole line that the level in
        front evicts is taken in without a load. Without meaning for victim and write-combining
        caches.
    is_inclusive : bool
        Whether a line that it evicts leaves all levels in front of it too.

    Raises
    ------
    InputError
        If there can be no such cache.

    Examples
    --------
    >>> CacheLevel(name="L1", size_bytes=32768, ways=8).sets
    64
    """

    name: str
    size_bytes: int
    ways: int
    line_bytes: int = 64
    role: CacheRole = CacheRole.CACHE
    writes_back: bool = True
    writes_allocate: bool = True
    is_inclusive: bool = False

    def __post_init__(self) -> None:
        if self.line_bytes < 1 or self.line_bytes & (self.line_bytes - 1):
            self._refuse(f"lines of {self.line_bytes} bytes", "a power of two")
        if self.ways < 1:
            self._refuse(f"{self.ways} ways", "at least 1")
        set_bytes = self.ways * self.line_bytes
        if self.size_bytes < 1 or self.size_bytes % set_bytes:
            below = max(1, self.size_bytes // set_bytes) * set_bytes
            self._refuse(
                f"{self.size_bytes} bytes",
                f"whole sets of {self.ways} ways of {self.line_bytes} bytes, such as {below}",
            )
        if self.role is not CacheRole.CACHE and self.is_inclusive:
            self._refuse(f"an inclusive {self.role} cache", "one or the other")
        if self.role is not CacheRole.CACHE and not self.writes_back:
            self._refuse(f"a {self.role} cache that writes through", "one that writes back")
        if self.role is CacheRole.WRITE_COMBINING and self.line_bytes > _MASKED_BYTES:
            self._refuse(f"lines of {self.line_bytes} bytes", f"at most {_MASKED_BYTES}")

    @property
    def sets(self) -> int:
        """Sets of the cache."""
        return self.size_bytes // (self.ways * self.line_bytes)

    @property
    def lines(self) -> int:
        """Lines that it holds."""
        return self.size_bytes // self.line_bytes

    def _refuse(self, given: str, expected: str) -> None:
        msg = f"cache {self.name}: {given}; expected {expected}. Correct the cache hierarchy"
        raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheHierarchy:
    """Caches between a core and memory.

    Parameters
    ----------
    levels : tuple of CacheLevel
        Nearest first; memory follows the last.

    Raises
    ------
    InputError
        If there is none, two have one name, or they do not fit one behind the other.
    """

    levels: tuple[CacheLevel, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            _refuse("no cache", "at least one")
        names = [level.name for level in self.levels]
        if len(set(names)) < len(names):
            _refuse(f"caches {', '.join(names)}", "a name of its own for each")
        if self.levels[0].role is not CacheRole.CACHE:
            _refuse(f"a {self.levels[0].role} cache first", "a plain cache there")
        for nearer, farther in pairwise(self.levels):
            _check_pair(nearer, farther)

    @property
    def size_bytes(self) -> int:
        """Bytes of all levels together."""
        return sum(level.size_bytes for level in self.levels)


def _check_pair(nearer: CacheLevel, farther: CacheLevel) -> None:
    between = f"{farther.role} cache {farther.name} behind {nearer.name}"
    if farther.role is not CacheRole.CACHE and nearer.role is not CacheRole.CACHE:
        _refuse(f"{between}, a {nearer.role} cache", "it behind a plain cache")
    if farther.role is CacheRole.VICTIM and nearer.line_bytes != farther.line_bytes:
        sizes = f"{farther.line_bytes} and {nearer.line_bytes} bytes"
        _refuse(f"{between} with lines of {sizes}", "lines of one size")


def _refuse(given: str, expected: str) -> None:
    msg = f"cache hierarchy: {given}; expected {expected}. Correct the cache hierarchy"
    raise InputError(msg)
