"""The caches of this host as its operating system reports them."""

import platform
from dataclasses import dataclass
from pathlib import Path

from kernelcast.records.machine import CacheFacts
from kernelcast.records.traits import Trait, TraitSource

_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCache:
    """A data cache of this host."""

    level: int
    """1 is nearest."""
    size_bytes: int
    line_bytes: int
    ways: int
    shared_by: int
    """Logical processors; this, line and ways are 0 if unknown."""
    origin: str

    @property
    def name(self) -> str:
        """``L1`` and so on."""
        return f"L{self.level}"


def read_host_caches(folder: Path = _FOLDER) -> tuple[HostCache, ...]:
    """Read data and unified caches, nearest first; nothing where the system does not say."""
    if folder == _FOLDER and platform.system() != "Linux":
        return ()
    found = [_read_cache(one) for one in sorted(folder.glob("index*"))]
    caches = [cache for cache in found if cache is not None]
    return tuple(sorted(caches, key=lambda cache: cache.level))


def make_reported_facts(cache: HostCache) -> CacheFacts:
    """Turn a host's cache into facts, all of them reported."""

    def report(value: int) -> Trait[int] | None:
        if value <= 0:
            return None
        return Trait(value=value, source=TraitSource.REPORTED, origin=cache.origin)

    return CacheFacts(
        name=cache.name,
        size_bytes=report(cache.size_bytes),
        reported_size_bytes=report(cache.size_bytes),
        line_bytes=report(cache.line_bytes),
        ways=report(cache.ways),
        shared_by=report(cache.shared_by),
    )


def _read_cache(folder: Path) -> HostCache | None:
    if _read(folder / "type") == "Instruction":
        return None
    level, size_bytes = _parse_count(_read(folder / "level")), parse_size(_read(folder / "size"))
    if level <= 0 or size_bytes <= 0:
        return None
    return HostCache(
        level=level,
        size_bytes=size_bytes,
        line_bytes=_parse_count(_read(folder / "coherency_line_size")),
        ways=_parse_count(_read(folder / "ways_of_associativity")),
        shared_by=count_listed(_read(folder / "shared_cpu_list")),
        origin=str(folder),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _parse_count(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def parse_size(text: str) -> int:
    """Read a size as Linux writes it, in bytes; 0 if it is none.

    Examples
    --------
    >>> parse_size("48K"), parse_size("32M"), parse_size("")
    (49152, 33554432, 0)
    """
    unit = _UNITS.get(text[-1:], 1)
    return _parse_count(text.rstrip("KMG")) * unit


def count_listed(text: str) -> int:
    """Count the processors in a list of ranges.

    Examples
    --------
    >>> count_listed("0-3,8"), count_listed("0"), count_listed("")
    (5, 1, 0)
    """
    total = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        total += _parse_count(last or first) - _parse_count(first) + 1
    return total
