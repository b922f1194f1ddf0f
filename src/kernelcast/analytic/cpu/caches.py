"""Caches of a CPU in the numbers that the analytic models need."""

from dataclasses import dataclass

from kernelcast.records.errors import InputError
from kernelcast.records.machine import CacheFacts, MachineDescription
from kernelcast.records.traits import Trait, TraitSource

_MEASURED_BY = {"clock": "clock", "cache": "caches"}
"""What `kernelcast calibrate --only` takes to measure a kind of number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCache:
    """One level of the cache hierarchy.

    Parameters
    ----------
    name : str
        ``L1``, ``L2``, ``L3``.
    size_bytes, line_bytes : int
        Of one cache.
    ways : int
        Lines of a set; all lines of the cache if the description does not say.
    shared_by : int
        Cores that share one cache.
    cycles_per_line : float or None
        Core cycles to move one line between this level and the next nearer one; None for the
        nearest cache, and where nobody measured it.
    is_full_duplex : bool
        Whether lines in and out of the nearer cache move at the same time.
    is_victim : bool
        Whether it holds only what the nearer cache evicted.
    is_inclusive : bool
        Whether it holds whatever nearer caches hold.
    writes_allocate, writes_back : bool
        Whether a store brings the line in first, and whether it stays until evicted.
    """

    name: str
    size_bytes: int
    line_bytes: int
    ways: int
    shared_by: int = 1
    cycles_per_line: float | None = None
    is_full_duplex: bool = False
    is_victim: bool = False
    is_inclusive: bool = False
    writes_allocate: bool = True
    writes_back: bool = True

    def __post_init__(self) -> None:
        if self.line_bytes < 1 or self.line_bytes & (self.line_bytes - 1):
            self._refuse(f"lines of {self.line_bytes} bytes", "a power of two")
        if self.ways < 1 or self.shared_by < 1:
            self._refuse(f"{self.ways} ways, shared by {self.shared_by}", "at least 1 of each")
        if self.size_bytes < 1 or self.size_bytes % (self.ways * self.line_bytes):
            self._refuse(
                f"{self.size_bytes} bytes",
                f"whole sets of {self.ways} ways of {self.line_bytes} bytes",
            )

    @property
    def sets(self) -> int:
        """Sets of one cache."""
        return self.size_bytes // (self.ways * self.line_bytes)

    def share_bytes(self, cores: int) -> int:
        """Give what one of so many busy cores has of the cache: whole sets of it.

        Examples
        --------
        >>> cache = CpuCache(name="L3", size_bytes=3 * 2**20, line_bytes=64, ways=16, shared_by=2)
        >>> cache.share_bytes(1), cache.share_bytes(8)
        (3145728, 1572864)
        """
        sets = self.sets // min(cores, self.shared_by)
        return max(1, sets) * self.ways * self.line_bytes

    def _refuse(self, given: str, expected: str) -> None:
        msg = f"cache {self.name}: {given}; expected {expected}. Correct the machine description"
        raise InputError(msg)


class CacheReader:
    """Reads the caches of a machine description, nearest first.

    Parameters
    ----------
    description : MachineDescription
        Of a CPU.
    cycles_per_s : float
        Core cycles of all cores together.
    overlapping : frozenset of str
        Levels whose transfers overlap with everything else.
    """

    def __init__(
        self, description: MachineDescription, cycles_per_s: float, overlapping: frozenset[str]
    ) -> None:
        self.notes: list[str] = []
        self._description = description
        self._cycles_per_s = cycles_per_s
        self._overlapping = overlapping
        self._nearer_cycles: float | None = None

    def read(self, cache: CacheFacts) -> CpuCache:
        """Read the next cache.

        Raises
        ------
        InputError
            If a number is missing or the geometry is impossible.
        """
        key = f"caches.{cache.name}"
        known = _choose_size(cache)
        size = int(need(self._description, known, f"{key}.size_bytes", "cache"))
        line = int(need(self._description, cache.line_bytes, f"{key}.line_bytes", "cache"))
        ways = cache.ways.value if cache.ways else max(1, size // line)
        if cache.ways is None:
            self.notes.append(f"{cache.name}: associativity not known, taken as full")
        if cache.ways is None or _is_measured(known):
            size = max(1, round(size / (ways * line))) * ways * line  # measured: not exact
        return CpuCache(
            name=cache.name,
            size_bytes=size,
            line_bytes=line,
            ways=ways,
            shared_by=cache.shared_by.value if cache.shared_by else 1,
            cycles_per_line=self._read_cycles(cache, line),
            is_full_duplex=bool(cache.is_full_duplex),
            is_victim=bool(cache.is_victim),
            is_inclusive=bool(cache.is_inclusive),
            writes_allocate=not cache.is_victim and cache.write_policy != "write-through",
            writes_back=cache.write_policy != "write-through",
        )

    def _read_cycles(self, cache: CacheFacts, line_bytes: int) -> float | None:
        """Give the cycles that one core needs to move a line to the nearer cache.

        What is documented is that throughput. What is measured is a loop that loads from the
        level, and holds the way through nearer caches as well: nothing overlaps, so that part is
        taken off.
        """
        rate = cache.load_bytes_per_s or cache.copy_bytes_per_s
        nearer, self._nearer_cycles = self._nearer_cycles, None
        if rate is None:
            if cache is not self._description.caches[0]:
                self.notes.append(f"{cache.name}: no bandwidth known; only its traffic is")
            return None
        cycles = line_bytes * self._cycles_per_s / rate.value
        if _is_measured(rate):
            self._nearer_cycles = cycles
        if cache is self._description.caches[0]:
            return None
        if nearer is None or not _is_measured(rate) or cache.name in self._overlapping:
            return cycles
        return max(0.0, cycles - nearer)


def _choose_size(cache: CacheFacts) -> Trait[int] | None:
    """Take a core's own cache for as large as the system says, a shared one as it was measured.

    A fit finds the size of a cache within some ten per cent. A core has all of its own caches, but
    a virtual machine's part of a shared one is not what the system reports.
    """
    is_own = cache.shared_by is not None and cache.shared_by.value == 1
    if is_own and cache.reported_size_bytes is not None and _is_measured(cache.size_bytes):
        return cache.reported_size_bytes
    return cache.size_bytes


def _is_measured(trait: Trait[int] | Trait[float] | None) -> bool:
    return trait is not None and trait.source is TraitSource.MEASURED


def need(
    description: MachineDescription, trait: Trait[int] | Trait[float] | None, key: str, kind: str
) -> float:
    """Give a number, or say which one is missing and how to get it.

    Raises
    ------
    InputError
        If it is missing.
    """
    if trait is None:
        msg = f"{description.name}: {key} is not known; {remedy(kind)}"
        raise InputError(msg)
    return trait.value


def remedy(kind: str) -> str:
    """Say how to get a missing number of a kind: ``clock`` or ``cache``."""
    return (
        f"measure it with `kernelcast calibrate --only {_MEASURED_BY[kind]}`, or write it into "
        "the machine description"
    )
